package com.yahoo.ml.jcaffe;

/** A fixed number of places for images. */
public class MatVector extends BaseObject {
  private final Mat[] mats;

  /** @throws NegativeArraySizeException for a negative size */
  public MatVector(int size) {
    mats = new Mat[size];
  }

  /**
   * Puts an image into a place.
   *
   * @return the image that was there before, or null
   * @throws NullPointerException for no image
   * @throws ArrayIndexOutOfBoundsException for no such place
   */
  public Mat put(int position, Mat mat) {
    if (mat == null) throw new NullPointerException("no image is given for place " + position);
    Mat old = mats[position];
    mats[position] = mat;
    return old;
  }

  public int size() {
    return mats.length;
  }

  /** The image at a place; null when there is none. */
  public Mat get(int position) {
    return position < 0 || position >= mats.length ? null : mats[position];
  }

  public byte[] data(int position) {
    Mat mat = get(position);
    return mat == null ? null : mat.data();
  }

  public int height(int position) {
    Mat mat = get(position);
    return mat == null ? -1 : mat.height();
  }

  public int width(int position) {
    Mat mat = get(position);
    return mat == null ? -1 : mat.width();
  }

  public int channels(int position) {
    Mat mat = get(position);
    return mat == null ? -1 : mat.channels();
  }
}
