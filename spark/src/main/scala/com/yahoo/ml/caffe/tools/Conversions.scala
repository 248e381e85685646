package com.yahoo.ml.caffe.tools

import com.crema.{CremaException, HadoopSettings, WrongArgument}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.functions.{col, explode}
import org.apache.spark.sql.types._
import org.apache.spark.sql.{DataFrame, Row, SQLContext}
import org.slf4j.LoggerFactory

import scala.util.control.NonFatal

/** From COCO's JSON to data frames that DataFrameSource reads, and from ids back to captions. */
object Conversions {
  private val token = "\\w+|\\W+".r

  /** Splits a sentence into words and punctuation, in lower case, without blanks and without the full stop at the end.
    */
  def sentence2Words(sentence: String): Array[String] = {
    val words = token.findAllIn(sentence).map(_.trim.toLowerCase.replaceAll("\\s+", " ")).filter(_.nonEmpty).toArray
    if (words.lastOption.contains(".")) words.init else words
  }

  private val coco: StructType = {
    def list(fields: (String, DataType)*) = ArrayType(StructType(fields.map { case (n, t) => StructField(n, t) }))
    val images = list("id" -> LongType, "height" -> IntegerType, "width" -> IntegerType, "file_name" -> StringType,
      "flickr_url" -> StringType, "coco_url" -> StringType)
    val annotations = list("image_id" -> LongType, "id" -> LongType, "caption" -> StringType)
    StructType(Seq(StructField("images", images), StructField("annotations", annotations)))
  }

  /** Reads COCO's caption file: a row for each caption (id is the caption's), ordered by id, in `clusterSize`
    * partitions. Without annotations in the file: a row for each image (id is the image's), no caption, coco_url as
    * url.
    *
    * Images without captions, and captions without their image, give no rows.
    */
  def Coco2ImageCaptionFile(sqlContext: SQLContext, src: String, clusterSize: Int): DataFrame = {
    val file = sqlContext.read.schema(coco).option("multiLine", "true").option("mode", "FAILFAST").json(src)
    val (images, captioned) =
      try {
        val found = file.selectExpr("images is not null", "annotations is not null").collect()
        (found.exists(_.getBoolean(0)), found.exists(_.getBoolean(1)))
      } catch { case NonFatal(e) => throw new WrongArgument(s"$src cannot be read as COCO's JSON: ${rootCause(e)}", e) }
    if (!images) throw new WrongArgument(
      s"$src has no 'images'; a caption file of COCO has a list of them, and one of 'annotations'")
    val url = if (captioned) "i.flickr_url" else "i.coco_url"
    val pictures = file.select(explode(col("images")).as("i"))
      .selectExpr("i.id as id", "i.height as height", "i.width as width", "i.file_name as file", s"$url as url")
    val rows =
      if (!captioned) pictures
      else {
        val captions = file.select(explode(col("annotations")).as("a"))
          .selectExpr("a.image_id as image_id", "a.id as caption_id", "a.caption as caption")
        pictures.join(captions, col("id") === col("image_id"))
          .selectExpr("caption_id as id", "height", "width", "file", "url", "caption")
      }
    rows.repartitionByRange(math.max(1, clusterSize), col("id")).sortWithinPartitions("id")
  }

  private def rootCause(e: Throwable): String =
    Iterator.iterate(e)(_.getCause).takeWhile(_ != null).toSeq.last.getMessage

  val INNER_DATA_FIELD_SCHEMA: StructType = StructType(Seq(StructField("height", IntegerType),
    StructField("width", IntegerType), StructField("image", ArrayType(ByteType))))

  private val imageSchema = StructType(Seq(StructField("id", StringType), StructField("data", INNER_DATA_FIELD_SCHEMA),
    StructField("label", IntegerType)))
  private val captionSchema = Seq("input_sentence", "cont_sentence", "target_sentence")
    .foldLeft(imageSchema)((s, name) => s.add(name, ArrayType(IntegerType)))

  /** Columns id, data (the image's file with height and width) and label (0). An image that cannot be read ends the
    * job.
    */
  def Image2Embedding(imageRootFolder: String, imageCaptionDF: DataFrame): DataFrame =
    Image2Embedding(imageRootFolder, imageCaptionDF, null)

  /** The same, but images that cannot be read are skipped and counted. */
  def Image2Embedding(imageRootFolder: String, imageCaptionDF: DataFrame, skipped: Skipped): DataFrame =
    embedded(imageRootFolder, imageCaptionDF.select("id", "file", "height", "width"), imageSchema, skipped)(_ => Nil)

  /** Image2Embedding's columns and three arrays of `captionLength` ids. A caption of more than captionLength - 1 words
    * is cut.
    *
    * {{{ input_sentence   0 w1 w2 ... wn -1 ...
    *     cont_sentence    0  1  1 ...  1 -1 ...
    *     target_sentence w1 w2 ... wn  0 -1 ... }}}
    */
  def ImageCaption2Embedding(imageRootFolder: String, imageCaptionDF: DataFrame, vocab: Vocab,
      captionLength: Int): DataFrame =
    ImageCaption2Embedding(imageRootFolder, imageCaptionDF, vocab, captionLength, null)

  def ImageCaption2Embedding(imageRootFolder: String, imageCaptionDF: DataFrame, vocab: Vocab, captionLength: Int,
      skipped: Skipped): DataFrame = {
    if (captionLength < 1) throw new WrongArgument(
      s"a caption length of $captionLength leaves no room for the end of a sentence; give 1 or more")
    val ids = words(vocab).word2indexMap()
    val rows = imageCaptionDF.select("id", "file", "height", "width", "caption")
    embedded(imageRootFolder, rows, captionSchema, skipped) { row =>
      val sentence = sentence2Words(row.getString(4)).take(captionLength - 1).map(ids.getOrElse(_, Vocab.UNKNOWN_ID))
      def filled(values: Seq[Int]) = values.padTo(captionLength, Vocab.NO_TOKEN)
      Seq(filled(Vocab.START_END_ID +: sentence.toSeq), filled(0 +: sentence.toSeq.map(_ => 1)),
        filled(sentence.toSeq :+ Vocab.START_END_ID))
    }
  }

  private def words(vocab: Vocab): Vocab =
    if (vocab.word2indexMap().nonEmpty) vocab
    else throw new IllegalStateException("the vocabulary has no words; call genFromData or load first")

  private def embedded(root: String, rows: DataFrame, schema: StructType, skipped: Skipped)(
      more: Row => Seq[Any]): DataFrame = {
    val hadoop = HadoopSettings.of(rows.sparkSession.sparkContext.hadoopConfiguration)
    val made: RDD[Row] = rows.rdd.mapPartitions { all =>
      val settings = hadoop.configuration
      for (row <- all; data <- image(root, row, settings, skipped))
        yield Row.fromSeq(Seq(row.get(0).toString, data, 0) ++ more(row))
    }
    rows.sparkSession.createDataFrame(made, schema)
  }

  private def image(root: String, row: Row, settings: Configuration, skipped: Skipped): Option[Row] =
    try {
      val bytes = Tool.bytes(new Path(s"$root/${row.getString(1)}"), settings)
      Some(Row(row.getAs[Number](2).intValue, row.getAs[Number](3).intValue, bytes))
    } catch {
      case NonFatal(e) =>
        val reason = s"row ${row.get(0)}, image '${row.get(1)}': ${Tool.cause(e)}"
        if (skipped == null) throw new CremaException(reason, e)
        LoggerFactory.getLogger(getClass).warn(reason)
        skipped.add((row.getAs[Number](0).longValue, reason))
        None
    }

  /** Converts ids back into words, separated by single blanks; ids for start, end and padding are left out. Columns id
    * (a number) and `captionColumn`.
    */
  def Embedding2Caption(embeddingDF: DataFrame, vocab: Vocab, embeddedingColumn: String,
      captionColumn: String): DataFrame = {
    val byId = words(vocab).index2wordMap()
    val size = vocab.size
    val captions = embeddingDF.select("id", embeddedingColumn).rdd.map { row =>
      val ids = row.getAs[scala.collection.Seq[Number]](1).map(_.intValue)
        .filter(i => i != Vocab.START_END_ID && i != Vocab.NO_TOKEN)
      for (i <- ids if !byId.contains(i))
        throw new CremaException(s"column $embeddedingColumn of row ${row.get(0)} has id $i, and the vocabulary " +
          s"ends at ${size - 1}; use the one it was made with")
      Row(row.get(0).toString.toLong, ids.map(byId).mkString(" "))
    }
    val schema = StructType(Seq(StructField("id", LongType), StructField(captionColumn, StringType)))
    embeddingDF.sparkSession.createDataFrame(captions, schema)
  }
}
