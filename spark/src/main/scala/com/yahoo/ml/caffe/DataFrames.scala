package com.yahoo.ml.caffe

import org.apache.spark.rdd.RDD
import com.crema.{JobError, Piece, RowSource, WrongArgument}
import org.apache.spark.sql.functions.col
import org.apache.spark.sql.{AnalysisException, Column, DataFrame, SparkSession}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.QueryExecution
import org.apache.spark.sql.types.DataType
import org.apache.spark.storage.StorageLevel
import org.apache.spark.unsafe.types.UTF8String

/** What the two sources that read data frames share. */
private[com] object DataFrames {
  /** @throws IllegalArgumentException with Spark's reason when the format or path cannot be read */
  def load(format: String, path: String): DataFrame =
    try SparkSession.builder().getOrCreate().read.format(format).load(path)
    catch {
      case e: Exception =>
        val why = s"$path cannot be read as $format: ${Option(e.getMessage).getOrElse(e.toString)}"
        throw (if (JobError.isLasting(e)) new WrongArgument(why, e) else new IllegalArgumentException(why, e))
    }

  /** Spark's internal rows, so that only the needed columns are converted. Spark may reuse a row object, so each must
    * be read before the next. (queryExecution is found by reflection, as it moved between Spark 3 and 4.)
    */
  def internalRows(frame: DataFrame): RDD[InternalRow] =
    frame.getClass.getMethod("queryExecution").invoke(frame).asInstanceOf[QueryExecution].toRdd

  private val (file, start) = ("__crema_file", "__crema_start")

  /** Adds two columns that say which piece of which file a row is from; unchanged when the source is not one of Spark's
    * file formats.
    */
  def withPieces(frame: DataFrame, columns: Seq[String]): DataFrame =
    try frame.selectExpr(columns ++ Seq(s"_metadata.file_path as $file", s"_metadata.file_block_start as $start"): _*)
    catch { case _: AnalysisException => frame.selectExpr(columns: _*) }

  private val readers = Set("Project", "Filter", "SubqueryAlias", "View", "LogicalRelation", "Relation")

  /** Selects columns, and adds those of `withPieces` when the frame reads files and does nothing that reorders rows. */
  def inFileOrder(frame: DataFrame, columns: Seq[Column]): DataFrame = {
    val plan = frame.getClass.getMethod("queryExecution").invoke(frame).asInstanceOf[QueryExecution].analyzed
    val plain = plan.collect { case node => node.nodeName }.forall(readers)
    if (!plain || frame.storageLevel != StorageLevel.NONE) frame.select(columns: _*)
    else {
      val pieces = Seq(col("_metadata.file_path").as(file), col("_metadata.file_block_start").as(start))
      try frame.select(columns ++ pieces: _*)
      catch { case _: AnalysisException => frame.select(columns: _*) }
    }
  }

  /** Rows that are ordered by the files they come from. */
  abstract class FrameRows(@transient frame: DataFrame) extends RowSource[InternalRow] {
    protected val types: Array[DataType] = frame.schema.map(_.dataType).toArray
    private val (fileAt, startAt) = (frame.columns.indexOf(file), frame.columns.indexOf(start))
    override def records: RDD[InternalRow] = internalRows(frame)
    override def kept(r: InternalRow): InternalRow = r.copy()
    override def piece(r: InternalRow): Piece =
      if (fileAt < 0) null else Piece(r.getUTF8String(fileAt).toString, r.getLong(startAt))
    override def inPiece(r: InternalRow, piece: Piece): Boolean =
      fileAt < 0 ||
        (r.getLong(startAt) == piece.start && r.getUTF8String(fileAt) == UTF8String.fromString(piece.file))
  }

  def typeError(column: String, is: DataType, wanted: String, where: String): Nothing =
    throw new WrongArgument(
      s"column '$column' of $where is ${is.simpleString}, and $wanted is needed; " +
        "convert it (dataframe_column_select, or a cast)")
}
