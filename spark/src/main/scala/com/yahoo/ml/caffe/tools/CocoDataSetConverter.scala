package com.yahoo.ml.caffe.tools

import com.crema.WrongArgument
import com.yahoo.ml.caffe.Config
import org.apache.hadoop.fs.Path
import org.apache.spark.SparkContext
import org.apache.spark.sql.{DataFrame, SparkSession}

/** COCO's images and captions into what a captioning net trains on: -imageRoot -captionFile -output -outputFormat
  * -imageCaptionDFDir -vocabDir -vocabSize -embeddingDFDir -captionLength -clusterSize. The three names are written
  * behind -output as they are, so it ends in `/`. A vocabulary that is there already is used. `-captionLength` is the
  * length of the net's sentence tops (`channels`).
  */
object CocoDataSetConverter {
  private def usage(conf: Config): Option[String] =
    if (Tool.named(conf.imageRoot) && Tool.named(conf.captionFile)) None
    else Some("Both -imageRoot and -captionFile must be defined")

  def main(args: Array[String]): Unit = Tool.main("CocoDataSetConverter", args, usage)(run)

  private[tools] def run(sc: SparkContext, conf: Config): Unit = {
    val embedding = conf.outputPath + conf.embeddingDFDir
    val listed = if (conf.imageCaptionDFDir.isEmpty) None else Some(conf.outputPath + conf.imageCaptionDFDir)
    (embedding +: listed.toSeq).foreach(Tool.outputIsFree(_, sc))
    val sql = SparkSession.builder().getOrCreate().sqlContext
    val rows = Conversions.Coco2ImageCaptionFile(sql, conf.captionFile, conf.clusterSize)
    val captioned = rows.columns.contains("caption")
    if (captioned && conf.vocabDir == conf.embeddingDFDir)
      throw new WrongArgument("-vocabDir and -embeddingDFDir name one place; give two names")
    listed.foreach(rows.write.json(_))
    val skipped = Skipped(sc, s"images skipped of ${conf.captionFile}")
    val made: DataFrame =
      if (!captioned) Conversions.Image2Embedding(conf.imageRoot, rows, skipped)
      else {
        val vocab = vocabulary(sc, conf, rows)
        Conversions.ImageCaption2Embedding(conf.imageRoot, rows, vocab, conf.captionLength, skipped)
      }
    made.write.format(conf.outputFormat).save(embedding)
    skipped.report("row(s)", conf.captionFile, rows.count())
    Tool.say(s"${rows.count() - skipped.count} rows (${conf.outputFormat}) are at $embedding")
  }

  private def vocabulary(sc: SparkContext, conf: Config, rows: DataFrame): Vocab = {
    val vocab = new Vocab(SparkSession.builder().getOrCreate().sqlContext)
    val place = conf.outputPath + conf.vocabDir
    val path = new Path(place)
    if (path.getFileSystem(sc.hadoopConfiguration).exists(path)) vocab.load(place)
    else {
      vocab.genFromData(rows, "caption", conf.vocabSize)
      vocab.save(place)
    }
    Tool.say(s"the vocabulary at $place has ids 0 to ${vocab.size - 1}: a net over it needs ${vocab.size} classes")
    vocab
  }
}
