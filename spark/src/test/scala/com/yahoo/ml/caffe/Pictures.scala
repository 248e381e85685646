package com.yahoo.ml.caffe

import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD

/** PNG of SourceRuns' test records in batches of 23. "damaged": of these the last one of the first batch and the
  * whole second one are no pictures; "without": what then counts, the first of the batch in place of its last one, and
  * no second batch.
  */
class Pictures(conf: Config, layerId: Int, isTrain: Boolean) extends ImageDataSource(conf, layerId, isTrain) {
  override def makeRDD(sc: SparkContext): RDD[(String, String, Int, Int, Int, Boolean, Array[Byte])] = {
    val (r, kind) = (SourceRuns.test, layerParameter.getMemoryDataParam.getSource)
    val bad = if (kind == "damaged") (22 until 46).toSet else Set[Int]()
    val numbers = if (kind == "damaged") 0 until r.count else (0 until 22) ++ Seq(0) ++ (46 until r.count)
    val rows = numbers.map(i =>
      (r.id(i), r.labels(i).toString, 0, 0, 0, true,
        if (bad(i)) "no picture".getBytes else SourceRuns.png(r.pixels(i), r.side)))
    sc.parallelize(rows, 4)
  }
}
