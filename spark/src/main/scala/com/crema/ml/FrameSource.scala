package com.crema.ml

import com.yahoo.ml.caffe.{Config, DataFrameSource}
import org.apache.spark.sql.DataFrame

/** A data source over a frame that is already there, with the columns that FrameNet names. */
private[crema] class FrameSource(conf: Config, layerId: Int, isTrain: Boolean, @transient held: DataFrame) extends DataFrameSource(conf, layerId, isTrain) {
  override protected def loaded(): DataFrame = held
  override def describe: String = "DataFrame"
}
