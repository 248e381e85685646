package com.crema.tfrecord

import org.scalatest.funsuite.AnyFunSuite

class FrameReaderSuite extends AnyFunSuite {
  import Frames._
  private val random = new scala.util.Random(5)
  private def bytes(n: Int): Array[Byte] = { val b = new Array[Byte](n); random.nextBytes(b); b }

  test("check values of the catalogue of CRCs, masked") {
    // CRC-32C of "123456789" is e3069283, of 32 zero bytes 8a9136aa (RFC 3720, B.4); of nothing 0.
    def masked(crc: Long) = (((crc >>> 15) | (crc << 17)) + 0xa282ead8L).toInt
    val crc = new MaskedCrc
    assert(crc.of("0123456789".getBytes, 1, 9) == masked(0xe3069283L))
    assert(crc.of(new Array[Byte](32), 0, 32) == masked(0x8a9136aaL))
    assert(crc.of(new Array[Byte](0), 0, 0) == masked(0))
  }

  test("records of sizes around the edges of buffers come back, from files of known and unknown size") {
    val sizes = Seq(0, 1, 3, 4, 5, 11, 12, 13, 16, 17, 28, 47, 48, 49, 60, 63, 64, 65, 100, 200, 0, 0, 1)
    val small = sizes.map(bytes)
    for (buffer <- 16 to 80; sized <- Seq(true, false))
      assert(text(records(file(small: _*), sized = sized, buffer = buffer)) == text(small), s"buffer $buffer")
    val edge =
      Seq(262127, 65519, 65520, 65521, 65532, 65533, 262128, 262129, 262140, 262141, 400000, 7, 600000, 600000, 3).map(
        bytes)
    for (sized <- Seq(true, false)) assert(text(records(file(edge: _*), sized = sized)) == text(edge))
  }

  test("a record larger than the first piece of memory of a stream of unknown size") {
    val large = Seq(bytes(40 << 20), bytes(10))
    val back = records(file(large: _*), sized = false)
    assert(back.map(_.length) == large.map(_.length) && back.zip(large).forall { case (a, b) => a.sameElements(b) })
  }

  test("each changed bit is an error that names file and offset") {
    val whole = file(bytes(20), bytes(0), bytes(33))
    val second = 36
    for (at <- whole.indices; bit <- 0 until 8; sized <- Seq(true, false)) {
      val damaged = whole.clone
      damaged(at) = (damaged(at) ^ (1 << bit)).toByte
      val e = intercept[BadRecord](records(damaged, sized = sized))
      assert(e.getMessage.startsWith("a file: "), e.getMessage)
      val offset = if (at < second) 0 else if (at < second + 16) second else second + 16
      assert(e.getMessage.matches(s".* byte $offset\\b.*"), s"byte $at bit $bit: ${e.getMessage}")
    }
  }

  test("a file cut anywhere but between records is an error that says how much is there") {
    val whole = file(bytes(20), bytes(0), bytes(33))
    val ends = Map(0 -> 0, 36 -> 1, 52 -> 2)
    for (length <- 0 until whole.length; sized <- Seq(true, false); buffer <- Seq(16, 1000)) {
      def read() = records(whole.take(length), sized = sized, buffer = buffer)
      if (ends.contains(length)) assert(read().length == ends(length))
      else {
        val start = ends.keys.filter(_ < length).max
        val said = intercept[BadRecord](read()).getMessage
        assert(said.contains(s"ends inside the record that begins at byte $start: of ") &&
            said.contains(s" there are ${length - start};"), said)
      }
    }
  }

  test("lengths that no array has are refused, and no memory is asked for lengths without data") {
    for (length <- Seq(-1L, Long.MinValue, 1L << 31, Int.MaxValue.toLong, Int.MaxValue - 31L)) {
      val said = intercept[BadRecord](records(file(bytes(1)) ++ head(length))).getMessage
      assert(said.contains(s"the record at byte 17 says that it has ${java.lang.Long.toUnsignedString(length)} bytes"))
    }
    // 2 GB are announced and 100 bytes are there: 16 MB are allocated, and the error is about what is missing.
    val before = Runtime.getRuntime.totalMemory
    val said = intercept[BadRecord](records(head(Int.MaxValue - 32L) ++ bytes(100), sized = false)).getMessage
    assert(said.contains("of 2147483631 bytes there are 112;"), said)
    assert(Runtime.getRuntime.totalMemory - before < (1L << 30))
  }

  test("without the check wrong CRCs are passed over") {
    val (one, two) = (bytes(20), bytes(9))
    val damaged = file(one, two)
    for (at <- Seq(8, 33, 36 + 8, 36 + 12 + 9)) damaged(at) = (damaged(at) + 1).toByte
    assert(text(records(damaged, check = false)) == text(Seq(one, two)))
    intercept[BadRecord](records(damaged))
  }

  test("what is no TFRecord file, or a compressed one under another name, is said") {
    assert(intercept[BadRecord](records("id,label\n1,2\n3,4\n".getBytes)).getMessage.contains("it is no TFRecord file"))
    val packed = new java.io.ByteArrayOutputStream
    val gzip = new java.util.zip.GZIPOutputStream(packed)
    gzip.write(file(bytes(50)))
    gzip.close()
    assert(intercept[BadRecord](records(packed.toByteArray)).getMessage.contains("give its name the extension .gz"))
  }
}
