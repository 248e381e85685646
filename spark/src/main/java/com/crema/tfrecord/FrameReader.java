package com.crema.tfrecord;

import java.io.IOException;
import java.io.InputStream;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;

/**
 * The frames of a TFRecord file, one after the other. A frame, all numbers little-endian:
 *
 * <pre>u64 length | u32 masked CRC-32C of these 8 bytes | data | u32 masked CRC-32C of the data</pre>
 *
 * A record that fits the buffer is checked and handed out where it lies; a larger one gets an array of its own, which
 * grows as bytes arrive where the file's size is not known (compressed files), so that a wrong length cannot ask for
 * memory that no data fills. Not for several threads.
 */
public final class FrameReader {
  static final int HEADER = 12;
  static final int FOOTER = 4;
  static final int AROUND = HEADER + FOOTER;
  /** The longest record: a JVM's array holds no more than about 2^31 bytes. */
  static final int LARGEST = Integer.MAX_VALUE - 32;
  static final int BUFFER = 256 << 10;
  private static final int FIRST_PIECE = 16 << 20;
  static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);

  private final InputStream in;
  private final String name;
  private final long size;
  private final boolean check;
  private final MaskedCrc crc = new MaskedCrc();
  private final byte[] buffer;
  private int at; // buffer[at .. limit) is read and not handed out
  private int limit;
  private long base; // offset in the file of buffer[0]
  private byte[] spare; // for records that do not fit the buffer

  private byte[] data;
  private int start;
  private int length;
  private long offset;

  /**
   * @param in stands at `from`, where a frame begins; it is not closed here
   * @param name of the file, for messages
   * @param size of the file in bytes, or -1 where it is not known
   * @param check whether CRCs are compared
   */
  FrameReader(InputStream in, String name, long from, long size, boolean check, int bufferBytes) {
    this.in = in;
    this.name = name;
    this.base = from;
    this.size = size;
    this.check = check;
    this.buffer = new byte[Math.max(AROUND, bufferBytes)];
  }

  /** The offset of the frame that next() reads. */
  long position() {
    return base + at;
  }

  /**
   * Goes to the next record.
   *
   * @return false at the end of the file
   * @throws BadRecord when the file is damaged or cut, with its name, the frame's offset and a remedy
   */
  boolean next() throws IOException {
    offset = position();
    int there = fill(HEADER);
    if (there == 0) return false;
    if (there < HEADER) throw cut(there, "the " + HEADER + " bytes of its head");
    long said = (long) LONG.get(buffer, at);
    int sum = (int) INT.get(buffer, at + 8);
    if (check) compareHead(sum, crc.of(buffer, at, 8));
    if (said < 0 || said > LARGEST) throw tooLong(said);
    if (size >= 0 && said > size - offset - AROUND) throw cut(size - offset, (AROUND + said) + " bytes");
    at += HEADER;
    length = (int) said;
    if (length <= buffer.length - FOOTER)
      inBuffer();
    else
      inOwnArray();
    return true;
  }

  private void inBuffer() throws IOException {
    int there = fill(length + FOOTER);
    if (there < length + FOOTER) throw cut(HEADER + there, (AROUND + (long) length) + " bytes");
    data = buffer;
    start = at;
    at += length;
    compareData();
  }

  private void inOwnArray() throws IOException {
    if (spare == null || spare.length < length)
      spare = new byte[size >= 0 ? length : Math.min(length, Math.max(FIRST_PIECE, 2 * (limit - at)))];
    int have = Math.min(limit - at, length);
    System.arraycopy(buffer, at, spare, 0, have);
    at += have;
    while (have < length) {
      if (have == spare.length) spare = Arrays.copyOf(spare, (int) Math.min(length, 2L * have));
      int n = in.read(spare, have, Math.min(spare.length, length) - have);
      if (n < 0) throw cut(HEADER + have, (AROUND + (long) length) + " bytes");
      have += n;
    }
    if (at == limit) {
      base = offset + HEADER + length;
      at = limit = 0;
    }
    if (fill(FOOTER) < FOOTER) throw cut(HEADER + length + (limit - at), (AROUND + (long) length) + " bytes");
    data = spare;
    start = 0;
    compareData();
  }

  /** Reads until buffer[at ..) has n bytes or the file ends. @return how many of the n there are */
  private int fill(int n) throws IOException {
    if (limit - at >= n) return n;
    if (buffer.length - at < n || at == limit) {
      System.arraycopy(buffer, at, buffer, 0, limit - at);
      base += at;
      limit -= at;
      at = 0;
    }
    while (limit - at < n) {
      int more = in.read(buffer, limit, buffer.length - limit);
      if (more < 0) return limit - at;
      limit += more;
    }
    return n;
  }

  private void compareHead(int written, int computed) throws BadRecord {
    if (written == computed) return;
    boolean gzip = offset == 0 && buffer[at] == 0x1f && buffer[at + 1] == (byte) 0x8b;
    String remedy = gzip ? "it looks compressed by gzip; give its name the extension .gz"
        : offset == 0 ? "it is no TFRecord file, or its name lacks the extension of its compression, or it is damaged"
                      : "the file is damaged here or in the record before; write or copy it again";
    throw new BadRecord(String.format("%s: no record begins at byte %d: the CRC-32C of its length is %08x, and %08x is "
            + "written behind it; %s",
        name, offset, computed, written, remedy));
  }

  private void compareData() throws BadRecord {
    int written = (int) INT.get(buffer, at);
    at += FOOTER;
    if (!check) return;
    int computed = crc.of(data, start, length);
    if (written == computed) return;
    throw new BadRecord(String.format("%s: the record at byte %d is damaged: the CRC-32C of its %d bytes is %08x, and "
            + "%08x is written behind them; write or copy the file again, or set %s=false to read it as it is",
        name, offset, length, computed, written, ReadSettings.CRC));
  }

  private BadRecord tooLong(long said) {
    return new BadRecord(name + ": the record at byte " + offset + " says that it has " + Long.toUnsignedString(said)
        + " bytes; at most " + LARGEST + " fit into a Java array: write such data as several records, and if it is not "
        + "that large, the file is damaged");
  }

  private BadRecord cut(long there, String wanted) {
    return new BadRecord(name + ": the file ends inside the record that begins at byte " + offset + ": of " + wanted
        + " there are " + there + "; it was cut while it was written or copied: write or copy it again");
  }

  /** The record lies in bytes()[start() .. start() + length()), until the next call of next(). */
  public byte[] bytes() {
    return data;
  }

  public int start() {
    return start;
  }

  public int length() {
    return length;
  }

  /** Where the record's frame begins in the file, or in what a compressed file holds. */
  public long offset() {
    return offset;
  }

  /** The record in an array of exactly its length, which the caller keeps. */
  byte[] take() {
    if (data == spare && spare.length == length) {
      spare = null;
      return data;
    }
    return Arrays.copyOfRange(data, start, start + length);
  }
}
