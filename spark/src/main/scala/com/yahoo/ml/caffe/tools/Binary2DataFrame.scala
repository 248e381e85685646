package com.yahoo.ml.caffe.tools

import com.yahoo.ml.caffe.Config
import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.types._
import org.apache.spark.sql.{Row, SparkSession}

/** Image files into a data frame: -imageRoot -labelFile -output -outputFormat. Lines are `filename label id`; columns
  * SampleID, label, data. ImageDataFrame reads it with `dataframe_column_select: "SampleID as id"`, "label" and "data",
  * and `image_encoded: true`.
  */
class Binary2DataFrame(@transient sc: SparkContext, conf: Config) extends Serializable {
  private[tools] val lines = new LabelFile(sc, conf, "filename label id", 3)

  /** Lines that cannot be used are left out, and counted once an action has run. */
  def makeRDD(): RDD[Row] = lines.map((words, bytes) => Row(words(2), LabelFile.label(words(1)), bytes))
}

object Binary2DataFrame {
  val schema: StructType = StructType(Seq(StructField("SampleID", StringType, nullable = false),
    StructField("label", IntegerType, nullable = false),
    StructField("data", BinaryType, nullable = false)))

  def main(args: Array[String]): Unit = Tool.main("Binary2DataFrame", args, LabelFile.usage) { (sc, conf) =>
    run(sc, conf)
  }

  private[tools] def run(sc: SparkContext, conf: Config): Unit = {
    Tool.frameIsFree(conf, sc)
    val (tool, count) = (new Binary2DataFrame(sc, conf), sc.longAccumulator("rows written"))
    Tool.written(sc, conf.outputPath, s"rows (${conf.outputFormat})", count, Some(tool.lines)) {
      val frame = SparkSession.builder().getOrCreate().createDataFrame(Tool.counted(tool.makeRDD(), count), schema)
      frame.write.format(conf.outputFormat).save(conf.outputPath)
    }
  }
}
