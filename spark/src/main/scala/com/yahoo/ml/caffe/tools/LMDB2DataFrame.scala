package com.yahoo.ml.caffe.tools

import com.yahoo.ml.caffe.{Config, LmdbRDD}
import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.types._
import org.apache.spark.sql.{Row, SparkSession}

/** An LMDB of Datum records into a data frame that ImageDataFrame reads: -imageRoot <LMDB> -output -outputFormat
  * -lmdb_partitions. Raw pixels come with their channels side by side.
  */
class LMDB2DataFrame(@transient sc: SparkContext, conf: Config) extends Serializable {
  def makeRDD(): RDD[Row] =
    LmdbRDD(sc, conf.at(conf.imageRoot), conf.lmdb_partitions).map(r => Row(r._1, r._2, r._3, r._4, r._5, r._6, r._7))
}

object LMDB2DataFrame {
  val schema: StructType = StructType(Seq(
      StructField("id", StringType, nullable = true),
      StructField("label", StringType, nullable = false),
      StructField("channels", IntegerType, nullable = true),
      StructField("height", IntegerType, nullable = true),
      StructField("width", IntegerType, nullable = true),
      StructField("encoded", BooleanType, nullable = true),
      StructField("data", BinaryType, nullable = false)
    ))

  private def usage(conf: Config): Option[String] =
    if (Tool.named(conf.imageRoot) && Tool.named(conf.outputPath)) None
    else Some("-imageRoot <LMDB directory> and -output <DataFrameFile> must be defined")

  def main(args: Array[String]): Unit = Tool.main("LMDB2DataFrame", args, usage) { (sc, conf) =>
    run(sc, conf)
  }

  private[tools] def run(sc: SparkContext, conf: Config): Unit = {
    Tool.frameIsFree(conf, sc)
    Tool.lmdb(conf, sc)
    val count = sc.longAccumulator("rows written")
    Tool.written(sc, conf.outputPath, s"rows (${conf.outputFormat})", count, None) {
      val rows = Tool.counted(new LMDB2DataFrame(sc, conf).makeRDD(), count)
      val frame = SparkSession.builder().getOrCreate().createDataFrame(rows, schema)
      frame.write.format(conf.outputFormat).save(conf.outputPath)
    }
  }
}
