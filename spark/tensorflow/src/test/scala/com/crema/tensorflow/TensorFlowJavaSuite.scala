package com.crema.tensorflow

import java.io.File

import scala.sys.process._

import com.yahoo.tensorflowonspark.TFModel
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.functions.col
import org.scalatest.funsuite.AnyFunSuite

/** What users see whose class path lacks TensorFlow Java, or a part of it: in a JVM that does. */
class TensorFlowJavaSuite extends AnyFunSuite with TestModels {
  /** The lines that ScoreLinear prints, with a class path without what matches. */
  private def without(left: String => Boolean): Seq[String] = {
    val paths =
      System.getProperty("java.class.path").split(File.pathSeparator).filterNot(p => left(new File(p).getName))
    val options = java.lang.management.ManagementFactory.getRuntimeMXBean.getInputArguments.toArray.map(_.toString)
      .filter(_.startsWith("--add-opens"))
    val command = Seq(s"${System.getProperty("java.home")}/bin/java") ++ options ++
      Seq("-Xmx512m", "-cp", paths.mkString(File.pathSeparator), "com.crema.tensorflow.ScoreLinear", saved("linear"))
    Process(command).!!(ProcessLogger(_ => ())).linesIterator.toSeq
  }

  test("without TensorFlow Java: a sentence that says what to add") {
    val said = without(name => name.startsWith("tensorflow-core") || name.startsWith("javacpp"))
    assert(said.size == 2 && said.forall(_.startsWith("WrongInput: TensorFlow Java is not on the class path")), said)
    assert(
      said.head.contains(s"--packages org.tensorflow:tensorflow-core-api:${TensorFlowJava.Version}, and to its --jars"))
  }

  test("without its native library: the driver knows the schema, and the job says what is missing") {
    val said = without(_.endsWith("-linux-x86_64.jar"))
    assert(said.head == "struct<y:float>", said)
    assert(said(1).contains("WrongInput: TensorFlow Java cannot be started on this machine: "), said)
  }
}

object ScoreLinear {
  def main(args: Array[String]): Unit = {
    val spark = SparkSession.builder().master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    val rows = spark.range(3).select(col("id").cast("float").as("x"))
    val model = new TFModel().setModel(args(0)).setInputMapping(Map("x" -> "x")).setOutputMapping(Map("y" -> "y"))
    def say(body: => Any): Unit =
      try println(body)
      catch { case e: Exception => println(e.toString.replace('\n', ' ').replace("com.crema.", "")) }
    say(model.transformSchema(rows.schema).simpleString)
    say(model.transform(rows).collect().mkString(" "))
    spark.stop()
  }
}
