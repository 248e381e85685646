package com.crema.ml

import java.nio.file.Files

import com.yahoo.ml.caffe.TestRecords
import org.apache.hadoop.fs.FileUtil
import org.apache.spark.sql.functions.{array, lit}
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

/** Nets whose layers are chosen by stages as well as phases, as DIGITS writes them. */
class CaffeStagesSuite extends AnyFunSuite with BeforeAndAfterAll {
  private lazy val folder = Files.createTempDirectory("stages-suite-")
  private lazy val spark: SparkSession = TestRecords.spark("local[2]")
  private lazy val frame: DataFrame =
    spark.range(40).select(array(Seq.fill(16)(lit(0.5f)): _*).as("features"), lit(1d).as("label"))

  override def afterAll(): Unit = {
    spark.stop()
    FileUtil.fullyDelete(folder.toFile)
  }

  /** Loss and accuracy stand where the net is not deployed, and `prob` where it is. */
  private val net = """name: "staged"
    layer { name: "data" type: "MemoryData" top: "data" top: "label"
      memory_data_param { source: "unused" batch_size: 8 channels: 1 height: 4 width: 4 } }
    layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
      inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
    layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy"
      include { phase: TEST not_stage: "deploy" } }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss"
      exclude { stage: "deploy" } }
    layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" include { phase: TEST stage: "deploy" } }
    layer { name: "deep" type: "TanH" bottom: "ip" top: "deep" include { min_level: 2 } }"""
  private lazy val model: CaffeModel =
    new CaffeEstimator().setSolver(TestRecords.solver(folder.resolve("staged"), net)).setMaxIter(2).fit(frame)
  private def inState(state: String) = new CaffeModel("staged", s"${model.netText} $state", model.trained)

  test("the default outputs are those of the layers that stages and levels keep") {
    for ((state, blobs) <- Seq("" -> Seq("ip"), "state { stage: \"deploy\" }" -> Seq("prob"),
        "state { stage: \"deploy\" level: 2 }" -> Seq("prob", "deep"))) {
      val (staged, unlabelled) = (inState(state), frame.drop("label"))
      val columns = unlabelled.columns.toSeq ++ blobs
      assert(staged.transformSchema(unlabelled.schema).fieldNames.toSeq == columns)
      val out = staged.transform(unlabelled)
      assert(out.columns.toSeq == columns && out.count() == 40)
      val place = folder.resolve(s"saved-${blobs.last}").toString
      staged.save(place)
      assert(CaffeModel.load(place).transformSchema(unlabelled.schema).fieldNames.toSeq == columns)
    }
  }

  test("a blob that depends on the label is refused without labels, whatever rule keeps its layer") {
    for (blob <- Seq("loss", "accuracy")) {
      val labelled = inState("").setOutputBlobs(Array("ip", blob))
      val said = intercept[IllegalArgumentException](labelled.transform(frame.drop("label"))).getMessage
      assert(said.contains(s"blob '$blob' depends on the label, and the frame has no column 'label'"), said)
      assert(labelled.transform(frame).columns.last == blob)
    }
  }
}
