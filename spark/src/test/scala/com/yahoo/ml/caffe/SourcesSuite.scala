package com.yahoo.ml.caffe

import java.io.ByteArrayOutputStream
import java.nio.file.Files

import com.yahoo.ml.caffe.tools.Tool.serialised
import com.yahoo.ml.dl.caffe.Pair
import org.apache.hadoop.io.BytesWritable
import org.apache.spark.sql.Row
import org.apache.spark.sql.types._

/** Trains on the same records through every kind of source: the model must have the same bytes. */
class SourcesSuite extends SourceRuns {
  import SourceRuns.{folder, png, test => testRecords, train => trainRecords}

  private val image = "com.yahoo.ml.caffe.ImageDataFrame"

  /** The records as they are, in files of this format: of training, of the test. */
  private def images(format: String): (String, String) =
    (written("images", trainRecords, format, frame(trainRecords)),
      written("images", testRecords, format, frame(testRecords)))

  private def selected(expressions: String*): String =
    expressions.map(e => s"""dataframe_column_select: "$e"""").mkString(" ")

  test("an LMDB trains to something better than chance, and every record is scored once") {
    assert(reference._2.keySet == (0 until testRecords.count).map(testRecords.id).toSet)
    val right = reference._2.values.count(v => v.take(10).zipWithIndex.maxBy(_._1)._2 == v(10).toInt)
    assert(right > testRecords.count / 2, s"$right of ${testRecords.count}")
  }

  for (format <- Seq("parquet", "orc", "json")) test(s"ImageDataFrame: $format") {
    val columns = selected("id", "label", "unbase64(data) as data", "cast(channels as int) channels",
      "cast(height as int) height", "cast(width as int) width")
    val more = s"""dataframe_format: "$format" ${if (format == "json") columns else ""}"""
    val (a, b) = images(format)
    same(s"image-$format", TestRecords.net(memory(a, image, 16, more), memory(b, image, 20, more)))
  }

  test("ImageDataFrame: PNG, kept on disk with -persistent") {
    val Seq(a, b) = Seq(trainRecords, testRecords).map { r =>
      written("png", r, "parquet", frame(r, i => png(r.pixels(i), side), encoded = true))
    }
    same("png", TestRecords.net(memory(a, image, 16), memory(b, image, 20)), "-persistent")
  }

  test("DataFrameSource with CoSData") {
    val (a, b) = images("parquet")
    same("cos", TestRecords.net(cos(a, 16), cos(b, 20)))
  }

  private val keys = Seq[(String, (TestRecords, Int) => AnyRef)](
    "tuple6" -> ((r, i) => (r.id(i), r.labels(i).toString, 1, r.side, r.side, false)),
    "tuple2" -> ((r, i) => (r.id(i), r.labels(i).toString)),
    "pair" -> ((r, i) => new Pair(r.id(i), r.labels(i).toString))
  )

  for ((name, key) <- keys) test(s"SeqImageDataSource: keys of $name") {
    def file(r: TestRecords): String = {
      val path = folder.resolve(s"seq-$name-${r.count}").toString
      def value(i: Int) = if (name == "tuple6") r.pixels(i) else png(r.pixels(i), side)
      val rows = sc.parallelize((0 until r.count).map(i => (serialised(key(r, i)), value(i))), 3)
      rows.map { case (k, v) => (new BytesWritable(k), new BytesWritable(v)) }.saveAsSequenceFile(path)
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
      val r = trainRecords
      val expected = (0 until 401).map(i => (r.id(i), r.labels(i).toString, r.pixels(i).toSeq))
      assert(rdd.map(r => (r._1, r._2, r._7.toSeq)).collect().toSeq == expected)
    }
    for ((n, parts) <- Seq((50, 11), (1, 1), (10, 3), (7, 7), (100, 99)); ranges = LmdbRDD.split(n, parts))
      assert(ranges.flatMap { case (a, b) => a until b } == (0L until n.toLong) && ranges.size == math.min(n, parts),
        (n, parts))
  }

  test("images that cannot be decoded are passed over, in training and in scoring, and counted") {
    val broken = Set(0, 7, 8, 100)
    def picture(i: Int) = if (broken(i)) "no picture".getBytes else png(testRecords.pixels(i), side)
    val path = written("broken", testRecords, "parquet", frame(testRecords, picture, encoded = true))
    val said = new ByteArrayOutputStream
    val before = System.err
    System.setErr(new java.io.PrintStream(said, true))
    val (_, features, _) =
      try run("broken", TestRecords.net(memory(path, image, 16), memory(path, image, 20)))
      finally System.setErr(before)
    assert(features.keySet == (0 until testRecords.count).filterNot(broken).map(testRecords.id).toSet)
    assert("4 record\\(s\\) could not be decoded".r.findAllIn(said.toString).size == 2, said)
  }

  test("sets smaller than a batch, and a partition for every row") {
    val few = new TestRecords(folder, 15, 3)
    val path = written("few", few, "parquet", frame(few).repartition(15))
    val (_, features, _) = run("few", TestRecords.net(memory(path, image, 100), memory(path, image, 100)))
    assert(features.keySet == (0 until 15).map(few.id).toSet)
    val two = new TestRecords(folder, 2, 4)
    val tiny = written("two", two, "parquet", frame(two))
    val net = TestRecords.net(memory(tiny, image, 1), memory(tiny, image, 1))
    val e = intercept[IllegalStateException](run("two", net)).getMessage
    val known = "Insufficient training data. Please adjust hyperparameters or increase dataset."
    assert(e.startsWith(known) && e.contains("2 records"), e)
  }

  test("validation gives a row for each test, equal to the LMDB's") {
    val (a, b) = images("parquet")
    val nets = Seq("v-lmdb" -> lmdbNet, "v-frame" -> TestRecords.net(memory(a, image, 16), memory(b, image, 20)))
    val found = nets.map { case (name, net) =>
      val home = folder.resolve(name)
      val solver = TestRecords.solver(home, net, "test_iter: 4 test_interval: 10")
      val conf = TestRecords.config(sc, solver, home.resolve("model"), "-train", "-clusterSize", "2")
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
    def fields(of: (String, DataType)*) = StructType(of.map { case (name, kind) => StructField(name, kind) })
    val sized = fields("height" -> IntegerType, "width" -> IntegerType, "image" -> ArrayType(ByteType))
    val schema = fields(
      "id" -> StringType,
      "text" -> StringType,
      "int" -> IntegerType,
      "float" -> FloatType,
      "ints" -> ArrayType(IntegerType),
      "floats" -> ArrayType(FloatType),
      "encoded" -> BinaryType,
      "raw" -> BinaryType,
      "sized" -> sized
    )
    val rows = (0 until 50).map { i =>
      val picture = png(r.pixels(i), side)
      Row(r.id(i), s" $i.5", i, i * 0.25f, Seq(i, -i, 7), Seq(i * 0.5f, -1f), picture, r.pixels(i),
        Row(side, side, picture.toSeq))
    }
    val path = written("eight", new TestRecords(folder, 50, 9), "parquet",
      spark.createDataFrame(sc.parallelize(rows, 4), schema))
    def top(name: String, kind: String, shape: String) = s"""top { name: "$name" type: $kind $shape }"""
    val image = s"channels: 1 height: $side width: $side transform_param { scale: 0.5 }"
    val tops = Seq(
      top("text", "STRING", "channels: 1 sample_num_axes: 1"),
      top("int", "INT", "sample_num_axes: 0"),
      top("float", "FLOAT", "channels: 1 height: 1 sample_num_axes: 2"),
      top("ints", "INT_ARRAY", "channels: 3 sample_num_axes: 1"),
      top("floats", "FLOAT_ARRAY", "channels: 2 sample_num_axes: 1"),
      top("encoded", "ENCODED_IMAGE", image),
      top("raw", "RAW_IMAGE", image),
      top("sized", "ENCODED_IMAGE_WITH_DIM", image)
    )
    val names = Seq("text", "int", "float", "ints", "floats", "encoded", "raw", "sized")
    val lines = names.map(n => s"""top: "$n" """).mkString
    def layer(phase: String) =
      s"""layer { name: "data" type: "CoSData" $lines include { phase: $phase }
      source_class: "com.yahoo.ml.caffe.DataFrameSource"
      cos_data_param { source: "$path" batch_size: 16 shuffle: true ${tops.mkString(" ")} } }\n"""
    val unread = names.filterNot(n => n == "raw" || n == "int")
    val others = unread.map(n => s"""layer { name: "s-$n" type: "Silence" bottom: "$n" include { phase: TRAIN } }\n""")
    val net = "name: \"eight\"\n" + layer("TRAIN") + layer("TEST") + others.mkString +
      """layer { name: "ip" type: "InnerProduct" bottom: "raw" top: "ip"
        |  inner_product_param { num_output: 50 weight_filler { type: "xavier" } } }
        |layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "int" top: "loss"
        |  include { phase: TRAIN } }""".stripMargin
    val home = folder.resolve("eight")
    val conf = TestRecords.config(sc, TestRecords.solver(home, net), home.resolve("model"), "-clusterSize", "2",
      "-features", names.mkString(","), "-label", "")
    val caffe = new CaffeOnSpark(sc)
    caffe.train(DataSource.getSource(conf, isTraining = true).asInstanceOf[DataSource[Any, Any]])
    val features = caffe.features(DataSource.getSource(conf, isTraining = false).asInstanceOf[DataSource[Any, Any]])
    val got = features.collect().map(row => row.getString(0) -> row).toMap
    assert(got.size == 50)
    for (i <- 0 until 50; row = got(r.id(i))) {
      val numbers = Seq(Seq(i + 0.5f), Seq(i.toFloat), Seq(i * 0.25f), Seq(i.toFloat, -i.toFloat, 7f),
        Seq(i * 0.5f, -1f))
      assert((1 to 5).map(row.getSeq[Float](_)) == numbers)
      for (c <- 6 to 8)
        assert(row.getSeq[Float](c) == r.pixels(i).toSeq.map(p => (p & 0xff) * 0.5f), s"${names(c - 1)} of row $i")
    }
  }

  test("InfiniBand is answered with a sentence, and the run goes over Ethernet") {
    val home = folder.resolve("infiniband")
    val (solver, model) = (TestRecords.solver(home, lmdbNet), s"file:${home.resolve("model")}")
    val conf = new Config(sc, Array("-conf", solver, "-model", model, "-clusterSize", "2"))
    assert(conf.connection == Config.CONNECTION_RDMA && !conf.isConnectionAsked) // what no -connection means
    conf.connection = Config.CONNECTION_RDMA
    val said = new ByteArrayOutputStream
    val before = System.err
    System.setErr(new java.io.PrintStream(said, true))
    try new CaffeOnSpark(sc).train(DataSource.getSource(conf, isTraining = true).asInstanceOf[DataSource[Any, Any]])
    finally System.setErr(before)
    assert(said.toString.contains("the workers talk over Ethernet"), said)
    assert(Files.size(home.resolve("model")) > 0)
  }

  test("what is wrong with a source is said in words") {
    val good = written("images", testRecords, "parquet", frame(testRecords))
    val other = memory(testRecords.lmdb, lmdb, 20)
    def refused(name: String, train: String, why: String) = {
      val said = intercept[Exception](run(name, TestRecords.net(train, other))).getMessage
      assert(said.contains(why))
    }
    def ofColumns(expressions: String*) = memory(good, image, 16, selected(expressions: _*))
    refused("r1", memory("/nowhere", image, 16), "/nowhere cannot be read as parquet")
    refused("r2", ofColumns("id"), "has no column 'label'")
    refused("r3", ofColumns("label", "height as data"), "column 'data'")
    refused("r4", ofColumns("'seven' as label", "id", "data"), "the label 'seven' of image '000000")
    refused("r5", memory(good, "no.such.Source", 16), "failed to load class: no.such.Source")
    refused("r6", memory(good, classOf[String].getName, 16),
      "doesn't have constructor of required signature (conf: Config, layerId: Int, isTrain: Boolean)")
    refused("r7", cos(good, 16).replace("\"label\" type", "\"mark\" type"), "mark does not exist in dataframe")
    refused("r8", memory(good, image, 16).replace(s"height: $side", "height: 9"), "correct channels, height and width")
    val drawn = written("drawn", testRecords, "parquet", frame(testRecords))
    val noise = org.apache.spark.sql.functions.udf(() => scala.util.Random.nextInt(10)).asNondeterministic()
    spark.udf.register("noise", noise)
    refused("r9", memory(drawn, image, 16, selected("id", "data", "noise() as label")),
      "gave other rows when it was read again")
  }
}
