package com.crema.tfrecord;

import org.apache.hadoop.conf.Configuration;

/** The settings of reading, as keys of a Hadoop Configuration. */
public final class ReadSettings {
  /** Whether CRCs are compared (true). */
  public static final String CRC = "tensorflow.read.crc32check";
  /** Whether a file may be read by several tasks (true). */
  public static final String SPLITTABLE = "tensorflow.read.splittable";
  private static final String BUFFER = "io.file.buffer.size";

  private ReadSettings() {}

  public static boolean checksCrc(Configuration conf) {
    return conf.getBoolean(CRC, true);
  }

  /** Of Hadoop's streams; reads and writes of ours are larger than its default and pass it by. */
  static int bufferBytes(Configuration conf) {
    return conf.getInt(BUFFER, 4096);
  }
}
