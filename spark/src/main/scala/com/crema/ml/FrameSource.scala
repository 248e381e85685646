package com.crema.ml

import com.yahoo.ml.caffe.{Config, DataFrameSource}
import org.apache.spark.sql.DataFrame

/** A data source over a frame that is already there, with the columns that FrameNet names; messages call them as the
  * user does.
  *
  * @param classes whether the labels are classes
  */
private[crema] class FrameSource(conf: Config, layerId: Int, isTrain: Boolean, @transient held: DataFrame,
    input: String, label: String, classes: Boolean)
    extends DataFrameSource(conf, layerId, isTrain) {
  override protected def loaded(): DataFrame = held
  override protected def describe: String = "the frame"
  override protected def areColumnsGiven: Boolean = false
  override protected def nameOf(top: String): String = if (top == FrameNet.InputColumn) input else label
  override protected def wholeTops: Set[String] = if (classes) Set(FrameNet.LabelColumn) else Set.empty
}
