package com.yahoo.ml.caffe.tools

import com.yahoo.ml.caffe.Config
import org.apache.hadoop.io.BytesWritable
import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD

/** Image files into a SequenceFile that SeqImageDataSource reads: -imageRoot -labelFile -output. Lines are `filename
  * label`; a key is the Java-serialised pair of them, a value the file's bytes.
  */
class Binary2Sequence(@transient sc: SparkContext, conf: Config) extends Serializable {
  private[tools] val lines = new LabelFile(sc, conf, "filename label", 2)

  /** Lines that cannot be used are left out, and counted once an action has run. */
  def makeRDD(): RDD[(BytesWritable, BytesWritable)] = lines.map { (words, bytes) =>
    (new BytesWritable(Tool.serialised((words(0), words(1)))), new BytesWritable(bytes))
  }
}

object Binary2Sequence {
  def main(args: Array[String]): Unit = Tool.main("Binary2Sequence", args, LabelFile.usage) { (sc, conf) =>
    Tool.outputIsFree(conf.outputPath, sc)
    val (tool, count) = (new Binary2Sequence(sc, conf), sc.longAccumulator("records written"))
    Tool.written(sc, conf.outputPath, "records", count, Some(tool.lines)) {
      Tool.counted(tool.makeRDD(), count).saveAsSequenceFile(conf.outputPath)
    }
  }
}
