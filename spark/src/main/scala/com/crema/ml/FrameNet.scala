package com.crema.ml

import caffe.Caffe.CoSDataParameter.DataType
import caffe.Caffe.{CoSDataParameter, LayerParameter, NetParameter, TransformationParameter}
import com.crema.WrongArgument
import org.apache.spark.ml.attribute.AttributeGroup
import org.apache.spark.ml.functions.vector_to_array
import org.apache.spark.ml.linalg.SQLDataTypes
import org.apache.spark.sql.{Column, DataFrame}
import org.apache.spark.sql.functions.{col, lit}
import org.apache.spark.sql.types._

import scala.collection.JavaConverters._

/** Rewrites a net so that its data layers take columns of a frame: each becomes a CoSData layer with one column for
  * each top.
  */
private[ml] object FrameNet {
  val InputColumn = "__crema_input"
  val LabelColumn = "__crema_label"

  private val dataTypes = Set("Data", "MemoryData", "CoSData")

  def isData(layer: LayerParameter): Boolean = dataTypes(layer.getType)

  private case class Described(batch: Int, channels: Int, height: Int, width: Int, transform: TransformationParameter)

  private def describe(l: LayerParameter): Described = l.getType match {
    case "Data" => Described(l.getDataParam.getBatchSize, 0, 0, 0, l.getTransformParam)
    case "MemoryData" =>
      val m = l.getMemoryDataParam
      Described(m.getBatchSize, m.getChannels, m.getHeight, m.getWidth, l.getTransformParam)
    case _ =>
      val (c, top) = (l.getCosDataParam, l.getCosDataParam.getTop(0))
      Described(c.getBatchSize, top.getChannels, top.getHeight, top.getWidth,
        if (top.hasTransformParam) top.getTransformParam else l.getTransformParam)
  }

  /** @param input type of the input column as `inputOf` makes it */
  def rewrite(net: NetParameter, input: DataType): NetParameter = {
    val out = net.toBuilder.clearLayer()
    net.getLayerList.asScala.foreach(l => out.addLayer(if (isData(l)) fed(l, input) else l))
    out.build()
  }

  private def fed(l: LayerParameter, input: DataType): LayerParameter = {
    val d = describe(l)
    if (d.channels < 1 || d.height < 1 || d.width < 1)
      throw new WrongArgument(s"data layer '${l.getName}' (${l.getType}) does not say its input's shape; " +
        "use MemoryData with memory_data_param { channels height width }")
    val picture = input == DataType.RAW_IMAGE || input == DataType.ENCODED_IMAGE
    if (!picture && l.hasTransformParam && l.getTransformParam.getSerializedSize > 0)
      throw new WrongArgument(s"data layer '${l.getName}' has a transform_param, which is for binary columns of " +
        "images; the input column holds numbers: transform them in the frame, and remove it")
    val first = CoSDataParameter.TopBlob.newBuilder.setName(InputColumn).setType(input)
      .setChannels(d.channels).setHeight(d.height).setWidth(d.width)
    if (picture) first.setTransformParam(d.transform)
    val cos = CoSDataParameter.newBuilder.setSource("frame").setBatchSize(d.batch).addTop(first)
    if (l.getTopCount > 1)
      cos.addTop(CoSDataParameter.TopBlob.newBuilder.setName(LabelColumn).setType(DataType.FLOAT).setSampleNumAxes(0))
    if (l.getTopCount > 2) throw new WrongArgument(
      s"data layer '${l.getName}' has ${l.getTopCount} tops; one for the input and one for the label can be fed")
    l.toBuilder.clearDataParam().clearMemoryDataParam().clearTransformParam().clearSourceClass()
      .setType("CoSData").setCosDataParam(cos).build()
  }

  /** Type of the top that a column's type makes. @throws IllegalArgumentException for a type that is none */
  def inputType(schema: StructType, name: String, encoded: Boolean): DataType = field(schema, name).dataType match {
    case BinaryType => if (encoded) DataType.ENCODED_IMAGE else DataType.RAW_IMAGE
    case t if encoded =>
      throw new WrongArgument(
        s"encoded is set and input column '$name' is ${t.simpleString}; JPEG and PNG come in a binary column")
    case ArrayType(_: NumericType, _) | SQLDataTypes.VectorType => DataType.FLOAT_ARRAY
    case _: NumericType => DataType.FLOAT_ARRAY
    case t =>
      throw new WrongArgument(
        s"input column '$name' is ${t.simpleString}; binary, array of numbers, vector or a number is needed")
  }

  private def field(schema: StructType, name: String): StructField =
    schema.find(_.name == name).getOrElse(
      throw new WrongArgument(s"there is no column '$name'; the frame has ${schema.fieldNames.mkString(", ")}"))

  def numbers(shape: (Int, Int, Int)): Int = shape._1 * shape._2 * shape._3
  def misfit(name: String, size: Int, s: (Int, Int, Int)): String =
    s"input column '$name' holds $size number(s), and the net's input takes ${numbers(s)} (${s._1} x ${s._2} x " +
      s"${s._3}); name another column with setInputCol, or correct channels, height and width of the data layer"

  /** Checks that a row has as many numbers as the net takes, where the size is known: from a vector column's metadata,
    * as VectorAssembler writes it, or with `frame` from its first row.
    */
  def checkSize(schema: StructType, name: String, net: NetParameter, frame: Option[DataFrame] = None): Unit = {
    val described = net.getLayerList.asScala.find(isData).map(describe)
    val shape = described.fold((0, 0, 0))(d => (d.channels, d.height, d.width))
    def sizeInFirstRow(f: DataFrame) = {
      val sizes = f.where(col(name).isNotNull).select(org.apache.spark.sql.functions.size(inputOf(f, name)))
      sizes.head(1).headOption.map(_.getInt(0))
    }
    val size = field(schema, name) match {
      case f if f.dataType == SQLDataTypes.VectorType && AttributeGroup.fromStructField(f).size >= 0 =>
        Some(AttributeGroup.fromStructField(f).size)
      case f if f.dataType.isInstanceOf[NumericType] => Some(1)
      case f if f.dataType == BinaryType => None
      case _ => frame.flatMap(sizeInFirstRow)
    }
    for (n <- size if numbers(shape) > 0 && n != numbers(shape)) throw new WrongArgument(misfit(name, n, shape))
  }

  def checkLabel(schema: StructType, name: String): Unit = field(schema, name).dataType match {
    case _: NumericType | StringType =>
    case t => throw new WrongArgument(s"label column '$name' is ${t.simpleString}; a number is needed")
  }

  /** The input column as the feed takes it: binary as it is, everything else as array<float>. */
  def inputOf(frame: DataFrame, name: String): Column = field(frame.schema, name).dataType match {
    case BinaryType => col(name)
    case SQLDataTypes.VectorType => vector_to_array(col(name), "float32")
    case ArrayType(_, _) => col(name).cast(ArrayType(FloatType))
    case _ => org.apache.spark.sql.functions.array(col(name).cast(FloatType))
  }

  /** The label as float; 0 when the frame has none. */
  def labelOf(frame: DataFrame, name: String): Column =
    if (frame.columns.contains(name)) col(name).cast(FloatType) else lit(0f)

  /** The label as it is used for training. Text stays text, so that a row whose text is no number is reported by its
    * place.
    */
  def learntLabelOf(frame: DataFrame, name: String): Column = field(frame.schema, name).dataType match {
    case StringType => col(name)
    case _ => labelOf(frame, name)
  }

  private val classTakers = Set("SoftmaxWithLoss", "Accuracy", "MultinomialLogisticLoss", "HingeLoss", "InfogainLoss")

  /** Whether a layer takes the labels for classes. */
  def hasClasses(net: NetParameter): Boolean = {
    val labels = net.getLayerList.asScala.filter(isData).flatMap(_.getTopList.asScala.drop(1)).toSet
    net.getLayerList.asScala.exists(l => classTakers(l.getType) && l.getBottomList.asScala.exists(labels))
  }
}
