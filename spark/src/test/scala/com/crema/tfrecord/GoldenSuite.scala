package com.crema.tfrecord

import java.nio.file.{Files, Path, Paths}

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.yahoo.ml.caffe.TestRecords
import org.apache.hadoop.fs.FileUtil
import org.apache.spark.sql.{DataFrame, Row}
import org.apache.spark.sql.types._
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

import scala.collection.JavaConverters._

/** Files that TensorFlow wrote (tests/goldens/tfrecords/make.py). */
class GoldenSuite extends AnyFunSuite with BeforeAndAfterAll {
  private lazy val folder: Path = Files.createTempDirectory("golden-suite-")
  private lazy val spark = TestRecords.spark("local[2]")
  private def golden(name: String): Path = Paths.get("../tests/goldens/tfrecords", name).toAbsolutePath.normalize
  private def json(name: String): Seq[JsonNode] = new ObjectMapper().readTree(golden(name).toFile).asScala.toSeq

  override def afterAll(): Unit = {
    spark.stop()
    FileUtil.fullyDelete(folder.toFile)
  }

  private val schema = StructType(Seq("ö" -> ArrayType(StringType), "ab" -> ArrayType(FloatType),
      "a_b" -> ArrayType(LongType), "a1" -> StringType, "a" -> FloatType, "Z" -> LongType).map {
      case (name, t) => StructField(name, t)
    })
  private val kinds = Map("Z" -> "int64_list", "a_b" -> "int64_list", "a" -> "float_list", "ab" -> "float_list",
    "a1" -> "bytes_list", "ö" -> "bytes_list")

  /** A value as the JSON of the goldens describes it. */
  private def described(value: Any): Seq[String] = value match {
    case null => Nil
    case many: scala.collection.Seq[_] => many.toSeq.flatMap(described)
    case text: String => Seq(text.getBytes("UTF-8").map(b => f"$b%02x").mkString)
    case number: Float => Seq(java.lang.Float.floatToRawIntBits(number).toString)
    case number => Seq(number.toString)
  }

  private def check(frame: DataFrame): Unit = {
    val (rows, expected) = (frame.collect(), json("examples.json"))
    assert(rows.length == expected.length)
    for ((row, record) <- rows.zip(expected); name <- schema.fieldNames) {
      val value = row.get(row.fieldIndex(name))
      assert((value == null) == !record.has(name), s"$name of $row")
      if (record.has(name)) {
        assert(record.get(name).get("kind").asText == kinds(name))
        assert(described(value) == record.get(name).get("values").asScala.map(_.asText).toSeq, s"$name of $row")
      }
    }
  }

  test("values of every type, absent ones and empty lists, as TensorFlow reads them") {
    check(spark.read.format("tfrecord").schema(schema).load(golden("examples.tfrecord").toString))
    check(spark.read.format("tfrecord").load(golden("examples.tfrecord").toString))
    val inferred = spark.read.format("tfrecord").load(golden("examples.tfrecord").toString).schema
    assert(inferred == StructType(schema.sortBy(_.name)))
  }

  test("what TensorFlow packed by gzip") {
    check(spark.read.format("tfrecord").load(golden("examples.tfrecord.gz").toString))
  }

  test("the same rows are written as the same bytes, whatever the order of columns") {
    val frame = spark.read.format("tfrecord").schema(schema).load(golden("examples.tfrecord").toString)
    for ((columns, i) <- Seq(schema.fieldNames, schema.fieldNames.reverse).zipWithIndex) {
      val output = folder.resolve(s"rows-$i").toString // no column's name: not every locale has its letters in paths
      frame.select(columns.head, columns.tail: _*).coalesce(1).write.format("tfrecord").save(output)
      val Array(written) = new java.io.File(output).listFiles.filter(_.getName.endsWith(".tfrecord"))
      assert(Files.readAllBytes(written.toPath).toSeq == Files.readAllBytes(golden("examples.tfrecord")).toSeq)
    }
  }

  test("rows that were never read are written as TensorFlow writes them") {
    val rows = Seq(
      Row(Seq("größe", ""), Seq(1.5f, -2.5f), Seq(1L, 2L, 3L), "one", 0.1f, 1L),
      Row(Nil, Nil, Seq(Long.MaxValue, Long.MinValue, -1L, 0L, 127L, 128L, 300L), "", null, Long.MinValue),
      Row(null, null, null, null, null, null),
      Row(Seq("x" * 200), Seq(-0.0f, 3.4e38f, 1e-45f), Seq(7L), "naïve", Float.PositiveInfinity, 0L),
      Row(null, Seq.tabulate(300)(i => (i / 7.0).toFloat), (0L until 300L).toSeq, null, Float.NegativeInfinity, -1L)
    )
    val output = folder.resolve("made").toString
    spark.createDataFrame(spark.sparkContext.parallelize(rows, 1), schema).write.format("tfrecord").save(output)
    val Array(written) = new java.io.File(output).listFiles.filter(_.getName.endsWith(".tfrecord"))
    assert(Files.readAllBytes(written.toPath).toSeq == Files.readAllBytes(golden("examples.tfrecord")).toSeq)
  }

  test("records that are no Examples, and the file inside one of them, in splits of many sizes") {
    val expected = json("bytes.json").map(_.asText)
    val path = golden("bytes.tfrecord")
    for (split <- (1L to 300L) ++ (301L to Files.size(path) by 53))
      assert(Frames.text(Frames.inSplits(path, split)) == expected)
    val frame = spark.read.format("tfrecord").option("recordType", "ByteArray").load(path.toString)
    assert(Frames.text(frame.collect().map(_.getAs[Array[Byte]]("byteArray")).toSeq) == expected)
    val output = folder.resolve("bytes").toString
    frame.write.format("tfrecord").option("recordType", "bytearray").save(output)
    val Array(written) = new java.io.File(output).listFiles.filter(_.getName.endsWith(".tfrecord"))
    assert(Files.readAllBytes(written.toPath).toSeq == Files.readAllBytes(path).toSeq)
  }
}
