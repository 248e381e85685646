package com.yahoo.ml.caffe

import scala.annotation.nowarn

import com.crema.WrongArgument
import org.apache.spark.sql.Row
import org.apache.spark.sql.expressions.{MutableAggregationBuffer, UserDefinedAggregateFunction}
import org.apache.spark.sql.types._

/** The element-wise mean of a column of float arrays of length `n`, summed in double. Spark has deprecated this kind of
  * function, but users of CaffeOnSpark have it in their code.
  */
@nowarn("cat=deprecation")
private[caffe] class VectorMean(n: Int) extends UserDefinedAggregateFunction {
  override def inputSchema: StructType = StructType(Seq(StructField("name", ArrayType(FloatType), nullable = false)))
  override def bufferSchema: StructType = StructType(Seq(StructField("sum", ArrayType(DoubleType), nullable = false),
    StructField("cnt", LongType, nullable = false)))
  override def dataType: DataType = ArrayType(DoubleType)
  override def deterministic: Boolean = true

  override def initialize(buffer: MutableAggregationBuffer): Unit = {
    buffer(0) = Array.fill(n)(0.0).toSeq
    buffer(1) = 0L
  }
  override def update(buffer: MutableAggregationBuffer, input: Row): Unit = {
    val values = input.getSeq[Float](0)
    if (values.length != n) throw new WrongArgument(s"VectorMean($n) met an array of ${values.length} values")
    add(buffer, values.map(_.toDouble).toSeq, 1L)
  }
  override def merge(buffer: MutableAggregationBuffer, other: Row): Unit =
    add(buffer, other.getSeq[Double](0).toSeq, other.getLong(1))
  /** Null when there was no row. */
  override def evaluate(buffer: Row): Any =
    if (buffer.getLong(1) == 0) null else buffer.getSeq[Double](0).map(_ / buffer.getLong(1)).toSeq

  private def add(buffer: MutableAggregationBuffer, values: Seq[Double], count: Long): Unit = {
    buffer(0) = buffer.getSeq[Double](0).zip(values).map { case (a, b) => a + b }.toSeq
    buffer(1) = buffer.getLong(1) + count
  }
}
