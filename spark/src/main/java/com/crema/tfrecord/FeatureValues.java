package com.crema.tfrecord;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/**
 * The values of one tf.train.Feature:
 *
 * <pre>message Feature { oneof kind { BytesList bytes_list = 1; FloatList float_list = 2; Int64List int64_list = 3; } }
 * message BytesList { repeated bytes value = 1; }
 * message FloatList { repeated float value = 1 [packed]; }
 * message Int64List { repeated int64 value = 1 [packed]; }</pre>
 *
 * Numbers may also come unpacked, and lists in pieces, as protobuf allows. The object is used again for other features:
 * the arrays grow and stay, `count` says how much of them holds values.
 */
public final class FeatureValues {
  public static final int NONE = 0;
  public static final int BYTES = 1;
  public static final int FLOAT = 2;
  public static final int INT64 = 3;

  public int kind;
  public int count;
  public long[] longs = new long[16];
  public float[] floats = new float[16];
  /** Value i of a bytes_list is bytes[starts[i] .. ends[i]). */
  public byte[] bytes;
  public int[] starts = new int[4];
  public int[] ends = new int[4];
  private final WireCursor feature = new WireCursor();
  private final WireCursor list = new WireCursor();

  /** Reads the Feature in b[from .. to), whose bytes must stay while the values are used. */
  public void read(byte[] b, int from, int to) throws BadRecord {
    kind = NONE;
    count = 0;
    bytes = b;
    feature.set(b, from, to);
    while (feature.more()) {
      int tag = feature.tag();
      int field = tag >>> 3;
      if ((tag & 7) != WireCursor.BYTES || field < BYTES || field > INT64) {
        feature.skip(tag);
        continue;
      }
      if (kind != field) count = 0; // of a oneof, the last one counts; pieces of the same one are joined
      kind = field;
      int n = feature.length();
      list.set(b, feature.at, feature.at + n);
      feature.at += n;
      readList();
    }
  }

  private void readList() throws BadRecord {
    while (list.more()) {
      int tag = list.tag();
      int type = tag & 7;
      if (tag >>> 3 != 1)
        list.skip(tag);
      else if (kind == BYTES && type == WireCursor.BYTES)
        addBytes();
      else if (kind == INT64 && type == WireCursor.BYTES)
        addPackedLongs();
      else if (kind == INT64 && type == WireCursor.VARINT)
        addLong(list.varint());
      else if (kind == FLOAT && type == WireCursor.BYTES)
        addPackedFloats();
      else if (kind == FLOAT && type == WireCursor.FIXED32)
        addFloat(Float.intBitsToFloat(list.fixed32()));
      else
        list.skip(tag);
    }
  }

  private void addBytes() throws BadRecord {
    int n = list.length();
    if (count == starts.length) {
      starts = Arrays.copyOf(starts, 2 * count);
      ends = Arrays.copyOf(ends, 2 * count);
    }
    starts[count] = list.at;
    list.at += n;
    ends[count++] = list.at;
  }

  private void addLong(long value) {
    if (count == longs.length) longs = Arrays.copyOf(longs, 2 * count);
    longs[count++] = value;
  }

  private void addFloat(float value) {
    if (count == floats.length) floats = Arrays.copyOf(floats, 2 * count);
    floats[count++] = value;
  }

  private void addPackedLongs() throws BadRecord {
    int n = list.length();
    int outer = list.end;
    list.end = list.at + n;
    while (list.more()) addLong(list.varint());
    list.end = outer;
  }

  private void addPackedFloats() throws BadRecord {
    int n = list.length();
    if (n % 4 != 0) throw WireCursor.broken("packed floats have " + n + " bytes, no multiple of 4");
    int values = n / 4;
    if (floats.length - count < values) floats = Arrays.copyOf(floats, Math.max(2 * count, count + values));
    ByteBuffer.wrap(bytes, list.at, n).order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer().get(floats, count, values);
    count += values;
    list.at += n;
  }
}
