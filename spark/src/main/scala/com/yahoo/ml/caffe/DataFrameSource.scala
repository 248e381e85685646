package com.yahoo.ml.caffe

import caffe.Caffe.CoSDataParameter
import caffe.Caffe.CoSDataParameter.DataType._
import caffe.Caffe.TransformationParameter
import com.crema.{CremaException, Records, RowBuilder, WrongArgument}
import com.yahoo.ml.jcaffe.{FloatBlob, Mat, MatVector}
import org.apache.spark.{SparkContext, TaskContext}
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{DataFrame, Row}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types._
import org.slf4j.{Logger, LoggerFactory}

import scala.collection.JavaConverters._

/** One top of a CoSData layer: what its column holds, and the shapes before and after the transform. */
class Top(topParam: CoSDataParameter.TopBlob) extends Serializable {
  private def or(out: Int, in: Int): Int = if (out == 0) in else out
  val dataType_ : CoSDataParameter.DataType = topParam.getType
  val name_ : String = topParam.getName
  val channels_ : Int = topParam.getChannels
  val height_ : Int = topParam.getHeight
  val width_ : Int = topParam.getWidth
  val sampleNumAxes_ : Int = topParam.getSampleNumAxes
  val outChannels_ : Int = or(topParam.getOutChannels, channels_)
  val outHeight_ : Int = or(topParam.getOutHeight, height_)
  val outWidth_ : Int = or(topParam.getOutWidth, width_)
  val transformParam_ : TransformationParameter = if (topParam.hasTransformParam) topParam.getTransformParam else null
  val sampleShape_ : Array[Int] = Array(channels_, height_, width_).take(sampleNumAxes_)
  val outSampleShape_ : Array[Int] = Array(outChannels_, outHeight_, outWidth_).take(sampleNumAxes_)
  val size_ : Int = sampleShape_.product
  val outSize_ : Int = outSampleShape_.product
  val transpose_ : Boolean = topParam.getTranspose

  def isImage: Boolean = dataType_ == ENCODED_IMAGE || dataType_ == RAW_IMAGE || dataType_ == ENCODED_IMAGE_WITH_DIM

  override def toString: String =
    s"Top(type=$dataType_, name=$name_, channels=$channels_, height=$height_, width=$width_, " +
      s"outChannels=$outChannels_, outHeight=$outHeight_, outWidth=$outWidth_, sampleNumAxes=$sampleNumAxes_, " +
      s"size=$size_, outSize=$outSize_)"
}

/** A data frame in any format that Spark reads, for a CoSData layer: one column for each top, by name; optionally `id`
  * (text).
  */
class DataFrameSource(conf: Config, layerId: Int, isTrain: Boolean)
    extends DataSource[(String, Array[Any]), Array[Any]](conf, layerId, isTrain, ("", Array[Any]())) {
  @transient protected var log: Logger = LoggerFactory.getLogger(getClass)
  @transient protected var cosDataParam: CoSDataParameter = _
  private var tops: Array[Top] = _

  override def init(): Boolean = {
    log = LoggerFactory.getLogger(getClass)
    if (!super.init()) return false
    if (!layerParameter.hasCosDataParam)
      throw new WrongArgument(s"Layer $layerId failed to specify cos_data_param ($where)")
    cosDataParam = layerParameter.getCosDataParam
    tops = cosDataParam.getTopList.asScala.map(new Top(_)).toArray
    batchSize_ = cosDataParam.getBatchSize
    if (batchSize_ < 1) throw new WrongArgument(s"Invalid batch size:$batchSize_ ($where)")
    sourceFilePath = checkedPath(cosDataParam.getSource)
    true
  }

  /** The frame, with columns that say which file a row is from, when it is read from files. */
  protected def loaded(): DataFrame =
    DataFrames.withPieces(DataFrames.load(cosDataParam.getDataframeFormat, sourceFilePath), Seq("*"))
  protected def describe: String = s"DataFrame $sourceFilePath"

  private[caffe] def frame(): DataFrame = {
    val f = loaded()
    if (areColumnsGiven) CosColumns.check(f, tops, s"$where, $describe")
    f
  }

  /** False when the frame was made for exactly these tops. */
  protected def areColumnsGiven: Boolean = true
  /** What messages call a top's column: the user's name for it. */
  protected def nameOf(top: String): String = top
  /** The tops whose values must be whole numbers. */
  protected def wholeTops: Set[String] = Set.empty

  override def makeRDD(sc: SparkContext): RDD[(String, Array[Any])] = {
    val (f, names) = (frame(), tops.map(_.name_))
    val hasId = f.columns.contains("id")
    f.rdd.map(row => (if (hasId) String.valueOf(row.getAs[Any]("id")) else "", names.map(n => row.getAs[Any](n))))
  }

  override private[caffe] def records(sc: SparkContext): Records = {
    val nextBatch = getClass.getMethod("nextBatch", classOf[Array[String]], classOf[Array[Any]])
    if (nextBatch.getDeclaringClass != classOf[DataFrameSource]) super.records(sc)
    else new CosColumns(describe, batchSize(), frame(), tops, tops.map(t => nameOf(t.name_)), wholeTops)
  }

  override def useCoSDataLayer(): Boolean = true
  override def getNumTops(): Int = tops.length
  override def getTopDataType(index: Int): CoSDataParameter.DataType = tops(index).dataType_
  override def getTopTransformParam(index: Int): TransformationParameter = tops(index).transformParam_

  private def blob(shape: Array[Int], transpose: Boolean): FloatBlob = {
    val made = new FloatBlob
    made.reshape(if (transpose) Array(shape(0), batchSize_) else batchSize_ +: shape)
    made
  }

  override def dummyDataHolder(): Array[Any] =
    tops.map(t => if (t.isImage) new MatVector(batchSize_) else blob(t.sampleShape_, t.transpose_))
  override def dummyDataBlobs(): Array[FloatBlob] = tops.map(t => blob(t.outSampleShape_, t.transpose_))

  override def nextBatch(sampleIds: Array[String], data: Array[Any]): Boolean = {
    var count = 0
    while (count < batchSize_) {
      val sample = sourceQueue.take()
      if (sample == STOP_MARK) return false
      if (tops.indices.forall(t => place(t, count, sample._2(t), data(t)))) {
        sampleIds(count) = sample._1
        count += 1
      }
    }
    true
  }

  /** False when an image cannot be decoded. */
  private def place(t: Int, i: Int, value: Any, holder: Any): Boolean = holder match {
    case mats: MatVector =>
      val image = picture(tops(t), value)
      image.foreach(mats.put(i, _))
      if (image.isEmpty) log.warn(s"Skip image at top#$t, index#$i")
      image.isDefined
    case blob: FloatBlob =>
      val values = CosColumns.floats(value, tops(t))
      val (step, from) = if (tops(t).transpose_) (batchSize_, i) else (1, i * tops(t).size_)
      for (k <- 0 until tops(t).size_)
        // Zeros too, as the blob is reused
        blob.cpu_data().set(from + k * step, if (k < values.length) values(k) else 0f)
      true
  }

  private def picture(top: Top, value: Any): Option[Mat] = {
    val (h, w, bytes) = value match {
      case row: Row => (row.getAs[Int]("height"), row.getAs[Int]("width"), CosColumns.bytes(row.getAs[Any]("image")))
      case other => (0, 0, CosColumns.bytes(other))
    }
    val mat = if (top.dataType_ == RAW_IMAGE) new Mat(top.channels_, top.height_, top.width_, bytes) else new Mat(bytes)
    if (top.dataType_ != RAW_IMAGE) mat.decode(ImageDataSource.colour(top.channels_))
    if (mat.width == 0 || (h > 0 && w > 0 && (mat.height != h || mat.width != w))) None
    else {
      if (conf.resize && (mat.height != top.height_ || mat.width != top.width_)) mat.resize(top.height_, top.width_)
      Some(mat)
    }
  }
}

private[caffe] object CosColumns {
  private def wanted(top: Top): String = top.dataType_ match {
    case STRING => "string"
    case INT => "int"
    case FLOAT => "float"
    case INT_ARRAY => "array<int>"
    case FLOAT_ARRAY => "array<float>"
    case ENCODED_IMAGE | RAW_IMAGE => "binary"
    case ENCODED_IMAGE_WITH_DIM => "struct<height:int,width:int,image:array<tinyint> or binary>"
  }

  private def bytesLike(t: DataType): Boolean = t match {
    case BinaryType | ArrayType(ByteType, _) => true
    case _ => false
  }

  private def fits(top: Top, is: DataType): Boolean = (top.dataType_, is) match {
    case (STRING, StringType) | (INT, IntegerType | LongType | ShortType | ByteType) => true
    case (FLOAT, FloatType | DoubleType | IntegerType) => true
    case (INT_ARRAY, ArrayType(IntegerType | LongType, _)) | (FLOAT_ARRAY, ArrayType(FloatType | DoubleType, _)) => true
    case (ENCODED_IMAGE | RAW_IMAGE, t) => bytesLike(t)
    case (ENCODED_IMAGE_WITH_DIM, s: StructType) =>
      Seq("height", "width").forall(n => s.exists(f => f.name == n && f.dataType == IntegerType)) &&
      s.exists(f => f.name == "image" && bytesLike(f.dataType))
    case _ => false
  }

  def check(frame: DataFrame, tops: Array[Top], where: String): Unit =
    for (top <- tops) frame.schema.find(_.name == top.name_) match {
      case None =>
        throw new WrongArgument(s"requirement failed: ${top.name_} does not exist in dataframe ($where, which has " +
          s"${frame.columns.mkString(", ")})")
      case Some(f) =>
        if (!fits(top, f.dataType))
          DataFrames.typeError(top.name_, f.dataType, s"${wanted(top)} for a top of type ${top.dataType_}", where)
    }

  /** A number or an array as floats. @throws IllegalArgumentException when there are more than the top holds */
  def floats(value: Any, top: Top): Array[Float] = {
    val values = value match {
      case s: String => Array(s.trim.toFloat)
      case n: Number => Array(n.floatValue)
      case all: scala.collection.Seq[_] => all.map { case n: Number => n.floatValue }.toArray
    }
    if (values.length > top.size_)
      throw new WrongArgument(s"blob size is ${top.size_}, but total data length is ${values.length}.")
    values
  }

  def bytes(value: Any): Array[Byte] = value match {
    case b: Array[Byte] => b
    case s: scala.collection.Seq[_] => s.map { case n: Number => n.byteValue }.toArray
  }
}

/** Converts the frame's internal rows into rows for the executable: a field for each top. */
private[caffe] class CosColumns(val description: String, val batch: Int, @transient frame: DataFrame, tops: Array[Top],
    names: Array[String], whole: Set[String]) extends DataFrames.FrameRows(frame) {
  def this(description: String, batch: Int, frame: DataFrame, tops: Array[Top]) =
    this(description, batch, frame, tops, tops.map(_.name_), Set.empty)

  private val places = tops.map(t => frame.columns.indexOf(t.name_))
  private val id = frame.columns.indexOf("id")

  override val fields: Int = tops.length

  private def idOf(r: InternalRow): String =
    if (id < 0 || r.isNullAt(id)) ""
    else if (types(id) == StringType) r.getUTF8String(id).toString
    else r.get(id, types(id)).toString

  override def put(r: InternalRow, row: RowBuilder): Unit = {
    seen += 1
    row.begin(idOf(r))
    var t = 0
    while (t < tops.length) {
      val c = places(t)
      if (r.isNullAt(c))
        throw new CremaException(s"${here(r)} has no ${names(t)}: it is null; fill it in, or leave the row out")
      put(r, c, tops(t), names(t), row)
      t += 1
    }
  }

  @transient private var seen = 0L // each task has its own copy

  private def here(r: InternalRow): String =
    if (id >= 0) s"row '${idOf(r)}' of $description"
    else s"row $seen of partition ${TaskContext.getPartitionId()} of $description"

  private def number(value: Float, r: InternalRow, top: Top, name: String): Float =
    if (whole(top.name_) && value != math.rint(value)) throw new CremaException(
      s"'$value' in column '$name' of ${here(r)} is no whole number; labels of classes are 0, 1, 2, ...")
    else value

  private def put(r: InternalRow, c: Int, top: Top, name: String, row: RowBuilder): Unit = types(c) match {
    case StringType =>
      val text = r.getUTF8String(c).toString
      val value =
        try text.trim.toFloat
        catch {
          case _: NumberFormatException =>
            throw new CremaException(s"'$text' in column '$name' of ${here(r)} is no number")
        }
      row.float(number(value, r, top, name))
    case IntegerType => row.float(r.getInt(c).toFloat)
    case LongType => row.float(r.getLong(c).toFloat)
    case ShortType => row.float(r.getShort(c).toFloat)
    case ByteType => row.float(r.getByte(c).toFloat)
    case FloatType => row.float(number(r.getFloat(c), r, top, name))
    case DoubleType => row.float(number(r.getDouble(c).toFloat, r, top, name))
    case ArrayType(_: NumericType, true) if nulls(r.getArray(c)) =>
      throw new CremaException(s"column '$name' of ${here(r)} holds a null")
    case ArrayType(IntegerType, _) => row.floats(r.getArray(c).toIntArray().map(_.toFloat))
    case ArrayType(LongType, _) => row.floats(r.getArray(c).toLongArray().map(_.toFloat))
    case ArrayType(FloatType, _) => row.floats(r.getArray(c).toFloatArray())
    case ArrayType(DoubleType, _) => row.floats(r.getArray(c).toDoubleArray().map(_.toFloat))
    case BinaryType => picture(top, 0, 0, r.getBinary(c), row)
    case ArrayType(ByteType, _) => picture(top, 0, 0, r.getArray(c).toByteArray(), row)
    case s: StructType =>
      val inner = r.getStruct(c, s.length)
      val image = s.fieldIndex("image")
      val bytes = if (s(image).dataType == BinaryType) inner.getBinary(image) else inner.getArray(image).toByteArray()
      picture(top, inner.getInt(s.fieldIndex("height")), inner.getInt(s.fieldIndex("width")), bytes, row)
    case other => // cannot happen after check()
      throw new CremaException(s"column '$name' of $description is ${other.simpleString}")
  }

  private def nulls(values: org.apache.spark.sql.catalyst.util.ArrayData): Boolean =
    (0 until values.numElements()).exists(values.isNullAt)

  private def picture(top: Top, height: Int, width: Int, bytes: Array[Byte], row: RowBuilder): Unit =
    if (top.dataType_ == RAW_IMAGE) row.image(top.channels_, top.height_, top.width_, encoded = false, bytes)
    else row.image(0, height, width, encoded = true, bytes)
}
