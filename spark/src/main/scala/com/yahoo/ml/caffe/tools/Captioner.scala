package com.yahoo.ml.caffe.tools

import java.io.File
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.Files

import com.crema._
import com.crema.wire.Wire.Job
import com.google.protobuf.TextFormat
import com.yahoo.ml.caffe.{CosColumns, Top}
import org.apache.hadoop.fs.{FileUtil, Path}
import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.functions.{col, struct}
import org.apache.spark.sql.types._
import org.apache.spark.sql.{DataFrame, Row, SparkSession}
import org.apache.spark.storage.StorageLevel

import scala.collection.JavaConverters._
import scala.collection.mutable.ArrayBuffer

/** Captions for pictures: first the picture's features, then word after word, each the most probable one after those
  * before. One pass over all unfinished sentences gives each its next word. The LSTM's state travels with the rows, so
  * any task can compute any row. Cost: in every pass each task starts an executable that reads the model.
  *
  * @param model as lrcn_solver trains it
  * @param imageNet lstm_deploy.prototxt, or one with other sizes
  * @param wordNet lrcn_word_to_preds.deploy.prototxt, or one with other sizes
  * @param mean of the pictures' channels, as in the net that was trained
  */
class Captioner(sc: SparkContext, model: String, imageNet: String, wordNet: String, mean: Seq[Float]) {
  def this(sc: SparkContext, model: String, imageNet: String, wordNet: String) =
    this(sc, model, imageNet, wordNet, Seq(104f, 117f, 123f))

  private val hadoop = HadoopSettings.of(sc.hadoopConfiguration)
  private val pictureNet = CaptionNets.ofPictures(CaptionNets.read(imageNet, hadoop), imageNet, mean)
  private val sentenceNet = CaptionNets.ofWords(CaptionNets.read(wordNet, hadoop), wordNet)
  private val place = Storage.resolveInput(model, "the model", sc.hadoopConfiguration)
  if (!Storage.exists(place, sc.hadoopConfiguration))
    throw new WrongArgument(s"there is no model at $model; train lrcn_solver first, or correct the name")

  /** Columns id and prediction, a row for each of `images` in their order; null where a picture cannot be decoded.
    * Sentences begin with a capital and end with a full stop, or with `...` when they are cut at maxLength words.
    *
    * @param images id, and data {height, width, image} as Image2Embedding makes it, or these three as columns
    * @param vocab the one that the model was trained with
    */
  def captions(images: DataFrame, vocab: Vocab, maxLength: Int = 50): DataFrame = {
    if (maxLength < 1) throw new WrongArgument(s"captions of $maxLength words say nothing; give 1 or more")
    val data = if (images.columns.contains("data")) col("data") else struct(col("height"), col("width"), col("image"))
    val rows = images.select(col("id").cast(StringType), data).coalesce(math.max(1, sc.defaultParallelism)).rdd
    val numbered = rows.zipWithIndex().persist(StorageLevel.DISK_ONLY)
    val weights = SharedFile.of(sc, new File(Storage.fetch(place, sc.hadoopConfiguration)), new Path(place).getName)
    try {
      val ids = numbered.map { case (row, i) => (i, row.getString(0)) }.collect().sortBy(_._1).map(_._2)
      val pictures = numbered.map { case (row, i) => Row(i.toString, row.get(1)) }
      val said = JobError.explained(wordByWord(pictures, weights, vocab, maxLength))
      val captions = ids.toSeq.zipWithIndex.map { case (id, i) => Row(id, said.get(i).map(sentence(_, vocab)).orNull) }
      val schema = StructType(Seq(StructField("id", StringType), StructField("prediction", StringType)))
      images.sparkSession.createDataFrame(captions.asJava, schema)
    } finally { numbered.unpersist() }
  }

  /** The words' ids by row number, including the id that ends a sentence. */
  private def wordByWord(images: RDD[Row], weights: SharedFile, vocab: Vocab, maxLength: Int): Map[Int, Seq[Int]] = {
    val said = scala.collection.mutable.Map[Int, ArrayBuffer[Int]]()
    val schema =
      StructType(Seq(StructField("id", StringType), StructField("data", Conversions.INNER_DATA_FIELD_SCHEMA)))
    val zeros = sentenceNet.data.getTopList.asScala.drop(3).map(t => Array.fill(t.getChannels)(0f).toSeq)
    val wordRun = job(sentenceNet)
    var before: RDD[(String, Int, Int, Seq[Seq[Float]])] = null
    var next: RDD[Row] = scored(job(pictureNet), pictureNet, images, schema, weights)
      .map(r => Row(Seq(r.id, Seq(0), Seq(Vocab.START_END_ID), r.values.head.toSeq) ++ zeros: _*))
    var (going, passes) = (true, 0)
    while (going) {
      val pass = scored(wordRun, sentenceNet, next, wordSchema, weights)
        .map(r => (r.id, Captioner.best(r.values.head), r.values.head.length, r.values.tail.map(_.toSeq)))
        .persist(StorageLevel.DISK_ONLY)
      val found = pass.map { case (id, word, classes, _) => (id.toInt, word, classes) }.collect()
      if (before != null) before.unpersist()
      before = pass
      for ((i, word, classes) <- found) {
        if (classes != vocab.size)
          throw new WrongArgument(s"the net of $wordNet knows $classes words and the vocabulary ${vocab.size}; " +
            "use the one that the model was trained with")
        said.getOrElseUpdate(i, ArrayBuffer()) += word
      }
      next = pass.filter(_._2 != Vocab.START_END_ID).map { case (id, word, _, state) =>
        Row(Seq(id, Seq(1), Seq(word)) ++ state: _*)
      }
      passes += 1
      going = passes < maxLength && found.exists { case (_, word, _) => word != Vocab.START_END_ID }
    }
    before.unpersist()
    said.toMap.map { case (i, ids) => i -> ids.toSeq }
  }

  private def wordSchema = {
    val columns = sentenceNet.data.getTopList.asScala.toSeq.zipWithIndex.map { case (t, i) =>
      StructField(t.getName, ArrayType(if (i < 2) IntegerType else FloatType, containsNull = false))
    }
    StructType(StructField("id", StringType) +: columns)
  }

  private def sentence(ids: Seq[Int], vocab: Vocab): String = {
    val (whole, byId) = (ids.lastOption.contains(Vocab.START_END_ID), vocab.index2wordMap())
    val text = ids.filter(_ != Vocab.START_END_ID).map(byId).mkString(" ").capitalize
    if (text.isEmpty) text else text + (if (whole) "." else "...")
  }

  /** The job for a scoring process; the executable checks the net here, before the first task. */
  private def job(fed: FedNet): Array[Byte] = {
    val folder = Files.createTempDirectory("crema-captions-").toFile
    try {
      val (net, solver) = (new File(folder, "net.prototxt"), new File(folder, "solver.prototxt"))
      Files.write(net.toPath, TextFormat.printer().printToString(fed.net).getBytes(UTF_8))
      Files.write(solver.toPath,
        s"""net: "${net.getPath}" base_lr: 0 lr_policy: "fixed" max_iter: 1 random_seed: 1 solver_mode: CPU\n"""
          .getBytes(UTF_8))
      val plan = Planner.plan(solver.getPath, 1, 1, fed.blobs, train = false, test = true)
      Job.newBuilder.setSolver(plan.getSolver).setNetOrigin("Captioner").setWeightsName(model)
        .setThreads(Cluster.threadsPerTask(sc)).setResize(true).addAllBlobs(fed.blobs.asJava).build().toByteArray
    } finally FileUtil.fullyDelete(folder)
  }

  private def scored(job: Array[Byte], fed: FedNet, rows: RDD[Row], schema: StructType,
      weights: SharedFile): RDD[ScoredRow] = {
    val frame = SparkSession.builder().getOrCreate().createDataFrame(rows, schema)
    val batch = fed.data.getBatchSize
    val records = new CosColumns("captions", batch, frame, fed.data.getTopList.asScala.map(new Top(_)).toArray)
    val spec = ScoreRun.Spec(job, weights, batch, 1, hadoop)
    ScoreRun.rows(sc, spec, records, sc.longAccumulator("pictures that could not be decoded"))
  }
}

private object Captioner {
  /** The index of the largest value, the first one of equal ones. */
  def best(probabilities: Array[Float]): Int = probabilities.indices.maxBy(probabilities(_))
}
