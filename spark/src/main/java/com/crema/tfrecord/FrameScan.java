package com.crema.tfrecord;

import java.io.IOException;
import java.util.HashSet;
import java.util.Set;
import java.util.zip.CRC32C;
import org.apache.hadoop.fs.FSDataInputStream;

/**
 * Finds where records begin in the middle of a file: at the first offset p from which frames follow one another, that
 * is, lengths fit the file and match their CRCs, for FRAMES frames and DEPTH bytes or to the very end of the file, and
 * the data of the frame at p matches its CRC.
 *
 * A random hit passes one CRC in 2^32 offsets, and two or more after another. Frames inside a record (a record that
 * holds a TFRecord file) pass as well, but their chain ends with the file that they belong to: within DEPTH bytes, or
 * the scan is wrong there and SplitReader refuses the file. Offsets on a chain that broke are not tried again, so that
 * a record with n frames inside costs n steps and not n^2.
 *
 * The answer depends on the file and the offset alone; SplitReader relies on it.
 */
final class FrameScan {
  static final long DEPTH = 4L << 20;
  static final int FRAMES = 16;
  private static final int WINDOW = 64 << 10;

  private final FSDataInputStream in;
  private final long size;
  private final MaskedCrc crc = new MaskedCrc();
  private final byte[] window = new byte[WINDOW];
  private long at; // window[0 .. filled) are the file's bytes from here on
  private int filled;
  private final Set<Long> broken = new HashSet<>();

  FrameScan(FSDataInputStream in, long size) {
    this.in = in;
    this.size = size;
  }

  /** The first offset of a record not before `from`, or the file's size. */
  long first(long from) throws IOException {
    long last = size - FrameReader.AROUND;
    for (long p = from; p <= last; p++) {
      int i = see(p, FrameReader.HEADER);
      // Offsets whose length is not below 2^31 are most; they are passed without a call.
      int end = (int) Math.min(filled - FrameReader.HEADER, last - at);
      while (i < end && ((long) FrameReader.LONG.get(window, i) >>> 31) != 0) i++;
      p = at + i;
      if (length(p) >= 0 && chained(p) && dataMatches(p)) return p;
    }
    return size;
  }

  /** Whether frames follow one another from p on. */
  private boolean chained(long p) throws IOException {
    Set<Long> passed = new HashSet<>();
    long q = p;
    for (int frames = 0; q != size && (frames < FRAMES || q - p < DEPTH); frames++) {
      long n = broken.contains(q) ? -1 : length(q);
      if (n < 0) {
        broken.addAll(passed);
        return false;
      }
      passed.add(q);
      q += FrameReader.AROUND + n;
    }
    return true;
  }

  /** The length in the head at p, or -1 when there is no head that fits the file and its CRC. */
  private long length(long p) throws IOException {
    if (p > size - FrameReader.AROUND) return -1;
    int i = see(p, FrameReader.HEADER);
    long n = (long) FrameReader.LONG.get(window, i);
    if (n < 0 || n > FrameReader.LARGEST || n > size - p - FrameReader.AROUND) return -1;
    return (int) FrameReader.INT.get(window, i + 8) == crc.of(window, i, 8) ? n : -1;
  }

  private boolean dataMatches(long p) throws IOException {
    long left = length(p);
    long q = p + FrameReader.HEADER;
    CRC32C sum = new CRC32C();
    while (left > 0) {
      int i = see(q, 1);
      int n = (int) Math.min(left, filled - i);
      sum.update(window, i, n);
      q += n;
      left -= n;
    }
    int i = see(q, FrameReader.FOOTER);
    return (int) FrameReader.INT.get(window, i) == MaskedCrc.mask((int) sum.getValue());
  }

  /** Brings the bytes [p, p + n) of the file, which must have them, into the window. @return their place in it */
  private int see(long p, int n) throws IOException {
    if (p < at || p + n > at + filled) {
      in.seek(p);
      at = p;
      filled = 0;
      int most = (int) Math.min(WINDOW, size - p);
      while (filled < most) {
        int more = in.read(window, filled, most - filled);
        if (more < 0) throw new BadRecord("the file became shorter than " + size + " bytes while it was read");
        filled += more;
      }
    }
    return (int) (p - at);
  }
}
