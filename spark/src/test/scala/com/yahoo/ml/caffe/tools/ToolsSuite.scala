package com.yahoo.ml.caffe.tools

import java.awt.image.BufferedImage
import java.io.{ByteArrayOutputStream, PrintStream}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path}
import javax.imageio.ImageIO

import _root_.caffe.Caffe.NetParameter
import com.crema.CremaException
import com.yahoo.ml.caffe.{CaffeOnSpark, Config, DataSource, SeqImageDataSource, TestRecords}
import org.apache.hadoop.io.BytesWritable
import org.apache.spark.sql.types._
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

/** The tools that make sources, each read back by training and scoring on what it wrote. The reference is the net on
  * the LMDB itself.
  */
class ToolsSuite extends AnyFunSuite with BeforeAndAfterAll {
  private lazy val spark = TestRecords.spark("local[2]")
  private def sc = spark.sparkContext
  private val side = 12
  private val folder = Files.createTempDirectory("tools-suite-")
  private val train = new TestRecords(folder, 203, 1)
  private val test = new TestRecords(folder, 61, 2)
  override def afterAll(): Unit = {
    spark.stop()
    org.apache.hadoop.fs.FileUtil.fullyDelete(folder.toFile)
  }

  /** PNGs, and a file of lines that name them. */
  private lazy val images: Path = {
    val root = Files.createDirectories(folder.resolve("images"))
    for ((name, r) <- Seq("train" -> train, "test" -> test)) {
      for (i <- 0 until r.count) {
        val picture = new BufferedImage(side, side, BufferedImage.TYPE_BYTE_GRAY)
        picture.getRaster.setDataElements(0, 0, side, side, r.pixels(i))
        ImageIO.write(picture, "png", root.resolve(s"$name-${r.id(i)}").toFile)
      }
      write(root.resolve(s"$name.txt"), (0 until r.count).map(i => s"$name-${r.id(i)} ${r.labels(i)}"))
      write(root.resolve(s"$name-ids.txt"), (0 until r.count).map(i => s"$name-${r.id(i)} ${r.labels(i)} ${r.id(i)}"))
    }
    root
  }
  private def write(file: Path, lines: Seq[String]): String =
    Files.write(file, lines.mkString("", "\n", "\n").getBytes(UTF_8)).toString

  private def memory(kind: String, source: String, batch: Int, more: String): String =
    s"""type: "MemoryData" source_class: "com.yahoo.ml.caffe.$kind" memory_data_param {
       |  source: "$source" batch_size: $batch channels: 1 height: $side width: $side $more }
       |transform_param { scale: 0.00390625 }""".stripMargin

  /** Weights, and scores by record number, of the net trained and scored on these sources. */
  private def run(name: String, kind: String, sources: (String, String),
      more: String = ""): (Seq[Seq[java.lang.Float]], Map[Int, Seq[Float]]) = {
    import scala.collection.JavaConverters._
    val home = folder.resolve(s"run-$name")
    val net = TestRecords.net(memory(kind, sources._1, 16, more), memory(kind, sources._2, 20, more))
    val conf = TestRecords.config(sc, TestRecords.solver(home, net), home.resolve("model"), "-clusterSize", "2",
      "-features", "ip", "-label", "label")
    val cos = new CaffeOnSpark(sc)
    cos.train(DataSource.getSource(conf, isTraining = true).asInstanceOf[DataSource[Any, Any]])
    val rows = cos.features(DataSource.getSource(conf, isTraining = false).asInstanceOf[DataSource[Any, Any]]).collect()
    val layers = NetParameter.parseFrom(Files.readAllBytes(home.resolve("model"))).getLayerList.asScala
    (layers.flatMap(_.getBlobsList.asScala.map(_.getDataList.asScala.toSeq)).toSeq,
      rows.map(r => r.getString(0).takeRight(8).toInt -> (r.getSeq[Float](1) ++ r.getSeq[Float](2))).toMap)
  }

  private lazy val reference = run("lmdb", "LMDB", (train.lmdb, test.lmdb))

  private def out(name: String): String = folder.resolve(name).toString
  private def conf(flags: (String, String)*): Config =
    new Config(sc, flags.flatMap { case (k, v) => Seq(s"-$k", v) }.toArray)
  private def heard(work: => Unit): String = {
    val (said, before) = (new ByteArrayOutputStream, System.err)
    System.setErr(new PrintStream(said, true))
    try work
    finally System.setErr(before)
    said.toString
  }

  test("Binary2Sequence: keys and bytes, and the LMDB's model and scores through SeqImageDataSource") {
    for ((name, r) <- Seq("train" -> train, "test" -> test)) {
      val c = conf("imageRoot" -> s"file:$images", "labelFile" -> s"file:$images/$name.txt")
      new Binary2Sequence(sc, c).makeRDD().saveAsSequenceFile(out(s"seq-$name"))
    }
    val written = sc.sequenceFile(out("seq-test"), classOf[BytesWritable], classOf[BytesWritable])
    val read = written.map { case (k, v) => (k.copyBytes(), v.copyBytes()) }.collect()
    val keys = read.map { case (k, _) =>
      new java.io.ObjectInputStream(new java.io.ByteArrayInputStream(k)).readObject()
    }
    assert(keys.toSeq == (0 until test.count).map(i => (s"test-${test.id(i)}", test.labels(i).toString)))
    for (i <- 0 until test.count)
      assert(read(i)._2.toSeq == Files.readAllBytes(images.resolve(s"test-${test.id(i)}")).toSeq)
    assert(run("seq", "SeqImageDataSource", (out("seq-train"), out("seq-test"))) == reference)
  }

  test("Binary2DataFrame: schema, and the LMDB's model and scores through ImageDataFrame") {
    for (name <- Seq("train", "test")) {
      val c = conf("imageRoot" -> images.toString, "labelFile" -> s"$images/$name-ids.txt")
      val rows = new Binary2DataFrame(sc, c).makeRDD()
      spark.createDataFrame(rows, Binary2DataFrame.schema).write.parquet(out(s"frame-$name"))
    }
    assert(spark.read.parquet(out("frame-test")).schema.map(f => (f.name, f.dataType)) == Seq("SampleID" -> StringType,
      "label" -> IntegerType, "data" -> BinaryType))
    val select = Seq("SampleID as id", "label", "data").map(c => s"""dataframe_column_select: "$c"""").mkString(" ")
    assert(run("frame", "ImageDataFrame", (out("frame-train"), out("frame-test")),
      s"image_encoded: true $select") == reference)
  }

  test("LMDB2Sequence and LMDB2DataFrame: every record, and the LMDB's model and scores") {
    // One file each: Spark reads several ORC files longest first, and parts of a SequenceFile as a local folder lists
    // them: another order of training.
    for ((name, r) <- Seq("train" -> train, "test" -> test)) {
      val c = conf("imageRoot" -> r.lmdb, "lmdb_partitions" -> "3")
      assert(new LMDB2Sequence(sc, c).makeRDD().getNumPartitions == 3)
      new LMDB2Sequence(sc, c).makeRDD().coalesce(1).saveAsSequenceFile(out(s"lmdb-seq-$name"))
      val rows = new LMDB2DataFrame(sc, c).makeRDD()
      spark.createDataFrame(rows, LMDB2DataFrame.schema).coalesce(1).write.orc(out(s"lmdb-frame-$name"))
    }
    val frame = spark.read.orc(out("lmdb-frame-test"))
    assert(frame.schema.map(f => (f.name, f.dataType)) == Seq("id" -> StringType, "label" -> StringType,
      "channels" -> IntegerType, "height" -> IntegerType, "width" -> IntegerType, "encoded" -> BooleanType,
      "data" -> BinaryType))
    val found = frame.orderBy("id").collect().map { r =>
      (r.getString(0), r.getString(1), r.getInt(2), r.getInt(3), r.getInt(4), r.getBoolean(5),
        r.getAs[Array[Byte]](6).toSeq)
    }
    val expected = (0 until test.count).map { i =>
      (test.id(i), test.labels(i).toString, 1, side, side, false, test.pixels(i).toSeq)
    }
    assert(found.toSeq == expected)
    assert(run("lmdb-seq", "SeqImageDataSource", (out("lmdb-seq-train"), out("lmdb-seq-test"))) == reference)
    assert(run("lmdb-frame", "ImageDataFrame", (out("lmdb-frame-train"), out("lmdb-frame-test")),
      "dataframe_format: \"orc\"") == reference)
  }

  test("lines that cannot be used are skipped, counted once and reported with file and line; nothing else is lost") {
    val good = (0 until 5).map(i => s"test-${test.id(i)} ${test.labels(i)} ${test.id(i)}")
    val file = write(folder.resolve("some-bad.txt"),
      Seq(good(0), "", "two words", good(1), "absent 1 x", good(2), s"test-${test.id(9)} seven y", good(3), good(4)))
    val tool = new Binary2DataFrame(sc, conf("imageRoot" -> images.toString, "labelFile" -> file))
    val rows = tool.makeRDD()
    assert(rows.map(_.getString(0)).collect().toSeq == (0 until 5).map(test.id))
    assert(rows.count() == 5) // a second action meets the same lines
    val said = heard(tool.lines.report())
    assert(tool.lines.skipped.count == 3)
    val expected = Seq(
      s"$file, line 3: 'two words' is not 'filename label id'",
      s"$file, line 5: ",
      s"$file, line 7: the label 'seven' is no whole number",
      s"3 line(s) of $file skipped"
    )
    for (sentence <- expected) assert(said.contains(sentence), said)
    assert(said.split("\n").exists(l => l.contains("line 5") && l.contains("absent")), said)
    val none = new Binary2Sequence(sc, conf("imageRoot" -> out("nowhere"), "labelFile" -> s"$images/test.txt"))
    assert(none.makeRDD().count() == 0)
    val words = s"none of the 61 line(s) of $images/test.txt could be used; the first reason: "
    val many = heard(assert(intercept[CremaException](none.lines.report()).getMessage.startsWith(words)))
    assert(many.contains("skipped: 41 more"), many)
  }

  test("usage is asked for before anything is made") {
    val cases = Seq[(Config => Option[String], Seq[String], String)](
      (LabelFile.usage, Nil, "Both -imageRoot and -labelFile must be defined"),
      (LabelFile.usage, Seq("-imageRoot", "x"), "Both -imageRoot and -labelFile must be defined")
    )
    for ((usage, flags, text) <- cases) assert(usage(new Config(null, flags.toArray)).contains(text))
    assert(LabelFile.usage(new Config(null, Array("-imageRoot", "x", "-labelFile", "y"))).isEmpty)
    val taken = Files.createDirectories(folder.resolve("taken")).toString
    assert(intercept[IllegalArgumentException](Tool.outputIsFree(taken, sc)).getMessage.contains("exists already"))
    assert(intercept[CremaException](Tool.lmdb(conf("imageRoot" -> out("no-lmdb")), sc)).getMessage
        .contains("there is no LMDB at -imageRoot"))
  }

  test("what is written is told; where nothing could be used, nothing is left") {
    val all = conf("imageRoot" -> images.toString, "labelFile" -> s"$images/test-ids.txt", "output" -> out("told"),
      "outputFormat" -> "parquet")
    val said = heard(Binary2DataFrame.run(sc, all))
    assert(said.contains(s"crema: 61 rows (parquet) are at ${out("told")}"), said)
    val none = conf("imageRoot" -> out("nowhere"), "labelFile" -> s"$images/test-ids.txt", "output" -> out("nothing"),
      "outputFormat" -> "parquet")
    heard {
      val e = intercept[CremaException](Binary2DataFrame.run(sc, none))
      assert(e.getMessage.contains("none of the 61 line(s)"))
    }
    assert(!Files.exists(folder.resolve("nothing")))
    none.outputFormat = "jsn"
    assert(intercept[IllegalArgumentException](Binary2DataFrame.run(sc, none)).getMessage
        .startsWith("-outputFormat jsn"))
  }

  test("LMDB2DataFrame's JSON, whose binary is base64, gives the LMDB's model and scores") {
    for ((name, r) <- Seq("train" -> train, "test" -> test)) {
      val c = conf("imageRoot" -> r.lmdb, "lmdb_partitions" -> "1", "output" -> out(s"json-$name"),
        "outputFormat" -> "json")
      val said = heard(LMDB2DataFrame.run(sc, c))
      assert(said.contains(s"${r.count} rows (json) are at "), said)
    }
    assert(spark.read.json(out("json-test")).schema("data").dataType == StringType)
    assert(run("json", "ImageDataFrame", (out("json-train"), out("json-test")),
      "dataframe_format: \"json\"") == reference)
    val bad =
      "dataframe_format: \"json\" dataframe_column_select: \"id\" dataframe_column_select: \"label\" " +
        "dataframe_column_select: \"'no base64!' as data\""
    val sources = (out("json-train"), out("json-test"))
    val e = intercept[Exception](run("json-bad", "ImageDataFrame", sources, bad)).getMessage
    assert(e.contains("data of row '000000") && e.contains("is no base64"), e)
  }
}
