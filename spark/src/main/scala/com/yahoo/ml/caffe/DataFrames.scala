package com.yahoo.ml.caffe

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.QueryExecution
import org.apache.spark.sql.types.DataType

/** What both sources of data frames need. */
private[caffe] object DataFrames {
  /** @throws IllegalArgumentException with Spark's reason when the format or path cannot be read */
  def load(format: String, path: String): DataFrame =
    try SparkSession.builder.getOrCreate().read.format(format).load(path) catch {
      case e: Exception => throw new IllegalArgumentException(s"$path cannot be read as $format: ${Option(e.getMessage).getOrElse(e.toString)}", e)
    }

  /** Spark's own rows: nothing is converted that is not asked for. The rows may be used again by Spark, so each is read before the next.
    * (Found by name: the method moved between Spark 3 and 4.)
    */
  def internalRows(frame: DataFrame): RDD[InternalRow] =
    frame.getClass.getMethod("queryExecution").invoke(frame).asInstanceOf[QueryExecution].toRdd

  def typeError(column: String, is: DataType, wanted: String, where: String): Nothing =
    throw new IllegalArgumentException(s"column '$column' of $where is ${is.simpleString}, and $wanted is needed; convert it (dataframe_column_select, or a cast)")
}
