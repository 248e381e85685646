package com.yahoo.tensorflowonspark

import org.apache.hadoop.mapreduce.Job
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat
import org.apache.spark.SparkContext
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.sql.types.StructType

/** TensorFlowOnSpark's DFUtil on the data source `tfrecord`, whose types and errors docs/tfrecords.md lists. */
object DFUtil {
  private val Source = "com.crema.tfrecord" // by its package, as other jars may register the short name too

  /** Examples as rows.
    *
    * @param inputDir files or folders, globs allowed, several with commas between
    * @param schemaHint types of some columns or of all: they come first, in this order; a column that it calls not
    *   nullable fails the job where a record lacks it. The others are inferred.
    */
  def loadTFRecords(inputDir: String, schemaHint: StructType = new StructType())(
      implicit sc: SparkContext): DataFrame = {
    val spark = SparkSession.builder().getOrCreate()
    val job = Job.getInstance(sc.hadoopConfiguration)
    FileInputFormat.setInputPaths(job, inputDir)
    val paths = FileInputFormat.getInputPaths(job).map(_.toString)
    val frame = spark.read.format(Source).option("schemaHint", schemaHint.json).load(paths: _*)
    val always = schemaHint.filterNot(_.nullable).map(_.name).toSet
    if (always.isEmpty) frame
    else {
      // A file format's columns can always be null for Spark; rows that are made anew are checked against the schema.
      val schema = StructType(frame.schema.map(f => f.copy(nullable = !always(f.name))))
      spark.createDataFrame(frame.rdd, schema)
    }
  }

  /** Writes a folder of TFRecord files, which must not be there yet. */
  def saveAsTFRecords(df: DataFrame, outputDir: String): Unit = df.write.format(Source).save(outputDir)
}
