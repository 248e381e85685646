package com.yahoo.ml.caffe.tools

import com.yahoo.ml.caffe.{Config, LmdbRDD}
import org.apache.hadoop.io.BytesWritable
import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD

/** An LMDB of Datum records into a SequenceFile that SeqImageDataSource reads: -imageRoot <LMDB> -output
  * -lmdb_partitions. A key is the Java-serialised (id, label, channels, height, width, encoded).
  */
class LMDB2Sequence(@transient sc: SparkContext, conf: Config) extends Serializable {
  def makeRDD(): RDD[(BytesWritable, BytesWritable)] = LmdbRDD(sc, conf.at(conf.imageRoot), conf.lmdb_partitions)
    .map { case (id, label, channels, height, width, encoded, bytes) =>
      (new BytesWritable(Tool.serialised((id, label, channels, height, width, encoded))), new BytesWritable(bytes))
    }
}

object LMDB2Sequence {
  private def usage(conf: Config): Option[String] =
    if (Tool.named(conf.imageRoot) && Tool.named(conf.outputPath)) None
    else Some("-imageRoot <LMDB directory> and -output <SequenceFile> must be defined")

  def main(args: Array[String]): Unit = Tool.main("LMDB2Sequence", args, usage) { (sc, conf) =>
    Tool.outputIsFree(conf.outputPath, sc)
    Tool.lmdb(conf, sc)
    val count = sc.longAccumulator("records written")
    Tool.written(sc, conf.outputPath, "records", count, None) {
      Tool.counted(new LMDB2Sequence(sc, conf).makeRDD(), count).saveAsSequenceFile(conf.outputPath)
    }
  }
}
