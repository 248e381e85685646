package com.yahoo.ml.jcaffe;

/** The values of a blob, by index. */
public class FloatArray {
  private final float[] values;

  FloatArray(float[] values) {
    this.values = values;
  }

  /**
   * The value at {@code index}; 0 for a negative one, as in CaffeOnSpark.
   *
   * @throws ArrayIndexOutOfBoundsException beyond the end
   */
  public float get(int index) {
    return index < 0 ? 0f : values[index];
  }

  /** @throws ArrayIndexOutOfBoundsException for an index outside the array */
  public void set(int index, float value) {
    values[index] = value;
  }
}
