package com.yahoo.ml.caffe

import java.awt.image.BufferedImage
import java.io.{ByteArrayOutputStream, ObjectOutputStream}
import java.nio.file.{Files, Path}
import javax.imageio.ImageIO

import com.crema.CremaException
import com.yahoo.ml.dl.caffe.Pair
import com.yahoo.ml.jcaffe.{FloatBlob, Mat, MatVector}
import org.apache.hadoop.io.BytesWritable
import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{DataFrame, Row, SparkSession}
import org.apache.spark.sql.types._
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

/** A user's own image source: only makeRDD, here from memory. */
class OwnImages(conf: Config, layerId: Int, isTrain: Boolean) extends ImageDataSource(conf, layerId, isTrain) {
  override def makeRDD(sc: SparkContext): RDD[(String, String, Int, Int, Int, Boolean, Array[Byte])] = {
    val r = if (isTrain) SourcesSuite.train else SourcesSuite.test
    sc.parallelize((0 until r.count).map(i => (r.id(i), r.labels(i).toString, 1, r.side, r.side, false, r.pixels(i))), 5)
  }
}

/** A user's own source with everything written by hand, as the old abstract class asks: records are numbers. */
class OwnBatches(conf: Config, layerId: Int, isTrain: Boolean) extends DataSource[Int, (MatVector, FloatBlob)](conf, layerId, isTrain, -1) {
  private def records = if (isTrain) SourcesSuite.train else SourcesSuite.test
  override def init(): Boolean = { super.init(); setBatchSize(layerParameter.getMemoryDataParam.getBatchSize); true }
  override def makeRDD(sc: SparkContext): RDD[Int] = sc.parallelize(0 until records.count, 4)
  override def dummyDataHolder(): (MatVector, FloatBlob) = { val labels = new FloatBlob; labels.reshape(batchSize(), 1, 1, 1); (new MatVector(batchSize()), labels) }
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

object SourcesSuite {
  /** Other suites use these records too: the folder goes with the JVM. */
  lazy val folder: Path = {
    val made = Files.createTempDirectory("sources-suite-")
    sys.addShutdownHook(org.apache.hadoop.fs.FileUtil.fullyDelete(made.toFile))
    made
  }
  lazy val train = new TestRecords(folder, 401, 1)
  lazy val test = new TestRecords(folder, 115, 2)

  def serialised(key: AnyRef): Array[Byte] = {
    val bytes = new ByteArrayOutputStream
    val out = new ObjectOutputStream(bytes)
    out.writeObject(key)
    out.close()
    bytes.toByteArray
  }

  def png(pixels: Array[Byte], side: Int): Array[Byte] = {
    val image = new BufferedImage(side, side, BufferedImage.TYPE_BYTE_GRAY)
    image.getRaster.setDataElements(0, 0, side, side, pixels)
    val out = new ByteArrayOutputStream
    ImageIO.write(image, "png", out)
    out.toByteArray
  }
}

/** The same records by every way in: the model must have the same bytes, whatever carried them. */
class SourcesSuite extends AnyFunSuite with BeforeAndAfterAll {
  import SourcesSuite.{folder, png, serialised, test => testRecords, train => trainRecords}

  private lazy val spark: SparkSession = TestRecords.spark("local[2]")
  private def sc = spark.sparkContext

  override def afterAll(): Unit = spark.stop()

  private val side = 12
  private def memory(source: String, kind: String, batch: Int, more: String = ""): String =
    s"""type: "MemoryData" source_class: "$kind" transform_param { scale: 0.00390625 }
       |memory_data_param { source: "$source" batch_size: $batch channels: 1 height: $side width: $side $more }""".stripMargin
  private def cos(source: String, batch: Int): String =
    s"""type: "CoSData" source_class: "com.yahoo.ml.caffe.DataFrameSource" cos_data_param { source: "$source" batch_size: $batch
       |top { name: "data" type: RAW_IMAGE channels: 1 height: $side width: $side transform_param { scale: 0.00390625 } }
       |top { name: "label" type: STRING channels: 1 sample_num_axes: 1 } }""".stripMargin

  /** One row a record in ragged partitions, the first of them empty. */
  private def frame(r: TestRecords, picture: Int => Array[Byte] = null, encoded: Boolean = false): DataFrame = {
    val rows = (0 until r.count).map { i => Row(r.id(i), r.labels(i).toString, 1, r.side, r.side, encoded, if (picture == null) r.pixels(i) else picture(i)) }
    val cuts = Seq(0, 0, 3, 90, 91, 200, r.count).map(math.min(_, r.count))
    val parts = cuts.zip(cuts.tail).map { case (a, b) => rows.slice(a, b) }
    val schema = StructType(Seq("id" -> StringType, "label" -> StringType, "channels" -> IntegerType, "height" -> IntegerType, "width" -> IntegerType,
      "encoded" -> BooleanType, "data" -> BinaryType).map { case (n, t) => StructField(n, t) })
    spark.createDataFrame(sc.parallelize(parts, parts.size).flatMap(identity), schema)
  }

  private def written(name: String, r: TestRecords, format: String, f: DataFrame): String = {
    val path = folder.resolve(s"$name-${r.count}-$format").toString
    if (!Files.exists(java.nio.file.Paths.get(path))) f.write.format(format).save(path)
    path
  }

  private def run(name: String, net: String, flags: String*): (Array[Byte], Map[String, Seq[Float]], Config) = {
    val home = folder.resolve(name)
    val conf = TestRecords.config(sc, TestRecords.solver(home, net), home.resolve("model"), Seq("-clusterSize", "3", "-features", "ip", "-label", "label") ++ flags: _*)
    val caffe = new CaffeOnSpark(sc)
    caffe.train(DataSource.getSource(conf, isTraining = true).asInstanceOf[DataSource[Any, Any]])
    val features = caffe.features(DataSource.getSource(conf, isTraining = false).asInstanceOf[DataSource[Any, Any]])
    assert(features.columns.toSeq == Seq("SampleID", "ip", "label"))
    (Files.readAllBytes(home.resolve("model")), features.collect().map(r => r.getString(0) -> (r.getSeq[Float](1) ++ r.getSeq[Float](2))).toMap, conf)
  }

  private lazy val reference = run("lmdb", TestRecords.net(memory(trainRecords.lmdb, "com.yahoo.ml.caffe.LMDB", 16), memory(testRecords.lmdb, "com.yahoo.ml.caffe.LMDB", 20)))

  private def same(name: String, net: String, flags: String*): Unit = {
    val (model, features, _) = run(name, net, flags: _*)
    // The description of the data layers is in a model too; what was learnt is behind it.
    assert(weights(model) == weights(reference._1), s"$name: another model than from the LMDB")
    assert(features == reference._2, s"$name: other features")
  }
  private def weights(model: Array[Byte]) = {
    import scala.collection.JavaConverters._
    caffe.Caffe.NetParameter.parseFrom(model).getLayerList.asScala.flatMap(l => l.getBlobsList.asScala.map(_.getDataList.asScala.toSeq)).toSeq
  }

  test("an LMDB trains to something better than chance, and every record is scored once") {
    assert(reference._2.keySet == (0 until testRecords.count).map(testRecords.id).toSet)
    val right = reference._2.values.count(v => v.take(10).zipWithIndex.maxBy(_._1)._2 == v(10).toInt)
    assert(right > testRecords.count / 2, s"$right of ${testRecords.count}")
  }

  for (format <- Seq("parquet", "orc", "json")) test(s"ImageDataFrame: $format") {
    val more = s"""dataframe_format: "$format"""" + (if (format == "json") " dataframe_column_select: \"id\" dataframe_column_select: \"label\" dataframe_column_select: \"unbase64(data) as data\" " +
      "dataframe_column_select: \"cast(channels as int) channels\" dataframe_column_select: \"cast(height as int) height\" dataframe_column_select: \"cast(width as int) width\"" else "")
    val (a, b) = (written("images", trainRecords, format, frame(trainRecords)), written("images", testRecords, format, frame(testRecords)))
    same(s"image-$format", TestRecords.net(memory(a, "com.yahoo.ml.caffe.ImageDataFrame", 16, more), memory(b, "com.yahoo.ml.caffe.ImageDataFrame", 20, more)))
  }

  test("ImageDataFrame: PNG, kept on disk with -persistent") {
    val (a, b) = (written("png", trainRecords, "parquet", frame(trainRecords, i => png(trainRecords.pixels(i), side), encoded = true)),
      written("png", testRecords, "parquet", frame(testRecords, i => png(testRecords.pixels(i), side), encoded = true)))
    same("png", TestRecords.net(memory(a, "com.yahoo.ml.caffe.ImageDataFrame", 16), memory(b, "com.yahoo.ml.caffe.ImageDataFrame", 20)), "-persistent")
  }

  test("DataFrameSource with CoSData") {
    val (a, b) = (written("images", trainRecords, "parquet", frame(trainRecords)), written("images", testRecords, "parquet", frame(testRecords)))
    same("cos", TestRecords.net(cos(a, 16), cos(b, 20)).replace("name: \"data\" top", "name: \"data\" top").replace("\"RAW_IMAGE\"", "RAW_IMAGE"))
  }

  for ((name, key) <- Seq[(String, (TestRecords, Int) => AnyRef)](
      "tuple6" -> ((r, i) => (r.id(i), r.labels(i).toString, 1, r.side, r.side, false)),
      "tuple2" -> ((r, i) => (r.id(i), r.labels(i).toString)),
      "pair" -> ((r, i) => new Pair(r.id(i), r.labels(i).toString)))) test(s"SeqImageDataSource: keys of $name") {
    def file(r: TestRecords): String = {
      val path = folder.resolve(s"seq-$name-${r.count}").toString
      val rows = (0 until r.count).map(i => (serialised(key(r, i)), if (name == "tuple6") r.pixels(i) else png(r.pixels(i), side)))
      sc.parallelize(rows, 3).map { case (k, v) => (new BytesWritable(k), new BytesWritable(v)) }.saveAsSequenceFile(path)
      path
    }
    val kind = "com.yahoo.ml.caffe.SeqImageDataSource"
    same(s"seq-$name", TestRecords.net(memory(file(trainRecords), kind, 16), memory(file(testRecords), kind, 20)))
  }

  test("users' own sources") {
    for (kind <- Seq(classOf[OwnImages], classOf[OwnBatches]))
      same(kind.getSimpleName, TestRecords.net(memory("none", kind.getName, 16), memory("none", kind.getName, 20)))
  }

  test("LMDB as an RDD: partitions of equal size, every record once") {
    val conf = reference._3
    val source = new LMDB(conf, conf.train_data_layer_id, true)
    source.init()
    for (parts <- Seq(1, 2, 7, 401, 500)) {
      conf.lmdb_partitions = parts
      val rdd = source.makeRDD(sc)
      val sizes = rdd.mapPartitions(p => Iterator(p.size)).collect()
      assert(sizes.sum == 401 && sizes.length == math.min(parts, 401) && sizes.max - sizes.min <= 1)
      assert(rdd.map(r => (r._1, r._2, r._7.toSeq)).collect().toSeq == (0 until 401).map(i => (trainRecords.id(i), trainRecords.labels(i).toString, trainRecords.pixels(i).toSeq)))
    }
    for ((n, parts) <- Seq((50, 11), (1, 1), (10, 3), (7, 7), (100, 99)); ranges = LmdbRDD.split(n, parts))
      assert(ranges.flatMap { case (a, b) => a until b } == (0L until n.toLong) && ranges.size == math.min(n, parts), (n, parts))
  }

  test("images that cannot be decoded are passed over, in training and in scoring, and counted") {
    val broken = Set(0, 7, 8, 100)
    val f = frame(testRecords, i => if (broken(i)) "no picture".getBytes else png(testRecords.pixels(i), side), encoded = true)
    val path = written("broken", testRecords, "parquet", f)
    val kind = "com.yahoo.ml.caffe.ImageDataFrame"
    val said = new ByteArrayOutputStream
    val before = System.err
    System.setErr(new java.io.PrintStream(said, true))
    val (_, features, _) = try run("broken", TestRecords.net(memory(path, kind, 16), memory(path, kind, 20))) finally System.setErr(before)
    assert(features.keySet == (0 until testRecords.count).filterNot(broken).map(testRecords.id).toSet)
    assert("4 record\\(s\\) could not be decoded".r.findAllIn(said.toString).size == 2, said)
  }

  test("sets smaller than a batch, and a partition for every row") {
    val few = new TestRecords(folder, 15, 3)
    val path = written("few", few, "parquet", frame(few).repartition(15))
    val kind = "com.yahoo.ml.caffe.ImageDataFrame"
    val (_, features, _) = run("few", TestRecords.net(memory(path, kind, 100), memory(path, kind, 100)))
    assert(features.keySet == (0 until 15).map(few.id).toSet)
    val two = new TestRecords(folder, 2, 4)
    val tiny = written("two", two, "parquet", frame(two))
    val e = intercept[IllegalStateException](run("two", TestRecords.net(memory(tiny, kind, 1), memory(tiny, kind, 1))))
    assert(e.getMessage.startsWith("Insufficient training data. Please adjust hyperparameters or increase dataset.") && e.getMessage.contains("2 records"), e.getMessage)
  }

  test("validation gives a row for each test, equal to the LMDB's") {
    val (a, b) = (written("images", trainRecords, "parquet", frame(trainRecords)), written("images", testRecords, "parquet", frame(testRecords)))
    val kind = "com.yahoo.ml.caffe.ImageDataFrame"
    val nets = Seq("v-lmdb" -> TestRecords.net(memory(trainRecords.lmdb, "com.yahoo.ml.caffe.LMDB", 16), memory(testRecords.lmdb, "com.yahoo.ml.caffe.LMDB", 20)),
      "v-frame" -> TestRecords.net(memory(a, kind, 16), memory(b, kind, 20)))
    val found = nets.map { case (name, net) =>
      val conf = TestRecords.config(sc, TestRecords.solver(folder.resolve(name), net, "test_iter: 4 test_interval: 10"), folder.resolve(name).resolve("model"), "-train", "-clusterSize", "2")
      val Seq(t, v) = Seq(true, false).map(DataSource.getSource(conf, _).asInstanceOf[DataSource[Any, Any]])
      new CaffeOnSpark(sc).trainWithValidation(t, v)
    }
    assert(found.map(_.columns.toSeq) == Seq.fill(2)(Seq("accuracy", "loss")))
    val rows = found.map(_.collect().map(r => (r.getSeq[Float](0), r.getSeq[Float](1))).toSeq)
    assert(rows(0) == rows(1) && rows(0).size == 2)
    assert(rows(0).last._1.head > 0.5f, rows(0))
  }

  test("the eight types of CoSData columns") {
    val r = trainRecords
    val schema = StructType(Seq(StructField("id", StringType), StructField("text", StringType), StructField("int", IntegerType), StructField("float", FloatType),
      StructField("ints", ArrayType(IntegerType)), StructField("floats", ArrayType(FloatType)), StructField("encoded", BinaryType), StructField("raw", BinaryType),
      StructField("sized", StructType(Seq(StructField("height", IntegerType), StructField("width", IntegerType), StructField("image", ArrayType(ByteType)))))))
    val rows = (0 until 50).map { i =>
      val picture = png(r.pixels(i), side)
      Row(r.id(i), s" $i.5", i, i * 0.25f, Seq(i, -i, 7), Seq(i * 0.5f, -1f), picture, r.pixels(i), Row(side, side, picture.toSeq))
    }
    val path = written("eight", new TestRecords(folder, 50, 9), "parquet", spark.createDataFrame(sc.parallelize(rows, 4), schema))
    def top(name: String, kind: String, shape: String) = s"""top { name: "$name" type: $kind $shape }"""
    val image = s"channels: 1 height: $side width: $side transform_param { scale: 0.5 }"
    val tops = Seq(top("text", "STRING", "channels: 1 sample_num_axes: 1"), top("int", "INT", "sample_num_axes: 0"), top("float", "FLOAT", "channels: 1 height: 1 sample_num_axes: 2"),
      top("ints", "INT_ARRAY", "channels: 3 sample_num_axes: 1"), top("floats", "FLOAT_ARRAY", "channels: 2 sample_num_axes: 1"),
      top("encoded", "ENCODED_IMAGE", image), top("raw", "RAW_IMAGE", image), top("sized", "ENCODED_IMAGE_WITH_DIM", image))
    val names = Seq("text", "int", "float", "ints", "floats", "encoded", "raw", "sized")
    def layer(phase: String) = s"""layer { name: "data" type: "CoSData" ${names.map(n => s"""top: "$n" """).mkString} include { phase: $phase } source_class: "com.yahoo.ml.caffe.DataFrameSource"
      cos_data_param { source: "$path" batch_size: 16 shuffle: true ${tops.mkString(" ")} } }\n"""
    val others = names.filterNot(n => n == "raw" || n == "int").map(n => s"""layer { name: "s-$n" type: "Silence" bottom: "$n" include { phase: TRAIN } }\n""").mkString
    val net = "name: \"eight\"\n" + layer("TRAIN") + layer("TEST") + others +
      """layer { name: "ip" type: "InnerProduct" bottom: "raw" top: "ip" inner_product_param { num_output: 50 weight_filler { type: "xavier" } } }
        |layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "int" top: "loss" include { phase: TRAIN } }""".stripMargin
    val home = folder.resolve("eight")
    val conf = TestRecords.config(sc, TestRecords.solver(home, net), home.resolve("model"), "-clusterSize", "2", "-features", names.mkString(","), "-label", "")
    val caffe = new CaffeOnSpark(sc)
    caffe.train(DataSource.getSource(conf, isTraining = true).asInstanceOf[DataSource[Any, Any]])
    val got = caffe.features(DataSource.getSource(conf, isTraining = false).asInstanceOf[DataSource[Any, Any]]).collect().map(row => row.getString(0) -> row).toMap
    assert(got.size == 50)
    for (i <- 0 until 50; row = got(r.id(i))) {
      assert((1 to 5).map(row.getSeq[Float](_)) == Seq(Seq(i + 0.5f), Seq(i.toFloat), Seq(i * 0.25f), Seq(i.toFloat, -i.toFloat, 7f), Seq(i * 0.5f, -1f)))
      for (c <- 6 to 8) assert(row.getSeq[Float](c) == r.pixels(i).toSeq.map(p => (p & 0xff) * 0.5f), s"${names(c - 1)} of row $i")
    }
  }

  test("InfiniBand is answered with a sentence, and the run goes over Ethernet") {
    val home = folder.resolve("infiniband")
    val net = TestRecords.net(memory(trainRecords.lmdb, "com.yahoo.ml.caffe.LMDB", 16), memory(testRecords.lmdb, "com.yahoo.ml.caffe.LMDB", 20))
    val conf = new Config(sc, Array("-conf", TestRecords.solver(home, net), "-model", s"file:${home.resolve("model")}", "-clusterSize", "2"))
    assert(conf.connection == Config.CONNECTION_RDMA && !conf.isConnectionAsked) // what no -connection means
    conf.connection = Config.CONNECTION_RDMA
    val said = new ByteArrayOutputStream
    val before = System.err
    System.setErr(new java.io.PrintStream(said, true))
    try new CaffeOnSpark(sc).train(DataSource.getSource(conf, isTraining = true).asInstanceOf[DataSource[Any, Any]]) finally System.setErr(before)
    assert(said.toString.contains("the workers talk over Ethernet"), said)
    assert(Files.size(home.resolve("model")) > 0)
  }

  private def refused(name: String, net: String): String = intercept[Exception](run(name, net)).getMessage

  test("what is wrong with a source is said in words") {
    val image = "com.yahoo.ml.caffe.ImageDataFrame"
    val good = written("images", testRecords, "parquet", frame(testRecords))
    val other = memory(testRecords.lmdb, "com.yahoo.ml.caffe.LMDB", 20)
    assert(refused("r1", TestRecords.net(memory("/nowhere", image, 16), other)).contains("/nowhere cannot be read as parquet"))
    assert(refused("r2", TestRecords.net(memory(good, image, 16, "dataframe_column_select: \"id\""), other)).contains("has no column 'label'"))
    assert(refused("r3", TestRecords.net(memory(good, image, 16, "dataframe_column_select: \"label\" dataframe_column_select: \"height as data\""), other)).contains("column 'data'"))
    assert(refused("r4", TestRecords.net(memory(good, image, 16, "dataframe_column_select: \"'seven' as label\" dataframe_column_select: \"id\" dataframe_column_select: \"data\""), other))
      .contains("the label 'seven' of image '000000"))
    assert(refused("r5", TestRecords.net(memory(good, "no.such.Source", 16), other)).contains("failed to load class: no.such.Source"))
    assert(refused("r6", TestRecords.net(memory(good, classOf[String].getName, 16), other)).contains("doesn't have constructor of required signature (conf: Config, layerId: Int, isTrain: Boolean)"))
    assert(refused("r7", TestRecords.net(cos(good, 16).replace("\"label\" type", "\"mark\" type"), other)).contains("mark does not exist in dataframe"))
    assert(refused("r8", TestRecords.net(memory(good, image, 16).replace(s"height: $side", "height: 9"), other)).contains("correct channels, height and width"))
    val drawn = written("drawn", testRecords, "parquet", frame(testRecords))
    spark.udf.register("noise", org.apache.spark.sql.functions.udf(() => scala.util.Random.nextInt(10)).asNondeterministic())
    val unstable = memory(drawn, image, 16, "dataframe_column_select: \"id\" dataframe_column_select: \"data\" dataframe_column_select: \"noise() as label\"")
    assert(refused("r9", TestRecords.net(unstable, other)).contains("gave other rows when it was read again"))
  }
}
