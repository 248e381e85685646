package com.crema.tfrecord;

/**
 * Writes a tf.train.Example (ExampleParser has its layout) from its end to its beginning: when a length is due, what
 * it counts has been written, so that one pass is enough. Features, and values in them, are therefore given last first.
 * The object is used again; its buffer grows and stays. Not for several threads.
 */
public final class ExampleBuilder {
  private byte[] bytes = new byte[4096];
  private int at = bytes.length; // the message so far is bytes[at ..)
  private int behind; // bytes that were there when the feature began

  public void begin() {
    at = bytes.length;
  }

  public void beginFeature() {
    behind = written();
  }

  public void addLong(long value) throws BadRecord {
    putVarint(value);
  }

  public void addFloat(float value) throws BadRecord {
    reserve(4);
    FrameReader.INT.set(bytes, at, Float.floatToRawIntBits(value));
  }

  public void addBytes(byte[] value) throws BadRecord {
    reserve(value.length);
    System.arraycopy(value, 0, bytes, at, value.length);
    putVarint(value.length);
    putTag(1);
  }

  /**
   * @param kind FeatureValues.BYTES, FLOAT or INT64: of what the values since beginFeature() are
   * @param name in UTF-8
   */
  public void endFeature(int kind, byte[] name) throws BadRecord {
    if (kind != FeatureValues.BYTES && written() > behind) wrap(1); // packed
    wrap(kind);
    wrap(2);
    addBytes(name);
    wrap(1);
  }

  /** Closes the message, which is then array()[offset() ..). */
  public void end() throws BadRecord {
    behind = 0;
    wrap(1);
  }

  /** Makes what was written since beginFeature() the field of this number. */
  private void wrap(int field) throws BadRecord {
    putVarint(written() - behind);
    putTag(field);
  }

  private void putTag(int field) throws BadRecord {
    reserve(1);
    bytes[at] = (byte) (field << 3 | WireCursor.BYTES);
  }

  private void putVarint(long value) throws BadRecord {
    int n = value == 0 ? 1 : (70 - Long.numberOfLeadingZeros(value)) / 7;
    reserve(n);
    long left = value;
    for (int i = 0; i<n - 1; i++, left>>>= 7) bytes[at + i] = (byte) (left | 0x80);
    bytes[at + n - 1] = (byte) left;
  }

  private int written() {
    return bytes.length - at;
  }

  private void reserve(int n) throws BadRecord {
    if (at < n) {
      int there = written();
      long wanted = (long) there + n;
      if (wanted > FrameReader.LARGEST)
        throw new BadRecord(
            "a row becomes a record of more than " + FrameReader.LARGEST + " bytes; write it as several rows");
      byte[] larger = new byte[(int) Math.min(FrameReader.LARGEST, Math.max(2L * bytes.length, wanted))];
      System.arraycopy(bytes, at, larger, larger.length - there, there);
      bytes = larger;
      at = larger.length - there;
    }
    at -= n;
  }

  public byte[] array() {
    return bytes;
  }

  public int offset() {
    return at;
  }

  public int length() {
    return written();
  }
}
