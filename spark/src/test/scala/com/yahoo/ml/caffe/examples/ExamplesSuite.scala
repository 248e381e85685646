package com.yahoo.ml.caffe.examples

import java.nio.file.Files

import com.crema.CremaException
import com.yahoo.ml.caffe.TestRecords
import com.yahoo.ml.caffe.tools.LMDB2DataFrame
import org.apache.spark.ml.classification.LogisticRegressionModel
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

class ExamplesSuite extends AnyFunSuite with BeforeAndAfterAll {
  private lazy val spark = TestRecords.spark("local[2]")
  private val folder = Files.createTempDirectory("examples-suite-")
  override def afterAll(): Unit = {
    spark.stop()
    org.apache.hadoop.fs.FileUtil.fullyDelete(folder.toFile)
  }

  /** The solver has a test schedule although `train` has no test source: the workers could not open the frames, as they
    * are no LMDB, and so must not test.
    */
  test("MyMLPipeline: a net over data frames, its features, and a logistic regression on them that is saved") {
    val sources = for ((name, count, seed) <- Seq(("train", 203, 1), ("test", 61, 2))) yield {
      val records = new TestRecords(folder, count, seed)
      val c = TestRecords.config(spark.sparkContext, "", folder.resolve("none"), "-imageRoot", records.lmdb)
      val path = folder.resolve(name).toString
      val rows = new LMDB2DataFrame(spark.sparkContext, c).makeRDD()
      spark.createDataFrame(rows, LMDB2DataFrame.schema).write.parquet(path)
      s"""type: "MemoryData" source_class: "com.yahoo.ml.caffe.ImageDataFrame"
         |memory_data_param { source: "$path" batch_size: 20 channels: 1 height: 12 width: 12 }
         |transform_param { scale: 0.00390625 }""".stripMargin
    }
    val net = TestRecords.net(sources.head, sources(1))
    val solver = TestRecords.solver(folder.resolve("run"), net, "test_iter: 2 test_interval: 10")
    def conf(more: String*) = TestRecords.config(spark.sparkContext, solver, folder.resolve("model"),
      Seq("-output", folder.resolve("lr").toString) ++ more: _*)
    MyMLPipeline.run(spark.sparkContext, conf("-features", "conv", "-label", "label"))
    val model = LogisticRegressionModel.load(folder.resolve("lr").toString)
    assert(model.numClasses == 10 && model.numFeatures == 4 * 5 * 5 && model.getFeaturesCol == "Feature" &&
      model.getLabelCol == "Label")
    assert(intercept[CremaException](MyMLPipeline.run(spark.sparkContext, conf())).getMessage.contains("-features"))
  }
}
