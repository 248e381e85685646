package com.yahoo.ml.caffe

import java.nio.file.{Files, Path}

import scala.collection.JavaConverters._

import org.apache.spark.sql.types._
import org.apache.spark.sql.{Row, SparkSession}
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

/** Tops of a CoSData layer with `transpose`: the blob is values x rows, as a recurrent net wants it. */
class TransposedSuite extends AnyFunSuite with BeforeAndAfterAll {
  private lazy val folder: Path = Files.createTempDirectory("transposed-suite-")
  private lazy val spark: SparkSession = TestRecords.spark("local[2]")
  override def afterAll(): Unit = {
    spark.stop()
    org.apache.hadoop.fs.FileUtil.fullyDelete(folder.toFile)
  }

  /** Weights 2 x 8 of 1, both biases 0.5. */
  private def ones = {
    def blob(value: Float, dims: Int*) =
      caffe.Caffe.BlobProto.newBuilder
        .setShape(caffe.Caffe.BlobShape.newBuilder.addAllDim(dims.map(d => Long.box(d.toLong)).asJava))
        .addAllData(Seq.fill(dims.product)(Float.box(value)).asJava)
    val layer = caffe.Caffe.LayerParameter.newBuilder.setName("ones").setType("InnerProduct")
    layer.addBlobs(blob(1f, 2, 8)).addBlobs(blob(0.5f, 2))
  }

  /** Row i of 8 holds (10 i, 10 i + 1, 10 i + 2). */
  private def scored(batch: Int, features: String): Map[String, Seq[Seq[Float]]] = {
    val (sc, path) = (spark.sparkContext, folder.resolve("rows").toString)
    if (!Files.exists(folder.resolve("rows"))) {
      val rows = (0 until 8).map(i => Row(s"r$i", Seq(10 * i, 10 * i + 1, 10 * i + 2), i))
      val schema = StructType(Seq(StructField("id", StringType), StructField("across", ArrayType(IntegerType)),
        StructField("label", IntegerType)))
      spark.createDataFrame(sc.parallelize(rows, 1), schema).write.parquet(path)
    }
    def data(phase: String) =
      s"""layer { name: "data" type: "CoSData" top: "across" top: "label" include { phase: $phase }
      source_class: "com.yahoo.ml.caffe.DataFrameSource" cos_data_param { source: "$path" batch_size: $batch
      top { name: "across" type: INT_ARRAY channels: 3 sample_num_axes: 1 transpose: true }
      top { name: "label" type: INT sample_num_axes: 0 } } }"""
    // Weights over axis 1 are as many as a full batch has rows: only where all batches are full.
    val above =
      if (8 % batch != 0) """layer { name: "quiet rows" type: "Silence" bottom: "across" }"""
      else
        """layer { name: "ones" type: "InnerProduct" bottom: "across" top: "sums"
             param { lr_mult: 0 } param { lr_mult: 0 } inner_product_param { num_output: 2 } }
           layer { name: "quiet sums" type: "Silence" bottom: "sums" include { phase: TRAIN } }"""
    val quiet = """layer { name: "quiet" type: "Silence" bottom: "label" }"""
    val net = s"""name: "transposed" ${data("TRAIN")} ${data("TEST")} $above $quiet"""
    val home = folder.resolve(s"home-$batch")
    Files.createDirectories(home)
    val conf = TestRecords.config(sc, TestRecords.solver(home, net), home.resolve("model"), "-clusterSize", "1",
      "-features", features, "-label", "label")
    Files.write(home.resolve("model"), caffe.Caffe.NetParameter.newBuilder.addLayer(ones).build().toByteArray)
    val source = DataSource.getSource(conf, isTraining = false).asInstanceOf[DataSource[Any, Any]]
    val rows = new CaffeOnSpark(sc).features(source).collect()
    rows.map(r => r.getString(0) -> (1 until r.length).map(r.getSeq[Float](_).toSeq)).toMap
  }

  // Batches of 3 are as wide as a row's values: nothing in the blob's shape then says which axis counts rows.
  for (batch <- Seq(5, 3, 8)) test(s"every row gets its own values back from batches of $batch") {
    val got = scored(batch, "across")
    assert(got == (0 until 8).map(i => s"r$i" -> Seq(Seq(10f * i, 10f * i + 1, 10f * i + 2), Seq(i.toFloat))).toMap)
  }

  test("a layer above sees values x rows") {
    // Inner products over axis 1 add up the 8 rows of the batch: 10 (0 + ... + 7) + 8 c = 280 + 8 c, and the bias.
    val got = scored(8, "sums")
    assert(got.size == 8 && got.values.forall(_.head == Seq(280.5f, 280.5f, 288.5f, 288.5f, 296.5f, 296.5f)), got)
  }
}
