package com.crema.tfrecord;

/** Reads the fields of a protobuf message that lies in bytes[at .. end). All methods refuse to read past the end. */
final class WireCursor {
  static final int VARINT = 0;
  static final int FIXED64 = 1;
  static final int BYTES = 2;
  static final int FIXED32 = 5;

  byte[] bytes;
  int at;
  int end;

  void set(byte[] in, int from, int to) {
    bytes = in;
    at = from;
    end = to;
  }

  boolean more() {
    return at < end;
  }

  /** field number << 3 | wire type */
  int tag() throws BadRecord {
    int tag = (int) varint();
    if (tag >>> 3 == 0) throw broken("a field has number 0");
    return tag;
  }

  long varint() throws BadRecord {
    if (at < end && bytes[at] >= 0) return bytes[at++];
    long value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at >= end) throw broken("it ends inside a number");
      byte b = bytes[at++];
      value |= (long) (b & 0x7f) << shift;
      if (b >= 0) return value;
    }
    throw broken("a number has more than ten bytes");
  }

  /** The number of bytes of a field of wire type BYTES, which begin at `at`. */
  int length() throws BadRecord {
    long n = varint();
    if (n < 0 || n > end - at)
      throw broken("a field has " + Long.toUnsignedString(n) + " bytes and " + (end - at) + " are left");
    return (int) n;
  }

  int fixed32() throws BadRecord {
    if (end - at < 4) throw broken("it ends inside a number");
    int value = (int) FrameReader.INT.get(bytes, at);
    at += 4;
    return value;
  }

  /** Passes the field whose tag was read. */
  void skip(int tag) throws BadRecord {
    int n;
    switch (tag & 7) {
      case VARINT:
        varint();
        return;
      case FIXED64:
        n = 8;
        break;
      case BYTES:
        n = length();
        break;
      case FIXED32:
        n = 4;
        break;
      default:
        throw broken("a field has wire type " + (tag & 7));
    }
    if (n > end - at) throw broken("it ends inside a field");
    at += n;
  }

  static BadRecord broken(String what) {
    return new BadRecord("the record is no tf.train.Example: " + what
        + "; a file of other records is read with the option recordType=ByteArray");
  }
}
