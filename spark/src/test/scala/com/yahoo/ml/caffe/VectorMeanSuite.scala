package com.yahoo.ml.caffe

import scala.annotation.nowarn

import org.apache.spark.mllib.linalg.Vector
import org.apache.spark.sql.Row
import org.apache.spark.sql.functions.col
import org.apache.spark.sql.types._
import org.scalatest.funsuite.AnyFunSuite

/** VectorMean and the functions on array<float> columns. */
class VectorMeanSuite extends AnyFunSuite {
  private val (a, b) = (Seq(20.37f, 56.87f, 123.56f), Seq(-11.34f, 45.89f, 127.30f))
  private val schema = StructType(Seq(StructField("name", StringType, nullable = false),
    StructField("data", ArrayType(FloatType), nullable = false)))

  @nowarn("cat=deprecation")
  private def mean(df: org.apache.spark.sql.DataFrame, n: Int): Row = df.agg(new VectorMean(n)(df("data"))).head()

  test("the mean of vectors over partitions, one of them empty; none of no rows") {
    val spark = TestRecords.spark("local[2]")
    try {
      val rows = a.indices.map(i => Row(s"row $i", Seq(a(i), b(i))))
      val df = spark.createDataFrame(spark.sparkContext.parallelize(rows, 4), schema)
      val means = mean(df, 2).getSeq[Double](0)
      for ((m, values) <- means.zip(Seq(a, b))) assert(math.abs(m - values.map(_.toDouble).sum / 3) < 1e-12)
      assert(mean(df.filter(col("name") === "none"), 2).isNullAt(0))
      assert(Iterator.iterate[Throwable](intercept[Exception](mean(df, 3)))(_.getCause).takeWhile(_ != null)
          .exists(e => String.valueOf(e.getMessage).contains("VectorMean(3) met an array of 2 values")))
      val caffe = new CaffeOnSpark(spark.sparkContext)
      val both = df.select(caffe.floatarray2doubleUDF(col("data")), caffe.floatarray2doublevectorUDF(col("data")))
        .collect()
      for ((row, i) <- both.zipWithIndex) {
        assert(row.getDouble(0) === a(i).toDouble)
        assert(row.getAs[Vector](1).toArray.toSeq === Seq(a(i).toDouble, b(i).toDouble))
      }
    } finally spark.stop()
  }
}
