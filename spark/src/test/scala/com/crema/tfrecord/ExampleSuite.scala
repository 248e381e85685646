package com.crema.tfrecord

import java.nio.charset.StandardCharsets.UTF_8

import org.scalatest.funsuite.AnyFunSuite

/** Bytes on the wire, written here by hand after protobuf's encoding. */
class ExampleSuite extends AnyFunSuite {
  private def of(values: Int*): Array[Byte] = values.map(_.toByte).toArray
  private def field(number: Int, content: Array[Byte]): Array[Byte] = of(number << 3 | 2, content.length) ++ content
  private def entry(name: String, feature: Array[Byte]) = field(1, field(1, name.getBytes(UTF_8)) ++ field(2, feature))
  private def example(entries: Array[Byte]*) = field(1, entries.fold(of())(_ ++ _))

  /** name -> kind and values, in the order of the features. */
  private def parsed(bytes: Array[Byte]): Seq[(String, (Int, Seq[Any]))] = {
    val found = Seq.newBuilder[(String, (Int, Seq[Any]))]
    val v = new FeatureValues
    new ExampleParser().parse(
      of(1, 2) ++ bytes ++ of(3),
      2,
      2 + bytes.length,
      (b, nameFrom, nameTo, from, to) => {
        v.read(b, from, to)
        val values: Seq[Any] = v.kind match {
          case FeatureValues.INT64 => v.longs.take(v.count).toSeq
          case FeatureValues.FLOAT => v.floats.take(v.count).toSeq
          case FeatureValues.BYTES =>
            (0 until v.count).map(i => new String(b, v.starts(i), v.ends(i) - v.starts(i), UTF_8))
          case FeatureValues.NONE => Nil
        }
        found += new String(b, nameFrom, nameTo - nameFrom, UTF_8) -> ((v.kind, values))
      }
    )
    found.result()
  }

  test("the three kinds, packed and not, in pieces, and empty") {
    val packed = field(3, field(1, of(3, 0x96, 0x01))) // 150 is 96 01
    assert(parsed(example(entry("a", packed))) == Seq("a" -> ((3, Seq(3L, 150L)))))
    assert(parsed(example(entry("a", field(3, of(8, 5, 8, 6) ++ field(1, of(7)))))) == Seq("a" -> ((3,
      Seq(5L, 6L, 7L)))))
    assert(parsed(example(entry("a", field(3, field(1, of(1))) ++ field(3, field(1, of(2)))))) == Seq("a" -> ((3,
      Seq(1L, 2L)))))
    val one = of(0, 0, 0x80, 0x3f)
    assert(parsed(example(entry("f", field(2, field(1, one ++ of(0, 0, 0, 0xc0)))))) == Seq("f" -> ((2, Seq(1f, -2f)))))
    assert(parsed(example(entry("f", field(2, of(0x0d) ++ one)))) == Seq("f" -> ((2, Seq(1f)))))
    assert(parsed(example(entry("s", field(1, field(1, "né".getBytes(UTF_8)) ++ field(1, of()))))) == Seq("s" -> ((1,
      Seq("né", "")))))
    for (kind <- 1 to 3) assert(parsed(example(entry("e", field(kind, of())))) == Seq("e" -> ((kind, Nil))))
    assert(parsed(example(entry("n", of()))) == Seq("n" -> ((0, Nil))))
    assert(parsed(of()).isEmpty && parsed(example()).isEmpty)
  }

  test("the last member of a oneof counts; values may stand before names; unknown fields are passed over") {
    assert(parsed(example(entry("a", field(1, field(1, of(65))) ++ field(3, field(1, of(4)))))) == Seq("a" -> ((3,
      Seq(4L)))))
    val turned = field(1, field(2, field(3, field(1, of(9)))) ++ field(1, of(120)))
    assert(parsed(example(turned)) == Seq("x" -> ((3, Seq(9L)))))
    val unknown =
      of(15 << 3, 1) ++ of(14 << 3 | 1, 1, 2, 3, 4, 5, 6, 7, 8) ++ of(13 << 3 | 5, 1, 2, 3, 4) ++ field(12, of(1))
    val feature = unknown ++ field(3, unknown ++ field(1, of(9)) ++ unknown) ++ unknown
    assert(parsed(unknown ++ field(1, unknown ++ field(1, unknown ++ field(1, of(120)) ++ field(2, feature)))) ==
      Seq("x" -> ((3, Seq(9L)))))
    assert(parsed(example(entry("a", field(3, field(1, of(1))))) ++ example(entry("b", of()))).map(_._1) == Seq("a",
      "b"))
  }

  test("what is no Example is an error and nothing else, however it is damaged") {
    val whole =
      example(entry("name", field(1, field(1, of(65, 66)))), entry("n", field(3, field(1, of(3, 0x96, 0x01)))),
        entry("f", field(2, field(1, of(0, 0, 0x80, 0x3f)))))
    for (length <- 1 until whole.length) intercept[BadRecord](parsed(whole.take(length)))
    val random = new scala.util.Random(3)
    var errors = 0
    for (_ <- 0 until 200000) {
      val damaged = whole.clone
      for (_ <- 0 to random.nextInt(3)) damaged(random.nextInt(damaged.length)) = random.nextInt(256).toByte
      try parsed(damaged)
      catch { case e: BadRecord => assert(e.getMessage.startsWith("the record is no tf.train.Example: ")); errors += 1 }
    }
    assert(errors > 100000)
  }

  test("an Example as it is built, byte by byte") {
    val b = new ExampleBuilder
    b.begin()
    b.beginFeature(); b.addBytes(of(0xff)); b.addBytes(of()); b.endFeature(FeatureValues.BYTES, "b".getBytes)
    b.beginFeature(); b.addLong(-1); b.addLong(300); b.addLong(0); b.endFeature(FeatureValues.INT64, "a".getBytes)
    b.beginFeature(); b.endFeature(FeatureValues.FLOAT, "Z".getBytes)
    b.end()
    val minus = Seq.fill(9)(0xff) :+ 1
    val expected = example(entry("Z", field(2, of())), entry("a", field(3, field(1, of(Seq(0, 0xac, 2) ++ minus: _*)))),
      entry("b", field(1, field(1, of()) ++ field(1, of(0xff)))))
    assert(b.array.slice(b.offset, b.offset + b.length).toSeq == expected.toSeq)
  }

  test("what is built is parsed again: numbers of every length, arrays over every growth of the buffer") {
    val b = new ExampleBuilder
    val numbers = (0 to 63).flatMap(k => Seq(1L << k, (1L << k) - 1, -(1L << k)))
    for (n <- Seq(0, 1, 100, 5000, 100000)) {
      val floats = Seq.tabulate(n)(i => i * 0.37f - 5)
      b.begin()
      b.beginFeature(); floats.reverse.foreach(b.addFloat); b.endFeature(FeatureValues.FLOAT, "f".getBytes)
      b.beginFeature(); numbers.reverse.foreach(b.addLong); b.endFeature(FeatureValues.INT64, "größe".getBytes(UTF_8))
      b.end()
      assert(parsed(b.array.slice(b.offset, b.offset + b.length)) == Seq("größe" -> ((3, numbers)),
        "f" -> ((2, floats))))
    }
  }
}
