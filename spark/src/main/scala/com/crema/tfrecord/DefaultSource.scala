package com.crema.tfrecord

import com.crema.WrongArgument
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.hadoop.io.compress.CompressionCodec
import org.apache.hadoop.mapreduce.{Job, TaskAttemptContext}
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat
import org.apache.spark.TaskContext
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.datasources.{FileFormat, OutputWriter, OutputWriterFactory, PartitionedFile}
import org.apache.spark.sql.sources.{DataSourceRegister, Filter}
import org.apache.spark.sql.types._
import org.apache.spark.util.SerializableConfiguration

/** `spark.read.format("tfrecord")` and `df.write.format("tfrecord")`: docs/tfrecords.md. As one of Spark's file formats
  * it has globs, partition columns, Spark's committers, overwriting and streaming from Spark.
  */
class DefaultSource extends FileFormat with DataSourceRegister with Serializable {
  override def shortName(): String = "tfrecord"
  override def toString: String = "TFRecord"
  // Plans are compared with their formats in them, for example to find cached data.
  override def equals(other: Any): Boolean = other.isInstanceOf[DefaultSource]
  override def hashCode: Int = getClass.hashCode

  // Spark asks for each file, and a copy of all settings costs a millisecond.
  @transient private var splitting: Option[(Map[String, String], FileSplitting)] = None

  override def isSplitable(spark: SparkSession, options: Map[String, String], path: Path): Boolean = {
    val known = Option(splitting).flatten.filter(_._1 == options).getOrElse((options,
        new FileSplitting(settings(spark, options))))
    splitting = Some(known)
    known._2.splittable(path)
  }

  override def inferSchema(spark: SparkSession, options: Map[String, String], files: Seq[FileStatus]): Option[
    StructType] = {
    val asked = TFRecordOptions(options)
    Some(
      if (!asked.examples) ByteRows.Schema
      else {
        val paths = files.filter(_.getLen > 0).map(_.getPath.toString).sorted
        InferredSchema.of(spark.sparkContext, paths, asked, settings(spark, options))
      })
  }

  /** Hadoop's settings with the session's and the reader's over them. */
  private def settings(spark: SparkSession, options: Map[String, String]): Configuration = {
    val conf = new Configuration(spark.sparkContext.hadoopConfiguration)
    (spark.conf.getAll ++ options).foreach { case (key, value) => if (value != null) conf.set(key, value) }
    TFRecordOptions(options).setReading(conf)
  }

  override protected def buildReader(spark: SparkSession, dataSchema: StructType, partitionSchema: StructType,
      requiredSchema: StructType, filters: Seq[Filter], options: Map[String, String], hadoopConf: Configuration)
      : PartitionedFile => Iterator[InternalRow] = {
    val asked = TFRecordOptions(options)
    val examples = asked.examples
    if (examples) new RowDecoder(dataSchema) else ByteRows.check(dataSchema) // refused here rather than in tasks
    val conf = spark.sparkContext.broadcast(new SerializableConfiguration(asked.setReading(hadoopConf)))
    (file: PartitionedFile) => {
      val reader = new SplitReader(file.toPath, file.start, file.length, conf.value.value)
      Option(TaskContext.get()).foreach(_.addTaskCompletionListener[Unit](_ => reader.close()))
      if (examples) new ExampleRows(reader, new RowDecoder(requiredSchema)) else new ByteRows(reader, requiredSchema)
    }
  }

  override def prepareWrite(
      spark: SparkSession, job: Job, options: Map[String, String], dataSchema: StructType): OutputWriterFactory = {
    val asked = TFRecordOptions(options)
    val examples = asked.examples
    if (examples) new RowEncoder(dataSchema) else ByteRows.check(dataSchema)
    asked.codec(job.getConfiguration).foreach {
      case None => FileOutputFormat.setCompressOutput(job, false)
      case Some(codec) =>
        FileOutputFormat.setCompressOutput(job, true)
        FileOutputFormat.setOutputCompressorClass(job, codec.getClass)
    }
    new OutputWriterFactory {
      override def getFileExtension(context: TaskAttemptContext): String =
        ".tfrecord" + Option(FrameWriter.codec(context)).fold("")(_.getDefaultExtension)

      override def newInstance(path: String, schema: StructType, context: TaskAttemptContext): OutputWriter = {
        val codec: CompressionCodec = FrameWriter.codec(context)
        val out = FrameWriter.create(new Path(path), codec, context.getConfiguration)
        if (examples) new ExampleWriter(path, out, new RowEncoder(schema)) else new ByteWriter(path, out)
      }
    }
  }
}

/** Rows of a split, closed at its end. The row is the same object each time. */
private abstract class SplitRows(reader: SplitReader) extends Iterator[InternalRow] {
  private var known = false // whether `there` is about the next record
  private var there = false

  protected def row(): InternalRow

  override def hasNext: Boolean = {
    if (!known) {
      there = reader.next()
      known = true
      if (!there) reader.close()
    }
    there
  }

  override def next(): InternalRow = {
    if (!hasNext) throw new NoSuchElementException("the split has no more records")
    known = false
    row()
  }
}

private class ExampleRows(reader: SplitReader, decoder: RowDecoder) extends SplitRows(reader) {
  override protected def row(): InternalRow = {
    val r = reader.record()
    try decoder.decode(r.bytes(), r.start(), r.start() + r.length())
    catch { case e: BadRecord => throw new BadRecord(s"${reader.where()}: ${e.getMessage}") }
  }
}

private class ByteRows(reader: SplitReader, schema: StructType) extends SplitRows(reader) {
  override protected def row(): InternalRow =
    if (schema.isEmpty) InternalRow.empty else InternalRow(reader.take())
}

private object ByteRows {
  val Schema: StructType = StructType(Seq(StructField("byteArray", BinaryType)))

  def check(schema: StructType): Unit =
    if (schema.fields.map(_.dataType).toSeq != Seq(BinaryType))
      throw new WrongArgument(
        s"recordType=ByteArray is for frames of one column of type binary, and this one is ${schema.simpleString}; " +
          "select that column, or leave recordType out for records of type Example")
}

private class ExampleWriter(file: String, out: FrameWriter, encoder: RowEncoder) extends OutputWriter {
  private var rows = 0L

  override def path(): String = file

  override def write(row: InternalRow): Unit = {
    val record =
      try encoder.encode(row)
      catch { case e: BadRecord => throw new BadRecord(s"row $rows of $file: ${e.getMessage}") }
    out.write(record.array(), record.offset(), record.length())
    rows += 1
  }

  override def close(): Unit = out.close()
}

private class ByteWriter(file: String, out: FrameWriter) extends OutputWriter {
  private var rows = 0L

  override def path(): String = file

  override def write(row: InternalRow): Unit = {
    if (row.isNullAt(0))
      throw new BadRecord(s"row $rows of $file is null, which is no record; filter such rows out before writing")
    val bytes = row.getBinary(0)
    out.write(bytes, 0, bytes.length)
    rows += 1
  }

  override def close(): Unit = out.close()
}
