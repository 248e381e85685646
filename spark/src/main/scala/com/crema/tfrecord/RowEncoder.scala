package com.crema.tfrecord

import java.nio.charset.StandardCharsets.UTF_8
import java.util.Arrays

import com.crema.tfrecord.FeatureValues.{BYTES, FLOAT, INT64}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.types._

/** Rows of a schema as Examples. A null is no feature. Features stand in the order of their names' UTF-8 bytes, as
  * protobuf's deterministic serialisation puts the entries of a map, so that a row gives the same bytes as there.
  *
  * @throws com.crema.WrongArgument for a type that no Example holds
  */
private[tfrecord] final class RowEncoder(schema: StructType) {
  import RowEncoder._
  private val columns: Array[Column] = schema.fields.zipWithIndex.map { case (f, i) =>
    val (kind, put) = putter(f.name, f.dataType)
    Column(i, f.name.getBytes(UTF_8), kind, put)
  }.sortWith((a, b) => Arrays.compareUnsigned(a.name, b.name) > 0) // last first, as the builder wants them
  private val builder = new ExampleBuilder

  /** The Example of a row; the builder holds it until the next call. @throws BadRecord for a null inside an array */
  def encode(row: InternalRow): ExampleBuilder = {
    builder.begin()
    var i = 0
    while (i < columns.length) {
      val column = columns(i)
      if (!row.isNullAt(column.ordinal)) {
        builder.beginFeature()
        column.put(row, column.ordinal, builder)
        builder.endFeature(column.kind, column.name)
      }
      i += 1
    }
    builder.end()
    builder
  }
}

private[tfrecord] object RowEncoder {
  private trait Put { def apply(from: SpecializedGetters, i: Int, to: ExampleBuilder): Unit }
  private case class Column(ordinal: Int, name: Array[Byte], kind: Int, put: Put)

  /** The kind of a column's feature, and what writes its values. */
  private def putter(name: String, dataType: DataType): (Int, Put) = dataType match {
    case ArrayType(element, _) =>
      val (kind, put) = scalar(name, element, dataType)
      (kind,
        (from, i, to) => {
          val values = from.getArray(i)
          var k = values.numElements()
          while (k > 0) {
            k -= 1
            if (values.isNullAt(k))
              throw new BadRecord(
                s"column '$name' has an array whose element $k is null, which an Example cannot hold; " +
                  s"filter it out, for example by filter($name, x -> x is not null)")
            put(values, k, to)
          }
        })
    case _ => scalar(name, dataType, dataType)
  }

  private def scalar(name: String, t: DataType, whole: DataType): (Int, Put) = t match {
    case BooleanType => (INT64, (from, i, to) => to.addLong(if (from.getBoolean(i)) 1 else 0))
    case ByteType => (INT64, (from, i, to) => to.addLong(from.getByte(i)))
    case ShortType => (INT64, (from, i, to) => to.addLong(from.getShort(i)))
    case IntegerType => (INT64, (from, i, to) => to.addLong(from.getInt(i)))
    case LongType => (INT64, (from, i, to) => to.addLong(from.getLong(i)))
    case FloatType => (FLOAT, (from, i, to) => to.addFloat(from.getFloat(i)))
    case DoubleType => (FLOAT, (from, i, to) => to.addFloat(from.getDouble(i).toFloat))
    case _: StringType => (BYTES, (from, i, to) => to.addBytes(from.getUTF8String(i).getBytes))
    case BinaryType => (BYTES, (from, i, to) => to.addBytes(from.getBinary(i)))
    case _ => throw RowDecoder.unsupported(name, whole)
  }
}
