package com.crema.tensorflow

import java.nio.file.{Files, Paths}

import scala.collection.JavaConverters._

import com.yahoo.tensorflowonspark.TFModel
import org.apache.spark.sql.functions._
import org.bytedeco.javacpp.Pointer
import org.scalatest.funsuite.AnyFunSuite

class MemorySuite extends AnyFunSuite with TestModels {
  private def residentBytes: Long = {
    System.gc()
    val line = Files.readAllLines(Paths.get("/proc/self/status")).asScala.find(_.startsWith("VmRSS:")).get
    line.filter(_.isDigit).toLong * 1024
  }

  /** Batches of one row, whose text is too long to be kept inside its tensor: two inputs and three outputs each. */
  private def score(model: TFModel, batches: Long): Unit = {
    val rows = spark.range(0, batches, 1, 2).select(concat(lit("a text of more than 22 bytes: "), col("id")).as("data"),
      lit(new Array[Byte](4)).as("image"))
    assert(model.transform(rows).agg(sum("length")).head().getLong(0) > 30 * batches)
  }

  test("the memory of a process is flat over a hundred thousand batches") {
    val model = new TFModel().setModel(saved("various")).setSignatureDefKey("binary").setBatchSize(1)
      .setInputMapping(Map("data" -> "data", "image" -> "image"))
      .setOutputMapping(Map("same" -> "same", "length" -> "length", "bytes" -> "bytes"))
    score(model, 10000)
    val (before, open) = (residentBytes, Pointer.totalCount)
    score(model, 100000)
    // Some time the collector closes tensors that were forgotten: of these runs 500,000, unless each is closed at once.
    val forgotten = Pointer.totalCount - open
    val after = residentBytes
    info(s"$before bytes before, $after after, $forgotten native objects more")
    assert(math.abs(after - before) < before / 50)
    assert(forgotten < 100)
  }

  test("models that were not used for longest are given up") {
    val rows = spark.range(0, 4, 1, 1).select(col("id").cast("float").as("x"))
    val places = Seq("linear", "steeper", "tags")
    for (name <- places ++ places)
      assert(new TFModel().setModel(saved(name)).setInputMapping(Map("x" -> (if (name == "tags") "inp" else "x")))
        .setOutputMapping(Map((if (name == "tags") "out" else "y") -> "y")).transform(rows).count() == 4)
    assert(LoadedModels.count == LoadedModels.Kept)
  }
}
