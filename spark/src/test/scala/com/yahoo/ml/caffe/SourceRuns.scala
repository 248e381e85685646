package com.yahoo.ml.caffe

import java.awt.image.BufferedImage
import java.io.ByteArrayOutputStream
import java.nio.file.{Files, Path}
import javax.imageio.ImageIO

import com.yahoo.ml.jcaffe.{FloatBlob, Mat, MatVector}
import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{DataFrame, Row, SparkSession}
import org.apache.spark.sql.types._
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

/** A user's own image source: only makeRDD, here from memory. */
class OwnImages(conf: Config, layerId: Int, isTrain: Boolean) extends ImageDataSource(conf, layerId, isTrain) {
  override def makeRDD(sc: SparkContext): RDD[(String, String, Int, Int, Int, Boolean, Array[Byte])] = {
    val r = if (isTrain) SourceRuns.train else SourceRuns.test
    val rows = (0 until r.count).map(i => (r.id(i), r.labels(i).toString, 1, r.side, r.side, false, r.pixels(i)))
    sc.parallelize(rows, 5)
  }
}

/** A user's own source with everything written by hand, as the old abstract class asks: records are numbers. */
class OwnBatches(conf: Config, layerId: Int, isTrain: Boolean)
    extends DataSource[Int, (MatVector, FloatBlob)](conf, layerId, isTrain, -1) {
  private def records = if (isTrain) SourceRuns.train else SourceRuns.test
  override def init(): Boolean = { super.init(); setBatchSize(layerParameter.getMemoryDataParam.getBatchSize); true }
  override def makeRDD(sc: SparkContext): RDD[Int] = sc.parallelize(0 until records.count, 4)
  override def dummyDataHolder(): (MatVector, FloatBlob) = {
    val labels = new FloatBlob
    labels.reshape(batchSize(), 1, 1, 1)
    (new MatVector(batchSize()), labels)
  }
  override def dummyDataBlobs(): Array[FloatBlob] = Array(new FloatBlob, new FloatBlob)
  override def nextBatch(sampleIds: Array[String], data: (MatVector, FloatBlob)): Boolean = {
    var count = 0
    while (count < batchSize()) {
      val i = sourceQueue.take()
      if (i == STOP_MARK) return false
      sampleIds(count) = records.id(i)
      data._1.put(count, new Mat(1, records.side, records.side, records.pixels(i)))
      data._2.cpu_data().set(count, records.labels(i).toFloat)
      count += 1
    }
    true
  }
}

object SourceRuns {
  /** Removed with the JVM, as other suites use these records too. */
  lazy val folder: Path = {
    val made = Files.createTempDirectory("sources-suite-")
    sys.addShutdownHook(org.apache.hadoop.fs.FileUtil.fullyDelete(made.toFile))
    made
  }
  lazy val train = new TestRecords(folder, 401, 1)
  lazy val test = new TestRecords(folder, 115, 2)

  def png(pixels: Array[Byte], side: Int): Array[Byte] = {
    val image = new BufferedImage(side, side, BufferedImage.TYPE_BYTE_GRAY)
    image.getRaster.setDataElements(0, 0, side, side, pixels)
    val out = new ByteArrayOutputStream
    ImageIO.write(image, "png", out)
    out.toByteArray
  }
}

/** Runs over the records of `SourceRuns.train` and `SourceRuns.test`, carried by the sources under test. */
abstract class SourceRuns extends AnyFunSuite with BeforeAndAfterAll {
  import SourceRuns.{folder, test => testRecords, train => trainRecords}

  protected lazy val spark: SparkSession = TestRecords.spark("local[2]")
  protected def sc: SparkContext = spark.sparkContext

  override def afterAll(): Unit = spark.stop()

  protected val side = 12
  protected def memory(source: String, kind: String, batch: Int, more: String = ""): String =
    s"""type: "MemoryData" source_class: "$kind" transform_param { scale: 0.00390625 }
       |memory_data_param {
       |  source: "$source" batch_size: $batch channels: 1 height: $side width: $side $more }""".stripMargin

  protected val lmdb: String = "com.yahoo.ml.caffe.LMDB"
  protected lazy val lmdbNet: String =
    TestRecords.net(memory(trainRecords.lmdb, lmdb, 16), memory(testRecords.lmdb, lmdb, 20))

  protected def cos(source: String, batch: Int): String =
    s"""type: "CoSData" source_class: "com.yahoo.ml.caffe.DataFrameSource"
       |cos_data_param { source: "$source" batch_size: $batch
       |top { name: "data" type: RAW_IMAGE channels: 1 height: $side width: $side
       |  transform_param { scale: 0.00390625 } }
       |top { name: "label" type: STRING channels: 1 sample_num_axes: 1 } }""".stripMargin

  /** One row a record in ragged partitions, the first of them empty. */
  protected def frame(r: TestRecords, picture: Int => Array[Byte] = null, encoded: Boolean = false): DataFrame = {
    val rows = (0 until r.count).map { i =>
      Row(r.id(i), r.labels(i).toString, 1, r.side, r.side, encoded, if (picture == null) r.pixels(i) else picture(i))
    }
    val cuts = Seq(0, 0, 3, 90, 91, 200, r.count).map(math.min(_, r.count))
    val parts = cuts.zip(cuts.tail).map { case (a, b) => rows.slice(a, b) }
    val columns = Seq("id" -> StringType, "label" -> StringType, "channels" -> IntegerType, "height" -> IntegerType,
      "width" -> IntegerType, "encoded" -> BooleanType, "data" -> BinaryType)
    val schema = StructType(columns.map { case (n, t) => StructField(n, t) })
    spark.createDataFrame(sc.parallelize(parts, parts.size).flatMap(identity), schema)
  }

  protected def written(name: String, r: TestRecords, format: String, f: DataFrame): String = {
    val path = folder.resolve(s"$name-${r.count}-$format").toString
    if (!Files.exists(java.nio.file.Paths.get(path))) f.write.format(format).save(path)
    path
  }

  protected def run(name: String, net: String, flags: String*): (Array[Byte], Map[String, Seq[Float]], Config) = {
    val home = folder.resolve(name)
    val conf = TestRecords.config(sc, TestRecords.solver(home, net), home.resolve("model"),
      Seq("-clusterSize", "3", "-features", "ip", "-label", "label") ++ flags: _*)
    val caffe = new CaffeOnSpark(sc)
    caffe.train(DataSource.getSource(conf, isTraining = true).asInstanceOf[DataSource[Any, Any]])
    val features = caffe.features(DataSource.getSource(conf, isTraining = false).asInstanceOf[DataSource[Any, Any]])
    assert(features.columns.toSeq == Seq("SampleID", "ip", "label"))
    val byId = features.collect().map(r => r.getString(0) -> (r.getSeq[Float](1) ++ r.getSeq[Float](2))).toMap
    (Files.readAllBytes(home.resolve("model")), byId, conf)
  }

  protected lazy val reference: (Array[Byte], Map[String, Seq[Float]], Config) = run("lmdb", lmdbNet)

  protected def same(name: String, net: String, flags: String*): Unit = {
    val (model, features, _) = run(name, net, flags: _*)
    // A model also describes its data layers, which differ; only the weights are compared.
    assert(weights(model) == weights(reference._1), s"$name: another model than from the LMDB")
    assert(features == reference._2, s"$name: other features")
  }
  private def weights(model: Array[Byte]) = {
    import scala.collection.JavaConverters._
    val layers = caffe.Caffe.NetParameter.parseFrom(model).getLayerList.asScala
    layers.flatMap(_.getBlobsList.asScala.map(_.getDataList.asScala.toSeq)).toSeq
  }
}
