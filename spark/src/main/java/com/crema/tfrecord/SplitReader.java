package com.crema.tfrecord;

import java.io.Closeable;
import java.io.IOException;
import java.io.InputStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.compress.CodecPool;
import org.apache.hadoop.io.compress.CompressionCodec;
import org.apache.hadoop.io.compress.CompressionCodecFactory;
import org.apache.hadoop.io.compress.Decompressor;

/**
 * The records of a split: those whose frames begin in [start, end) of a file. The splits of a file give every record
 * once, or one of them fails:
 *
 * The first split begins with the file. Each split goes on from frame to frame until it is at or behind its end, at b.
 * The next split begins at h = FrameScan.first(end). A split that knows b therefore computes h too, and fails unless
 * h = b. So if the start of a split is right and it does not fail, the start of the next one is right; by induction all
 * are. Cost: FrameScan.DEPTH bytes at each end, which the next split reads anyway.
 *
 * An index of all frames was decided against: it is exact without a check, but whoever makes it reads all lengths
 * first, and with small records that is the whole file.
 */
public final class SplitReader implements Closeable {
  private final String name;
  private final FSDataInputStream file;
  private final CompressionCodec codec;
  private final Decompressor decompressor;
  private final long start;
  private final long end;
  private final long size;
  private final boolean check;
  private final FrameReader frames;
  private boolean done;
  private boolean closed;

  /**
   * @param length bytes of the split; a compressed file is one split
   * @throws BadRecord when the file is damaged
   */
  public SplitReader(Path path, long start, long length, Configuration conf) throws IOException {
    FileSystem fs = path.getFileSystem(conf);
    this.name = path.toString();
    this.size = fs.getFileStatus(path).getLen();
    this.check = ReadSettings.checksCrc(conf);
    this.codec = new CompressionCodecFactory(conf).getCodec(path);
    this.start = start;
    this.end = Math.min(start + length, size);
    this.file = fs.open(path, ReadSettings.bufferBytes(conf));
    this.decompressor = codec == null ? null : CodecPool.getDecompressor(codec);
    try {
      this.frames = begin();
    } catch (IOException | RuntimeException e) {
      close();
      throw e;
    }
  }

  private FrameReader begin() throws IOException {
    if (codec != null) return new FrameReader(content(), name + " (decompressed)", 0, -1, check, FrameReader.BUFFER);
    long first = start == 0 ? 0 : new FrameScan(file, size).first(start);
    file.seek(first);
    return new FrameReader(file, name, first, size, check, FrameReader.BUFFER);
  }

  private InputStream content() throws IOException {
    try {
      return codec.createInputStream(file, decompressor);
    } catch (IOException | RuntimeException e) {
      throw broken(0, e);
    }
  }

  /**
   * Goes to the next record.
   *
   * @throws BadRecord when the file is damaged, or when the next split would begin at another place than this one ends
   */
  public boolean next() throws IOException {
    if (done) return false;
    if (codec == null && frames.position() >= end) {
      compareEnds();
      done = true;
    } else {
      done = !advance();
    }
    return !done;
  }

  private boolean advance() throws IOException {
    if (codec == null) return frames.next();
    try {
      return frames.next();
    } catch (BadRecord e) {
      throw e;
    } catch (IOException | RuntimeException | InternalError e) { // codecs know all three
      throw broken(frames.position(), e);
    }
  }

  private BadRecord broken(long at, Throwable e) {
    return new BadRecord(name + ": " + codec.getClass().getSimpleName() + " cannot unpack it behind byte " + at
            + " of its content: " + e.getMessage() + "; the file is cut or damaged: write or copy it again",
        e);
  }

  private void compareEnds() throws IOException {
    long mine = frames.position();
    if (end >= size) return;
    long next = new FrameScan(file, size).first(end);
    if (next == mine) return;
    // Damage behind this split leads the scan past it; whoever reads on from here meets it and says where.
    file.seek(mine);
    FrameReader on = new FrameReader(file, name, mine, size, true, FrameReader.BUFFER);
    while (on.position() < next && on.next()) {
    }
    throw new BadRecord(name + ": the records before byte " + end + " end at " + mine
        + ", and a scan from there on finds "
        + "the next one at " + next + ", as where records hold whole TFRecord files; set " + ReadSettings.SPLITTABLE
        + "=false (option splittable of the data source), so that one task reads the file");
  }

  /** The record that next() went to. */
  public FrameReader record() {
    return frames;
  }

  /** The record in an array of exactly its length, which the caller keeps. */
  public byte[] take() {
    return frames.take();
  }

  /** For messages: the file and where the record begins. */
  public String where() {
    return name + ", record at byte " + frames.offset() + (codec == null ? "" : " of the decompressed content");
  }

  /** From 0 to 1. */
  public float progress() throws IOException {
    if (done || end == start) return 1;
    long at = codec == null ? frames.position() : file.getPos();
    return Math.max(0f, Math.min(1f, (at - start) / (float) (end - start)));
  }

  @Override
  public void close() throws IOException {
    if (closed) return;
    closed = true;
    try {
      file.close();
    } finally {
      CodecPool.returnDecompressor(decompressor);
    }
  }
}
