package com.crema.tfrecord;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.compress.CompressionCodecFactory;

/**
 * Whether several tasks can read a file. Not what a codec packs, and not where no CRC is checked, as the first frame of
 * a split is known by its CRCs.
 */
public final class FileSplitting {
  private final boolean asked;
  private final CompressionCodecFactory codecs;

  public FileSplitting(Configuration conf) {
    asked = conf.getBoolean(ReadSettings.SPLITTABLE, true) && ReadSettings.checksCrc(conf);
    codecs = new CompressionCodecFactory(conf);
  }

  public boolean splittable(Path path) {
    return asked && codecs.getCodec(path) == null;
  }
}
