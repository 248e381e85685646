package com.yahoo.ml.jcaffe;

/** An image of 8-bit values: pixels row by row with their channels side by side, or bytes that are not decoded yet (1 x 1 x n). */
public class Mat extends BaseObject {
  public static final int CV_LOAD_IMAGE_UNCHANGED = -1, CV_LOAD_IMAGE_GRAYSCALE = 0, CV_LOAD_IMAGE_COLOR = 1, CV_LOAD_IMAGE_ANYDEPTH = 2, CV_LOAD_IMAGE_ANYCOLOR = 4;

  private int channels, height, width;
  private byte[] data;

  /** Bytes as they are, such as a JPEG's. @throws NullPointerException for none */
  public Mat(byte[] data) {
    this(1, 1, data.length, data);
  }

  public Mat(int channels, int height, int width, byte[] data) {
    if (data == null) throw new NullPointerException("no bytes are given for an image");
    this.channels = channels;
    this.height = height;
    this.width = width;
    this.data = data;
  }

  /** Decodes JPEG or PNG bytes in place. False: they cannot be decoded; the bytes then stay. */
  public boolean decode(int flags) {
    throw new UnsupportedOperationException("decode");
  }

  /** Bilinear, as OpenCV. */
  public boolean resize(int height, int width) {
    throw new UnsupportedOperationException("resize");
  }

  public int channels() {
    return channels;
  }

  public int height() {
    return height;
  }

  public int width() {
    return width;
  }

  public byte[] data() {
    return data;
  }
}
