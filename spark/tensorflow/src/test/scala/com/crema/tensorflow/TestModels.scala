package com.crema.tensorflow

import java.io.File
import java.nio.file.{Files, Path, Paths}

import scala.collection.JavaConverters._
import scala.sys.process._

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.hadoop.fs.FileUtil
import org.apache.spark.sql.types._
import org.apache.spark.sql.{DataFrame, Row, SparkSession}
import org.scalatest.{BeforeAndAfterAll, Suite}

/** SavedModels that TensorFlow's Python wrote, with what it answers (tests/tensorflow/saved_models.py). */
trait TestModels extends BeforeAndAfterAll { this: Suite =>
  private val root = Paths.get("../..").toAbsolutePath.normalize
  private val python = root.resolve("build/tensorflow/bin/python")

  lazy val folder: Path = Files.createTempDirectory("tensorflow-suite-")
  private lazy val made: Boolean = Files.isExecutable(python) && {
    val said = new StringBuilder
    val script = root.resolve("tests/tensorflow/saved_models.py")
    val code = Process(Seq(python.toString, script.toString, s"$folder"), root.toFile, "PYTHONDONTWRITEBYTECODE" -> "1")
      .!(ProcessLogger(line => said.append(line).append('\n')))
    assert(code == 0, said)
    true
  }

  /** The place of a model; the test is cancelled, which prints it, where there is no TensorFlow for Python. */
  def saved(name: String): String = {
    assume(made, s"SKIPPED: $python is not there to write SavedModels; ensure_tensorflow in scripts/lib.sh makes it")
    folder.resolve(name).toString
  }

  lazy val spark: SparkSession = SparkSession.builder().master("local[2]").appName("test")
    .config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2").getOrCreate()

  def frame(schema: String, partitions: Int, rows: Row*): DataFrame =
    spark.createDataFrame(spark.sparkContext.parallelize(rows, partitions), StructType.fromDDL(schema))

  override def afterAll(): Unit = {
    spark.stop()
    FileUtil.fullyDelete(folder.toFile)
  }

  /** What TensorFlow's Python answers: {output: values of all rows}. */
  def answers(name: String): Seq[Any] =
    plain(new ObjectMapper().readTree(new File(saved("answers.json"))).get(name)).asInstanceOf[List[Any]]

  /** Numbers as doubles, texts and binary values as lists of their bytes, arrays as lists. */
  def plain(value: Any): Any = value match {
    case n: JsonNode if n.isArray => n.elements.asScala.map(plain).toList
    case n: JsonNode => if (n.isBoolean) n.asBoolean else n.asDouble
    case bytes: Array[Byte] => bytes.map(b => (b & 0xff).toDouble).toList
    case text: String => plain(text.getBytes("UTF-8"))
    case many: scala.collection.Seq[_] => many.map(plain).toList
    case n: Number => n.doubleValue
    case other => other
  }
}
