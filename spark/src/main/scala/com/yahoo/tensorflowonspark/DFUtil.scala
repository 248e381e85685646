package com.yahoo.tensorflowonspark

import com.crema.tfrecord.BadRecord
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
    val always = schemaHint.filterNot(_.nullable).map(_.name)
    if (always.isEmpty) frame
    else {
      // A file format's columns can always be null for Spark.
      val columns = always.map(name => name -> frame.schema.fieldIndex(name))
      val rows = frame.rdd.map { row =>
        for ((name, i) <- columns if row.isNullAt(i))
          throw new BadRecord(
            s"a record of $inputDir has no feature '$name', and the hint says that it is never null; " +
              "make its field nullable")
        row
      }
      spark.createDataFrame(rows, StructType(frame.schema.map(f => f.copy(nullable = !always.contains(f.name)))))
    }
  }

  /** Writes a folder of TFRecord files, which must not be there yet. */
  def saveAsTFRecords(df: DataFrame, outputDir: String): Unit = df.write.format(Source).save(outputDir)
}
