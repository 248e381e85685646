package com.crema.tfrecord;

import java.util.zip.CRC32C;

/**
 * The check sum of TFRecords: masked(c) = (c rotated right by 15 bits) + 0xa282ead8 of the CRC-32C c, so that a sum
 * over bytes that hold such sums stays a good one. java.util.zip.CRC32C is one instruction for eight bytes on x86-64; a
 * table of ours, for Java 8, was decided against, as this jar needs Java 11.
 */
final class MaskedCrc {
  private final CRC32C crc = new CRC32C();

  static int mask(int crc) {
    return Integer.rotateRight(crc, 15) + 0xa282ead8;
  }

  int of(byte[] bytes, int from, int length) {
    crc.reset();
    crc.update(bytes, from, length);
    return mask((int) crc.getValue());
  }
}
