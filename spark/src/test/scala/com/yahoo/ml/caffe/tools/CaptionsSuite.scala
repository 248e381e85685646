package com.yahoo.ml.caffe.tools

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path, Paths}

import com.crema.CremaException
import com.yahoo.ml.caffe.{Config, TestRecords}
import org.apache.spark.sql.types._
import org.apache.spark.sql.{DataFrame, Row}
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

/** Captions to ids and back; the witness is counting by hand, on a caption file made here and on COCO's own where it
  * is.
  */
class CaptionsSuite extends AnyFunSuite with BeforeAndAfterAll {
  private lazy val spark = TestRecords.spark("local[2]")
  private val folder = Files.createTempDirectory("captions-suite-")
  override def afterAll(): Unit = {
    spark.stop()
    org.apache.hadoop.fs.FileUtil.fullyDelete(folder.toFile)
  }

  private val sentences =
    Seq("A cat sits.", "A dog, a cat and a bird sit on the wall", "the Bird  sings; unk!", "...", "a")
  /** Bytes of all values, for they go through array<byte>. */
  private lazy val json: String = {
    for (i <- 1 to 3) Files.write(folder.resolve(s"$i.jpg"), Array.tabulate(300 * i)(_.toByte))
    val images = (1 to 3).map { i =>
      s"""{"id": $i, "height": ${10 * i}, "width": ${20 * i}, "file_name": "$i.jpg",
         |"flickr_url": "http://f/$i", "coco_url": "http://c/$i"}""".stripMargin
    }
    val notes = sentences.zipWithIndex.map { case (s, k) =>
      s"""{"image_id": ${k % 3 + 1}, "id": ${100 - k}, "caption": "$s"}"""
    }
    val (pictures, captions) = (images.mkString(",\n"), notes.mkString(",\n"))
    write("captions.json", s"""{"info": {"year": 2014},\n "images": [$pictures],\n "annotations": [$captions]}""")
    write("images.json", s"""{"images": [${images.mkString(",")}]}""")
    folder.resolve("captions.json").toString
  }
  private def write(name: String, text: String): Path = Files.write(folder.resolve(name), text.getBytes(UTF_8))
  private def captions = Conversions.Coco2ImageCaptionFile(spark.sqlContext, json, 2)

  test("sentences become words") {
    val cases = Seq(
      "A cat sits." -> Seq("a", "cat", "sits"),
      " it's \"so\", no? " -> Seq("it", "'", "s", "\"", "so", "\",", "no", "?"),
      "" -> Nil,
      "." -> Nil,
      "..." -> Seq("..."),
      "a.b" -> Seq("a", ".", "b"),
      "x ,\n. y" -> Seq("x", ", .", "y")
    )
    for ((sentence, words) <- cases) {
      assert(Conversions.sentence2Words(sentence).toSeq == words, sentence)
      assert(Conversions.sentence2Words(words.mkString(" ")).toSeq == words, s"'$sentence' again")
    }
  }

  test("the caption file: schema, rows, order, partitions; without annotations the images") {
    val found = captions
    assert(found.schema.map(f => (f.name, f.dataType)) == Seq("id" -> LongType, "height" -> IntegerType,
      "width" -> IntegerType, "file" -> StringType, "url" -> StringType, "caption" -> StringType))
    assert(found.rdd.getNumPartitions == 2)
    assert(found.collect().toSeq == sentences.zipWithIndex.reverse.map { case (s, k) =>
      val i = k % 3 + 1
      Row(100L - k, 10 * i, 20 * i, s"$i.jpg", s"http://f/$i", s)
    })
    val only = Conversions.Coco2ImageCaptionFile(spark.sqlContext, folder.resolve("images.json").toString, 1)
    assert(only.columns.toSeq == Seq("id", "height", "width", "file", "url"))
    assert(only.collect().toSeq == (1 to 3).map(i => Row(i.toLong, 10 * i, 20 * i, s"$i.jpg", s"http://c/$i")))
    val wrong = Seq("{\"images\": [" -> "cannot be read as COCO's JSON", "{\"other\": 1}" -> "has no 'images'")
    for ((text, says) <- wrong) {
      val broken = write("broken.json", text).toString
      val e = intercept[IllegalArgumentException](Conversions.Coco2ImageCaptionFile(spark.sqlContext, broken, 1))
      assert(e.getMessage.contains(says) && e.getMessage.contains(broken), e.getMessage)
    }
  }

  private def vocab(size: Int = -1): Vocab = {
    val v = new Vocab(spark.sqlContext)
    v.genFromData(captions, "caption", size)
    v
  }

  test("a vocabulary: the most frequent words from id 2, UNK is 1, line n of the file is id n, and the sizes agree") {
    val counts = sentences.flatMap(Conversions.sentence2Words(_)).filter(_ != "unk").groupBy(identity)
      .map { case (w, all) => w -> all.size }
    val order = counts.toSeq.sortBy { case (w, n) => (-n, w) }.map(_._1)
    assert(order.take(3) == Seq("a", "bird", "cat"))
    val all = vocab()
    assert(all.word2indexMap() == order.zipWithIndex.map { case (w, i) => w -> (i + 2) }.toMap + ("UNK" -> 1))
    assert(all.index2wordMap() == all.word2indexMap().map(_.swap))
    assert(all.size == order.size + 2)
    val eight = vocab(8)
    assert(eight.size == 9) // as the net of -vocabSize 8800 has 8801 classes
    assert(eight.word2indexMap().keySet == order.take(7).toSet + "UNK")
    eight.save(folder.resolve("vocab").toString)
    val lines = Files.readAllLines(folder.resolve("vocab/part-00000")).toArray.toSeq
    assert(lines == "UNK" +: order.take(7))
    // The caption generator of CaffeOnSpark puts an end token before the lines: the number there is the id here.
    for ((word, i) <- ("<EOS>" +: lines.map(_.toString)).zipWithIndex.tail) assert(eight.id(word) == i)
    val again = vocab()
    again.load(folder.resolve("vocab").toString)
    assert(again.word2indexMap() == eight.word2indexMap() && again.size == 9)
    assert(again.id("never heard") == 1)
  }

  test("vocabularies that would number words wrongly are refused") {
    val wrong = Seq(
      "a\nb\n" -> "line 1: 'a' stands where the unknown word does",
      "" -> "line 1: the file is empty",
      "UNK\na\n\nb\n" -> "line 3: no word",
      "UNK\na\nb\na\n" -> "line 4: 'a' was on line 2 already"
    )
    for ((text, says) <- wrong) {
      val e = intercept[CremaException](new Vocab(spark.sqlContext).load(write("bad.txt", text).toString))
      assert(e.getMessage.contains(says) && e.getMessage.contains("bad.txt"), e.getMessage)
    }
    val empty = new Vocab(spark.sqlContext)
    assert(intercept[IllegalStateException](empty.save("x")).getMessage.contains("no words to save"))
    val e = intercept[IllegalStateException](Conversions.ImageCaption2Embedding("x", captions, empty, 5))
    assert(e.getMessage.contains("has no words"), e)
  }

  private def ids(frame: DataFrame): Map[String, Seq[Seq[Int]]] =
    frame.collect().map(r => r.getString(0) -> Seq(3, 4, 5).map(r.getSeq[Int](_).toSeq)).toMap

  /** The three arrays by hand. */
  private def byHand(sentence: String, v: Vocab, length: Int): Seq[Seq[Int]] = {
    val input, cont, target = Array.fill(length)(-1)
    val words = Conversions.sentence2Words(sentence)
    val n = math.min(words.length, length - 1)
    input(0) = 0
    cont(0) = 0
    for (i <- 0 until n) { input(i + 1) = v.id(words(i)); cont(i + 1) = 1; target(i) = v.id(words(i)) }
    target(n) = 0
    Seq(input.toSeq, cont.toSeq, target.toSeq)
  }

  private def chain(rows: DataFrame, root: String, said: Map[String, String], size: Int, length: Int): Unit = {
    val v = new Vocab(spark.sqlContext)
    v.genFromData(rows, "caption", size)
    val made = Conversions.ImageCaption2Embedding(root, rows, v, length)
    assert(ids(made) == said.map { case (id, s) => id -> byHand(s, v, length) })
    for (column <- Seq("input_sentence", "target_sentence")) {
      val back = Conversions.Embedding2Caption(made, v, column, "caption")
      assert(back.schema.map(f => (f.name, f.dataType)) == Seq("id" -> LongType, "caption" -> StringType))
      for (r <- back.collect(); words = Conversions.sentence2Words(said(r.getLong(0).toString)).take(length - 1))
        assert(r.getString(1) == words.map(w => if (v.id(w) == 1) "UNK" else w).mkString(" "))
      // Once more from the made sentences: ids to words to ids is the identity, unknown words included.
      val second = Conversions.ImageCaption2Embedding(root, back.join(rows.drop("caption"), "id"), v, length)
      assert(ids(second) == ids(made), s"$column, $size words, length $length")
    }
  }

  test("sentence to ids to sentence, with all words and with unknown ones, whole and cut, down to a length of 1") {
    val said = sentences.zipWithIndex.map { case (s, k) => (100 - k).toString -> s }.toMap
    for ((size, length) <- Seq((-1, 20), (-1, 11), (-1, 10), (4, 20), (1, 6), (-1, 1)))
      chain(captions, folder.toString, said, size, length)
    def embedded(length: Int) = Conversions.ImageCaption2Embedding(folder.toString, captions, vocab(), length)
    assert(intercept[IllegalArgumentException](embedded(0)).getMessage.contains("caption length of 0"))
    val back = Conversions.Embedding2Caption(embedded(20), vocab(3), "input_sentence", "c")
    val e = intercept[Exception](back.collect())
    assert(e.getMessage.contains("the vocabulary ends at 3"), e.getMessage)
  }

  test("images travel whole; one that is not there ends the job, or is counted") {
    val pictures = Conversions.Image2Embedding(folder.toString, captions)
    assert(pictures.schema.map(f => (f.name, f.dataType)) == Seq("id" -> StringType,
      "data" -> Conversions.INNER_DATA_FIELD_SCHEMA, "label" -> IntegerType))
    for (r <- pictures.collect(); i = (100 - r.getString(0).toInt) % 3 + 1; data = r.getStruct(1)) {
      assert((data.getInt(0), data.getInt(1), r.getInt(2)) == ((10 * i, 20 * i, 0)))
      assert(data.getSeq[Byte](2).toSeq == Files.readAllBytes(folder.resolve(s"$i.jpg")).toSeq)
    }
    val empty = Files.createDirectories(folder.resolve("without"))
    Files.copy(folder.resolve("1.jpg"), empty.resolve("1.jpg"))
    val e = intercept[Exception](Conversions.Image2Embedding(empty.toString, captions).collect())
    assert(e.getMessage.contains(".jpg'"), e.getMessage)
    val skipped = Skipped(spark.sparkContext, "test")
    val left = Conversions.Image2Embedding(empty.toString, captions, skipped).collect().map(_.getString(0))
    assert(left.toSet == Set("100", "97"))
    assert(skipped.count == 3 && skipped.reported.exists(_.startsWith("row 96, image '2.jpg': ")), skipped.reported)
  }

  test("CocoDataSetConverter writes the three outputs, and uses a vocabulary that is there") {
    val out = s"file:${folder.resolve("coco")}/"
    def convert(more: String*): Unit = {
      val flags = Array("-imageRoot", folder.toString, "-captionFile", json, "-output", out, "-outputFormat", "parquet",
        "-vocabDir", "vocab", "-captionLength", "7")
      CocoDataSetConverter.run(spark.sparkContext, new Config(spark.sparkContext, flags ++ more))
    }
    convert("-imageCaptionDFDir", "captions", "-vocabSize", "5", "-embeddingDFDir", "embedding")
    assert(spark.read.json(s"${out}captions").count() == 5)
    assert(Files.readAllLines(folder.resolve("coco/vocab/part-00000")).size == 5)
    val first = spark.read.parquet(s"${out}embedding")
    assert(first.columns.toSeq == Seq("id", "data", "label", "input_sentence", "cont_sentence", "target_sentence"))
    assert(first.select("input_sentence").collect().forall(_.getSeq[Int](0).size == 7))
    convert("-embeddingDFDir", "second") // -vocabSize would be all: the vocabulary of before is taken
    assert(ids(spark.read.parquet(s"${out}second")) == ids(first))
    assert(intercept[IllegalArgumentException](convert("-embeddingDFDir", "second")).getMessage
        .contains("exists already"))
    assert(intercept[IllegalArgumentException](convert("-embeddingDFDir", "vocab")).getMessage.contains("vocab"))
  }

  test("COCO's own file and pictures") {
    val data = Paths.get(sys.env.getOrElse("CREMA_SHARED_DATA", "../../shared/data"))
    val shared = data.resolve("coco").toAbsolutePath.toString
    assume(Files.exists(Paths.get(shared, "coco.json")), s"skipped: there is no $shared/coco.json")
    val rows = Conversions.Coco2ImageCaptionFile(spark.sqlContext, s"$shared/coco.json", 4)
    val said = Map("2" -> "A panoramic view of a kitchen and all of its appliances.",
      "3" -> "A blue and white bathroom with butterfly themed wall tiles.")
    assert(rows.collect().map(r => r.getLong(0).toString -> r.getString(5)).toMap == said)
    val v = new Vocab(spark.sqlContext)
    v.genFromData(rows, "caption", 23)
    assert(v.word2indexMap().size == 18 && v.id("butterfly") > 1) // 17 words and UNK
    for ((size, length) <- Seq((23, 10), (23, 20), (5, 20))) chain(rows, shared, said, size, length)
    val pictures = Conversions.Image2Embedding(shared, rows).collect().map(_.getStruct(1).getSeq[Byte](2).size.toLong)
    val files = Seq(57870, 384029).map(n => Paths.get(shared, f"COCO_train2014_$n%012d.jpg"))
    assert(pictures.sorted.toSeq == files.map(Files.size(_)).sorted)
    val test = Conversions.Coco2ImageCaptionFile(spark.sqlContext, s"$shared/coco_test.json", 1).collect()
    assert(test.map(_.getString(4)).toSeq == Seq("http://mscoco.org/images/57870"))
  }
}
