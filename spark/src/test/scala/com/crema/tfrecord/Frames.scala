package com.crema.tfrecord

import java.io.{ByteArrayInputStream, ByteArrayOutputStream}
import java.nio.{ByteBuffer, ByteOrder}
import java.nio.file.{Files, Path}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{Path => HadoopPath}

/** What the suites of TFRecords share: files of records, and their records again. */
object Frames {
  private val plain = new Configuration() // reads Hadoop's files, once

  def conf(settings: (String, String)*): Configuration = {
    if (settings.isEmpty) return plain
    val made = new Configuration(plain)
    settings.foreach { case (key, value) => made.set(key, value) }
    made
  }

  /** The bytes of a TFRecord file. */
  def file(records: Array[Byte]*): Array[Byte] = {
    val out = new ByteArrayOutputStream
    val writer = new FrameWriter(out)
    records.foreach(r => writer.write(r, 0, r.length))
    writer.close()
    out.toByteArray
  }

  /** A frame of 12 bytes that says how long its data is, with the right CRC, and nothing behind it. */
  def head(length: Long): Array[Byte] = {
    val bytes = ByteBuffer.allocate(12).order(ByteOrder.LITTLE_ENDIAN).putLong(length)
    bytes.putInt(new MaskedCrc().of(bytes.array, 0, 8)).array
  }

  /** The records of the bytes, read from a stream. */
  def records(bytes: Array[Byte], check: Boolean = true, sized: Boolean = true,
      buffer: Int = FrameReader.BUFFER): Seq[Array[Byte]] = {
    val size = if (sized) bytes.length else -1
    val reader = new FrameReader(new ByteArrayInputStream(bytes), "a file", 0, size, check, buffer)
    Iterator.continually(reader.next()).takeWhile(identity).map(_ => reader.take()).toList
  }

  /** The records of the part [start, start + length) of a file. */
  def part(path: Path, start: Long, length: Long, settings: Configuration = conf()): Seq[Array[Byte]] = {
    val reader = new SplitReader(new HadoopPath(path.toUri), start, length, settings)
    try Iterator.continually(reader.next()).takeWhile(identity).map(_ => reader.take()).toList
    finally reader.close()
  }

  /** All records, read in splits of this size. */
  def inSplits(path: Path, split: Long): Seq[Array[Byte]] =
    (0L until Files.size(path) by split).flatMap(start => part(path, start, split))

  /** In hex, which compares and prints. */
  def text(records: Seq[Array[Byte]]): Seq[String] =
    records.map(r => new String(r.flatMap(b => Array(Digits((b >> 4) & 15), Digits(b & 15)))))
  private val Digits = "0123456789abcdef".toCharArray
}
