package com.yahoo.ml.jcaffe;

/** A blob of floats in the JVM's memory, row-major. */
public class FloatBlob extends BaseObject {
  private int[] shape = new int[0];
  private float[] data = new float[0];

  public FloatBlob() {}

  /** In CaffeOnSpark a view of native memory; there is none, so the arguments have no meaning. */
  public FloatBlob(long address, boolean shouldDeallocate) {}

  public boolean reshape(int num, int channels, int height, int width) {
    return reshape(new int[] {num, channels, height, width});
  }

  /** New values are 0 unless the count stays. False: a size is below 1, or there are more than 2^31 - 9 values. */
  public boolean reshape(int[] shape) {
    long count = 1;
    for (int size : shape) {
      if (size < 1) return false;
      count *= size;
      if (count > Integer.MAX_VALUE - 8) return false;
    }
    if (count != data.length) data = new float[(int) count];
    this.shape = shape.clone();
    return true;
  }

  public int[] shape() {
    return shape.clone();
  }

  public int count() {
    return data.length;
  }

  /** False: there is no other blob, or it has another count. */
  public boolean copyFrom(FloatBlob other) {
    return other != null && set_cpu_data(other.data);
  }

  /** The values themselves, not a copy. */
  public FloatArray cpu_data() {
    return new FloatArray(data);
  }

  public FloatArray gpu_data() {
    throw new UnsupportedOperationException("Cannot use GPU in CPU-only Caffe: check mode.");
  }

  /** False: {@code values} is null or has another length. */
  public boolean set_cpu_data(float[] values) {
    if (values == null || values.length != data.length) return false;
    System.arraycopy(values, 0, data, 0, data.length);
    return true;
  }

  /** The values themselves, for bulk copies. */
  public float[] values() {
    return data;
  }
}
