package com.crema.tfrecord;

import java.io.Closeable;
import java.io.IOException;
import java.io.OutputStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.compress.CodecPool;
import org.apache.hadoop.io.compress.CompressionCodec;
import org.apache.hadoop.io.compress.Compressor;
import org.apache.hadoop.io.compress.GzipCodec;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.util.ReflectionUtils;

/** Writes records as frames (see FrameReader), one large write for many small ones. Not for several threads. */
public final class FrameWriter implements Closeable {
  private static final int BUFFER = 64 << 10;

  private final OutputStream out;
  private final CompressionCodec codec;
  private final Compressor compressor;
  private final MaskedCrc crc = new MaskedCrc();
  private final byte[] buffer = new byte[BUFFER];
  private int used;
  private boolean closed;

  private FrameWriter(OutputStream out, CompressionCodec codec, Compressor compressor) {
    this.out = out;
    this.codec = codec;
    this.compressor = compressor;
  }

  FrameWriter(OutputStream out) {
    this(out, null, null);
  }

  /** The codec that Hadoop's settings of a job's output name (FileOutputFormat.setCompressOutput), or null. */
  public static CompressionCodec codec(JobContext job) {
    if (!FileOutputFormat.getCompressOutput(job)) return null;
    return ReflectionUtils.newInstance(
        FileOutputFormat.getOutputCompressorClass(job, GzipCodec.class), job.getConfiguration());
  }

  /**
   * Makes a file, over one that is there.
   *
   * @param codec of its content, or null; the name's extension is the caller's
   */
  public static FrameWriter create(Path path, CompressionCodec codec, Configuration conf) throws IOException {
    OutputStream file = path.getFileSystem(conf).create(path, true, ReadSettings.bufferBytes(conf));
    if (codec == null) return new FrameWriter(file, null, null);
    Compressor compressor = CodecPool.getCompressor(codec, conf);
    return new FrameWriter(codec.createOutputStream(file, compressor), codec, compressor);
  }

  public void write(byte[] bytes, int from, int length) throws IOException {
    if (buffer.length - used < FrameReader.HEADER) flush();
    FrameReader.LONG.set(buffer, used, (long) length);
    FrameReader.INT.set(buffer, used + 8, crc.of(buffer, used, 8));
    used += FrameReader.HEADER;
    int sum = crc.of(bytes, from, length);
    if (length > buffer.length - FrameReader.FOOTER) {
      flush();
      out.write(bytes, from, length);
    } else {
      if (buffer.length - used < length + FrameReader.FOOTER) flush();
      System.arraycopy(bytes, from, buffer, used, length);
      used += length;
    }
    FrameReader.INT.set(buffer, used, sum);
    used += FrameReader.FOOTER;
  }

  private void flush() throws IOException {
    out.write(buffer, 0, used);
    used = 0;
  }

  @Override
  public void close() throws IOException {
    if (closed) return;
    closed = true;
    try (OutputStream stream = out) {
      flush();
    } finally {
      if (codec != null) CodecPool.returnCompressor(compressor);
    }
  }
}
