package com.yahoo.tensorflowonspark

import java.nio.file.{Files, Path}

import com.yahoo.ml.caffe.TestRecords
import org.apache.hadoop.fs.FileUtil
import org.apache.spark.SparkContext
import org.apache.spark.sql.types._
import org.apache.spark.sql.{DataFrame, Row, SparkSession}
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

class DFUtilSuite extends AnyFunSuite with BeforeAndAfterAll {
  private lazy val folder: Path = Files.createTempDirectory("dfutil-suite-")
  private lazy val spark: SparkSession = TestRecords.spark("local[2]")
  private implicit lazy val sc: SparkContext = spark.sparkContext

  override def afterAll(): Unit = {
    spark.stop()
    FileUtil.fullyDelete(folder.toFile)
  }

  private val types = Seq(BinaryType, BooleanType, IntegerType, LongType, FloatType, DoubleType, StringType)
  private val schema = StructType(types.map(t => StructField(t.typeName, t)) ++
    types.map(t => StructField("array_" + t.typeName, ArrayType(t))))
  private val values = Seq("a".getBytes, true, 1, 2L, 1.5f, 2.5, "text")
  private lazy val frame: DataFrame =
    spark.createDataFrame(sc.parallelize(Seq(Row.fromSeq(values ++ values.map(v => Seq(v, v))))), schema)

  private def saved(name: String): String = {
    val output = folder.resolve(name).toString
    DFUtil.saveAsTFRecords(frame, output)
    output
  }
  private def text(row: Row): String = row.toSeq.map {
    case bytes: Array[Byte] => bytes.toSeq.toString
    case many: scala.collection.Seq[_] =>
      many.map { case bytes: Array[Byte] => bytes.toSeq; case other => other }.toList.toString
    case other => other.toString
  }.mkString(" ")

  test("all types come back with their schema") {
    val back = DFUtil.loadTFRecords(saved("whole"), schema)
    assert(back.schema == schema && back.collect().map(text).toSeq == frame.collect().map(text).toSeq)
  }

  test("without a hint: strings, longs and floats") {
    val found = DFUtil.loadTFRecords(saved("inferred")).schema
    def base(t: DataType): DataType = t match {
      case ArrayType(element, _) => ArrayType(base(element))
      case BinaryType | StringType => StringType
      case FloatType | DoubleType => FloatType
      case _ => LongType
    }
    assert(found == StructType(schema.map(f => StructField(f.name, base(f.dataType))).sortBy(_.name)))
  }

  test("a partial hint: its columns first, in its order and with its nullability") {
    val hint = StructType(Seq(StructField("string", BinaryType, nullable = false), StructField("long", IntegerType)))
    val back = DFUtil.loadTFRecords(saved("partial"), hint)
    assert(back.schema.take(2) == hint.fields.toSeq && back.schema.length == schema.length)
    assert(back.select("string", "long").collect().map(text).toSeq == Seq(s"${"text".getBytes.toSeq} 2"))
    val absent = DFUtil.loadTFRecords(saved("absent"), StructType(Seq(StructField("none", LongType, nullable = false))))
    assert(intercept[Exception](absent.collect()).toString.contains("has no feature 'none', and the hint says"))
    val allowed = DFUtil.loadTFRecords(saved("allowed"), StructType(Seq(StructField("none", LongType))))
    assert(allowed.select("none").collect().toSeq == Seq(Row(null)))
  }

  test("several folders with commas between, and an empty one") {
    val (one, two) = (saved("one"), saved("two"))
    assert(DFUtil.loadTFRecords(s"$one,$two").count() == 2)
    assert(DFUtil.loadTFRecords(Files.createDirectory(folder.resolve("empty")).toString).collect().isEmpty)
  }

  test("schemas as strings, digits in names too") {
    assert(SimpleTypeParser.parse(schema.simpleString) == schema)
    assert(
      SimpleTypeParser.parse("struct<conv1/w_0:array<float>, 2nd : long,x-1:tinyint,größe:string>") == StructType(Seq(
          StructField("conv1/w_0", ArrayType(FloatType)), StructField("2nd", LongType), StructField("x-1", ByteType),
          StructField("größe", StringType))))
    for ((wrong, why) <- Seq(
        "a:int" -> "the form struct<",
        "struct<>" -> "'' has not the form name:type",
        "struct<a:int,>" -> "'' has not",
        "struct<a>" -> "'a' has not",
        "struct<a:date>" -> "field 'a' has type 'date'",
        "struct<a:array<array<int>>>" -> "field 'a' has type",
        "struct<a:int>x" -> "the form struct<"
      )) {
      val said = intercept[IllegalArgumentException](SimpleTypeParser.parse(wrong)).getMessage
      assert(said.contains(s"'$wrong'") && said.contains(why), said)
    }
  }
}
