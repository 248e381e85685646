package com.crema.tfrecord

import java.nio.file.{Files, Path}

import org.apache.hadoop.fs.{Path => HadoopPath}
import org.scalatest.funsuite.AnyFunSuite

class SplitReaderSuite extends AnyFunSuite {
  import Frames._
  private val folder = Files.createTempDirectory("split-reader-suite-")
  private val random = new scala.util.Random(9)
  private def bytes(n: Int): Array[Byte] = { val b = new Array[Byte](n); random.nextBytes(b); b }
  private def stored(content: Array[Byte], name: String = "part"): Path = Files.write(folder.resolve(name), content)

  /** Every record once and in order, for every size of splits up to the file's, and for splits of any sizes. */
  private def wholeInSplits(records: Array[Byte]*): Unit = {
    val path = stored(file(records: _*))
    val (size, expected) = (Files.size(path), text(records))
    for (split <- 1L to size) assert(text(inSplits(path, split)) == expected, s"splits of $split bytes")
    for (_ <- 0 until 50) {
      val cuts = (0L +: Seq.fill(random.nextInt(6))(random.nextInt(size.toInt).toLong) :+ size).distinct.sorted
      val found = cuts.zip(cuts.tail).flatMap { case (from, to) => part(path, from, to - from) }
      assert(text(found) == expected, s"splits at $cuts")
    }
  }

  test("plain records") { wholeInSplits(Seq(10, 0, 1, 40, 0, 0, 7, 90, 3).map(bytes): _*) }

  test("one record, and empty ones, whose frames are zeros and constants") {
    wholeInSplits(bytes(60))
    wholeInSplits(Seq.fill(9)(new Array[Byte](0)): _*)
    wholeInSplits(new Array[Byte](100), new Array[Byte](0), new Array[Byte](30))
  }

  test("records that hold TFRecord files, and files in those") {
    val inner = file(bytes(5), bytes(0), bytes(12))
    wholeInSplits(bytes(6), inner, bytes(4), inner, inner)
    val deep = file(inner, bytes(3), inner)
    wholeInSplits(deep, bytes(9), deep)
    // With bytes around them, so that frames begin and end at any place of the record.
    wholeInSplits(bytes(3) ++ inner ++ bytes(1), inner ++ inner, bytes(2) ++ deep)
  }

  test("records that hold pieces of frames: heads without data, cut files, footers") {
    val inner = file(bytes(8), bytes(2))
    wholeInSplits(head(4), head(0) ++ head(0), inner.dropRight(1), inner.drop(1), head(1000), head(20) ++ bytes(3))
    // A head whose length leads to the very start of a later record: its data does not match what is behind it.
    wholeInSplits(head(4 + 12 + 5) ++ Array.emptyByteArray, bytes(5), bytes(30))
  }

  test("a record that holds a chain of many small frames costs one walk over them") {
    val frames = file(Seq.fill(100000)(Array[Byte](1, 2)): _*) // 1.8 MB
    val path = stored(file(bytes(10), frames, bytes(10)))
    val size = Files.size(path)
    val start = System.nanoTime
    for (split <- Seq(size / 2, size / 3, size / 7))
      assert(inSplits(path, split).map(_.length) == Seq(10, frames.length, 10))
    assert(System.nanoTime - start < 60e9) // tried one after the other, the chains would be 10^10 steps
  }

  test("frames that follow one another for longer than a scan goes are refused, not given twice") {
    val inner = file(Seq.fill(300)(new Array[Byte](20000)): _*) // 6 MB, and a scan goes 4 MB
    val path = stored(file(bytes(100), inner, bytes(100)))
    val size = Files.size(path)
    val said = intercept[BadRecord](inSplits(path, 1 << 20)).getMessage
    assert(said.contains("set tensorflow.read.splittable=false (option splittable of the data source)"), said)
    // Near its end the file inside is seen to end before the file that holds it.
    assert(inSplits(path, size - (1 << 20)).map(_.length) == Seq(100, inner.length, 100))
  }

  test("a false chain that leads onto the true one is refused, not given twice") {
    val (third, tail) = (bytes(40), bytes(7))
    // The record ends with a true frame, then a head that leads over its own footer and the second record to the third.
    val second = bytes(25)
    val record = bytes(50) ++ file(bytes(4)) ++ head(4 + 12 + 25)
    val path = stored(file(record, second, third, tail))
    val expected = text(Seq(record, second, third, tail))
    var refused = 0
    for (split <- 1L to Files.size(path))
      try assert(text(inSplits(path, split)) == expected, s"splits of $split bytes")
      catch { case e: BadRecord => assert(e.getMessage.contains("splittable=false"), e.getMessage); refused += 1 }
    assert(refused > 0 && refused < Files.size(path))
    assert(text(part(path, 0, Files.size(path))) == expected)
  }

  test("damage and cuts are an error for every size of splits, and the error names the place") {
    val whole = file(Seq(10, 30, 0, 25).map(bytes): _*)
    val starts = Seq(0, 26, 72, 88)
    for (at <- whole.indices; split <- Seq(1, 5, 16, 17, 30, 64, whole.length)) {
      val damaged = whole.clone
      damaged(at) = (damaged(at) ^ 4).toByte
      val path = stored(damaged)
      val said = intercept[BadRecord](inSplits(path, split)).getMessage
      assert(said.matches(s".* byte ${starts.filter(_ <= at).max}\\b.*"), s"byte $at, splits of $split: $said")
      assert(said.startsWith(s"file:$path: "), said)
    }
    for (length <- 1 until whole.length if !starts.contains(length); split <- Seq(1, 17, 30, whole.length))
      assert(intercept[BadRecord](inSplits(stored(whole.take(length)), split)).getMessage.contains(
          "ends inside the record"))
  }

  test("splits of a large file with records of all sizes") {
    val records =
      Seq.fill(3000)(bytes(random.nextInt(2000))) ++ Seq(bytes(3 << 20)) ++ Seq.fill(3000)(bytes(random.nextInt(3000)))
    val path = stored(file(records: _*))
    for (split <- Seq(100000L, 1L << 20, 5L << 20, (3L << 20) + 1))
      assert(inSplits(path, split).map(java.util.Arrays.hashCode) == records.map(java.util.Arrays.hashCode))
  }

  test("compressed files, by their extension; a damaged or cut one is an error") {
    val records = Seq(10, 0, 70000, 400000, 3).map(bytes)
    for ((extension, codec) <- Seq("gz" -> "GzipCodec", "bz2" -> "BZip2Codec", "deflate" -> "DeflateCodec")) {
      val path = folder.resolve(s"packed.$extension")
      val made = Class.forName(s"org.apache.hadoop.io.compress.$codec").getDeclaredConstructor().newInstance()
      made.asInstanceOf[org.apache.hadoop.conf.Configurable].setConf(conf())
      val writer = FrameWriter.create(new HadoopPath(path.toUri),
        made.asInstanceOf[org.apache.hadoop.io.compress.CompressionCodec], conf())
      records.foreach(r => writer.write(r, 0, r.length))
      writer.close()
      assert(text(part(path, 0, Files.size(path))) == text(records))
      assert(!new FileSplitting(conf()).splittable(new HadoopPath(path.toUri)))
      val packed = Files.readAllBytes(path)
      Files.delete(folder.resolve(s".packed.$extension.crc")) // Hadoop's own sums of the file would find it first
      for (damage <- Seq(packed.take(packed.length / 2),
          packed.updated(packed.length / 2, (packed(packed.length / 2) ^ 8).toByte))) {
        Files.write(path, damage)
        val said = intercept[BadRecord](part(path, 0, damage.length.toLong)).getMessage
        assert(said.startsWith(s"file:$path"), said)
      }
    }
  }

  test("what is not split: compressed files, and on request") {
    val path = new HadoopPath("hdfs://nowhere/part-r-00000")
    assert(new FileSplitting(conf()).splittable(path))
    assert(!new FileSplitting(conf(ReadSettings.SPLITTABLE -> "false")).splittable(path))
    assert(!new FileSplitting(conf(ReadSettings.CRC -> "false")).splittable(path))
  }
}
