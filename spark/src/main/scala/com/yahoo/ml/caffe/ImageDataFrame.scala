package com.yahoo.ml.caffe

import java.nio.charset.StandardCharsets.UTF_8

import com.crema.{CremaException, Records, RowBuilder, WrongArgument}
import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types._

import scala.collection.JavaConverters._

/** Images of a data frame in any format that Spark reads. Columns: `label` (text or a whole number); `data` (binary, or
  * text: base64 when the format is json, as Spark writes binary there, else the text's own bytes); optionally `id`
  * (text), `channels`, `height`, `width` (numbers, 0 for unknown) and `encoded` (boolean, by default
  * memory_data_param.image_encoded). memory_data_param.dataframe_format names the format (default parquet), and
  * dataframe_column_select gives SQL expressions for these columns.
  */
class ImageDataFrame(conf: Config, layerId: Int, isTrain: Boolean) extends ImageDataSource(conf, layerId, isTrain) {
  /** The selected columns, checked. */
  private[caffe] def frame(): DataFrame = {
    val p = memdatalayer_param
    val loaded = DataFrames.load(p.getDataframeFormat, sourceFilePath)
    val columns = if (p.getDataframeColumnSelectCount == 0) Seq("*") else p.getDataframeColumnSelectList.asScala.toSeq
    val chosen =
      try DataFrames.withPieces(loaded, columns)
      catch {
        case e: Exception => throw new WrongArgument(s"dataframe_column_select of $where: ${e.getMessage}", e)
      }
    ImageColumns.check(chosen, describe)
    chosen
  }

  private def textIsBase64: Boolean = memdatalayer_param.getDataframeFormat.equalsIgnoreCase("json")

  override def makeRDD(sc: SparkContext): RDD[ImageDataSource.Record] = {
    val (f, encoded, isJson) = (frame(), memdatalayer_param.getImageEncoded, textIsBase64)
    val columns = f.columns.toSet
    f.rdd.map { row =>
      def has(name: String) = columns(name) && !row.isNullAt(row.fieldIndex(name))
      def int(name: String) = if (has(name)) row.getAs[Number](name).intValue else 0
      val bytes = row.getAs[Any]("data") match {
        case b: Array[Byte] => b
        case s: String if isJson =>
          ImageColumns.base64(s.getBytes(UTF_8), s"image of row ${if (has("id")) row.getAs[Any]("id") else ""}")
        case s: String => s.getBytes(UTF_8)
        case _ => null
      }
      (if (has("id")) row.getAs[Any]("id").toString else "",
        if (has("label")) row.getAs[Any]("label").toString else null,
        int("channels"), int("height"), int("width"), if (has("encoded")) row.getAs[Boolean]("encoded") else encoded,
        bytes)
    }
  }

  override private[caffe] def records(sc: SparkContext): Records = {
    if (getClass != classOf[ImageDataFrame]) return super.records(sc)
    new ImageColumns(describe, batchSize(), frame(), memdatalayer_param.getImageEncoded, textIsBase64)
  }
}

private[caffe] object ImageColumns {
  def base64(text: Array[Byte], what: => String): Array[Byte] =
    try java.util.Base64.getDecoder.decode(text)
    catch {
      case e: IllegalArgumentException =>
        throw new CremaException(s"the $what is no base64, which text in column data is taken for where " +
            s"dataframe_format is json: ${e.getMessage}", e)
    }

  def check(frame: DataFrame, where: String): Unit = {
    val types = frame.schema.map(f => f.name -> f.dataType).toMap
    def require(name: String, wanted: String)(fits: PartialFunction[DataType, Unit]): Unit = types.get(name) match {
      case None =>
        throw new WrongArgument(s"$where has no column '$name' (it has ${frame.columns.mkString(", ")}); " +
          s"name one with dataframe_column_select, as in '<expression> as $name'")
      case Some(is) => if (!fits.isDefinedAt(is)) DataFrames.typeError(name, is, wanted, where)
    }
    require("label", "string or a whole number") { case StringType | IntegerType | LongType | ShortType | ByteType => }
    require("data", "binary or string") { case BinaryType | StringType => }
    for (name <- Seq("channels", "height", "width") if types.contains(name))
      require(name, "int") { case IntegerType | LongType | ShortType | ByteType => }
    if (types.contains("encoded")) require("encoded", "boolean") { case BooleanType => }
  }
}

/** Converts the frame's internal rows into rows for the executable. */
private[caffe] class ImageColumns(val description: String, val batch: Int, @transient frame: DataFrame,
    imageEncoded: Boolean, textIsBase64: Boolean) extends DataFrames.FrameRows(frame) {
  private def place(name: String): Int = frame.columns.indexOf(name)
  private val (id, label, data, channels, height, width, encoded) =
    (place("id"), place("label"), place("data"), place("channels"), place("height"), place("width"), place("encoded"))

  override val fields = 2

  private def text(r: InternalRow, c: Int): String =
    if (c < 0 || r.isNullAt(c)) ""
    else if (types(c) == StringType) r.getUTF8String(c).toString
    else r.get(c, types(c)).toString
  private def int(r: InternalRow, c: Int): Int =
    if (c < 0 || r.isNullAt(c)) 0
    else types(c) match {
      case IntegerType => r.getInt(c)
      case LongType => Math.toIntExact(r.getLong(c))
      case ShortType => r.getShort(c).toInt
      case _ => r.getByte(c).toInt
    }

  override def put(r: InternalRow, row: RowBuilder): Unit = {
    if (r.isNullAt(label) || r.isNullAt(data))
      throw new CremaException(
        s"row '${text(r, id)}' of $description has no ${if (r.isNullAt(label)) "label" else "data"}")
    if (id < 0 || types(id) != StringType || r.isNullAt(id)) row.begin(text(r, id))
    else row.begin(r.getUTF8String(id).getBytes)
    row.float(if (types(label) == StringType) number(r) else int(r, label).toFloat)
    val isEncoded = if (encoded < 0 || r.isNullAt(encoded)) imageEncoded else r.getBoolean(encoded)
    row.image(int(r, channels), int(r, height), int(r, width), isEncoded, bytesOf(r))
  }

  private def bytesOf(r: InternalRow): Array[Byte] =
    if (types(data) != StringType) r.getBinary(data)
    else {
      val text = r.getUTF8String(data).getBytes
      if (!textIsBase64) text
      else ImageColumns.base64(text, s"data of row '${this.text(r, id)}' of $description")
    }

  private def number(r: InternalRow): Float = {
    val text = r.getUTF8String(label)
    try text.toIntExact.toFloat
    catch {
      case _: Exception => ImageDataSource.label((this.text(r, id), text.toString, 0, 0, 0, false, null)).toFloat
    }
  }
}
