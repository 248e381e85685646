package com.crema.tfrecord

import java.nio.charset.StandardCharsets.UTF_8
import java.util.Arrays

import com.crema.WrongArgument
import com.crema.tfrecord.FeatureValues.{BYTES, FLOAT, INT64, NONE}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{SpecificInternalRow, UnsafeArrayData}
import org.apache.spark.sql.catalyst.util.{ArrayData, GenericArrayData}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** Examples as rows of a schema; features that it does not name are passed over.
  *
  * The row is the same object each time, and its strings lie in the record's bytes: copy it before the next record.
  *
  * @throws WrongArgument for a type that no Example holds
  */
private[tfrecord] final class RowDecoder(schema: StructType) extends ExampleParser.Sink {
  private val row = new SpecificInternalRow(schema)
  private val setters = schema.fields.map(f => RowDecoder.setter(f.name, f.dataType))
  private val names = new java.util.HashMap[String, Integer]
  schema.fieldNames.zipWithIndex.foreach { case (name, i) => names.put(name, i) }
  private val parser = new ExampleParser
  private val values = new FeatureValues
  // Records of a file mostly have their features in one order: the name at each place, and its column or -1.
  private var seenNames = new Array[Array[Byte]](16)
  private var seenColumns = new Array[Int](16)
  private var place = 0

  /** @throws BadRecord when the bytes are no Example, or a feature does not fit its column */
  def decode(bytes: Array[Byte], from: Int, to: Int): InternalRow = {
    var i = 0
    while (i < setters.length) { row.setNullAt(i); i += 1 }
    place = 0
    parser.parse(bytes, from, to, this)
    row
  }

  override def feature(bytes: Array[Byte], nameFrom: Int, nameTo: Int, from: Int, to: Int): Unit = {
    val column = find(bytes, nameFrom, nameTo)
    if (column >= 0) {
      values.read(bytes, from, to)
      if (values.kind == NONE) row.setNullAt(column) else setters(column)(row, column, values)
    }
  }

  private def find(bytes: Array[Byte], from: Int, to: Int): Int = {
    if (place == seenNames.length) {
      seenNames = Arrays.copyOf(seenNames, 2 * place)
      seenColumns = Arrays.copyOf(seenColumns, 2 * place)
    }
    val seen = seenNames(place)
    if (seen == null || !Arrays.equals(bytes, from, to, seen, 0, seen.length)) {
      seenNames(place) = Arrays.copyOfRange(bytes, from, to)
      seenColumns(place) = names.getOrDefault(new String(bytes, from, to - from, UTF_8), -1)
    }
    place += 1
    seenColumns(place - 1)
  }
}

private[tfrecord] object RowDecoder {
  trait Setter { def apply(row: InternalRow, column: Int, values: FeatureValues): Unit }
  private val KindNames = Array("nothing", "bytes", "floats", "int64 numbers")

  private def unfit(name: String, dataType: DataType, v: FeatureValues) =
    new BadRecord(s"feature '$name' holds ${v.count} value(s) of kind ${KindNames(v.kind)}, and its column is " +
      s"${dataType.simpleString}; name another type in the schema or in schemaHint, or infer the schema of more " +
      "records (option inferRecords)")

  def setter(name: String, dataType: DataType): Setter = dataType match {
    case ArrayType(element, _) =>
      val array = arrayOf(name, dataType, element)
      (row, i, v) => row.update(i, array(v))
    case _ =>
      val one = scalar(name, dataType)
      (row, i, v) =>
        if (v.count == 1) one(row, i, v)
        else if (v.count == 0) row.setNullAt(i)
        else throw unfit(name, dataType, v)
  }

  /** What sets a column to the first value. */
  private def scalar(name: String, t: DataType): Setter = t match {
    case BooleanType => (row, i, v) => row.setBoolean(i, flag(v, 0, unfit(name, t, v)))
    case ByteType => (row, i, v) => row.setByte(i, whole(v, 0, Byte.MinValue, Byte.MaxValue, name, t).toByte)
    case ShortType => (row, i, v) => row.setShort(i, whole(v, 0, Short.MinValue, Short.MaxValue, name, t).toShort)
    case IntegerType => (row, i, v) => row.setInt(i, whole(v, 0, Int.MinValue, Int.MaxValue, name, t).toInt)
    case LongType =>
      (row, i, v) => if (v.kind == INT64) row.setLong(i, v.longs(0)) else throw unfit(name, t, v)
    case FloatType => (row, i, v) =>
        row.setFloat(i,
          if (v.kind == FLOAT) v.floats(0) else whole(v, 0, Long.MinValue, Long.MaxValue, name, t).toFloat)
    case DoubleType => (row, i, v) =>
        row.setDouble(i,
          if (v.kind == FLOAT) v.floats(0).toDouble else whole(v, 0, Long.MinValue, Long.MaxValue, name, t).toDouble)
    case _: StringType => (row, i, v) => row.update(i, text(v, 0, unfit(name, t, v)))
    case BinaryType => (row, i, v) => row.update(i, binary(v, 0, unfit(name, t, v)))
    case _ => throw unsupported(name, t)
  }

  private def arrayOf(name: String, t: DataType, element: DataType): FeatureValues => ArrayData = {
    def wholes(v: FeatureValues, low: Long, high: Long) = Array.tabulate(v.count)(whole(v, _, low, high, name, t))
    def error(v: FeatureValues) = unfit(name, t, v)
    element match {
      case BooleanType => v => UnsafeArrayData.fromPrimitiveArray(Array.tabulate(v.count)(flag(v, _, error(v))))
      case ByteType => v => UnsafeArrayData.fromPrimitiveArray(wholes(v, Byte.MinValue, Byte.MaxValue).map(_.toByte))
      case ShortType =>
        v => UnsafeArrayData.fromPrimitiveArray(wholes(v, Short.MinValue, Short.MaxValue).map(_.toShort))
      case IntegerType => v => UnsafeArrayData.fromPrimitiveArray(wholes(v, Int.MinValue, Int.MaxValue).map(_.toInt))
      case LongType =>
        v =>
          if (v.kind == INT64) UnsafeArrayData.fromPrimitiveArray(Arrays.copyOf(v.longs, v.count)) else throw error(v)
      case FloatType => v =>
          UnsafeArrayData.fromPrimitiveArray(
            if (v.kind == FLOAT) Arrays.copyOf(v.floats, v.count)
            else wholes(v, Long.MinValue, Long.MaxValue).map(_.toFloat))
      case DoubleType => v =>
          UnsafeArrayData.fromPrimitiveArray(
            if (v.kind == FLOAT) Array.tabulate(v.count)(v.floats(_).toDouble)
            else wholes(v, Long.MinValue, Long.MaxValue).map(_.toDouble))
      case _: StringType => v => new GenericArrayData(Array.tabulate[Any](v.count)(text(v, _, error(v))))
      case BinaryType => v => new GenericArrayData(Array.tabulate[Any](v.count)(binary(v, _, error(v))))
      case _ => throw unsupported(name, t)
    }
  }

  private def whole(v: FeatureValues, k: Int, low: Long, high: Long, name: String, t: DataType): Long = {
    if (v.kind != INT64) throw unfit(name, t, v)
    val value = v.longs(k)
    if (value < low || value > high)
      throw new BadRecord(s"feature '$name' holds $value, which is no ${t.simpleString}; read it as bigint")
    value
  }

  /** Numbers other than 0, and bytes of which the first is above 0, are true. */
  private def flag(v: FeatureValues, k: Int, error: => BadRecord): Boolean =
    if (v.kind == INT64) v.longs(k) != 0
    else if (v.kind == BYTES) v.starts(k) < v.ends(k) && v.bytes(v.starts(k)) > 0
    else throw error

  private def text(v: FeatureValues, k: Int, error: => BadRecord): UTF8String =
    if (v.kind == BYTES) UTF8String.fromBytes(v.bytes, v.starts(k), v.ends(k) - v.starts(k)) else throw error

  private def binary(v: FeatureValues, k: Int, error: => BadRecord): Array[Byte] =
    if (v.kind == BYTES) Arrays.copyOfRange(v.bytes, v.starts(k), v.ends(k)) else throw error

  def unsupported(name: String, t: DataType): WrongArgument =
    new WrongArgument(
      s"Unsupported dtype: ${t.simpleString} in column '$name': an Example holds int64 numbers, floats, " +
        "strings, bytes and arrays of them; cast the column to one of these, or leave it out")
}
