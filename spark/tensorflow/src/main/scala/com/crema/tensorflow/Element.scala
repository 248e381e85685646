package com.crema.tensorflow

import org.apache.spark.ml.linalg.SQLDataTypes
import org.apache.spark.sql.types._

/** The type of a tensor's elements: TensorFlow's name of it, and the Spark type of a column made of them. Unsigned
  * numbers take the next wider type; bfloat16 and float16 become float.
  *
  * @param bytes of one element in memory; 0 for strings, which have no fixed size
  */
case class Element(name: String, bytes: Int, column: DataType) {
  def isText: Boolean = name == "string"
  def isBool: Boolean = name == "bool"
  def isReal: Boolean = column == FloatType || column == DoubleType

  /** Smallest and largest whole number that fits. */
  def limits: (Long, Long) = name match {
    case "uint8" => (0L, 255L)
    case "uint16" => (0L, 65535L)
    case "int32" => (Int.MinValue.toLong, Int.MaxValue.toLong)
    case _ => (Long.MinValue, Long.MaxValue)
  }
}

object Element {
  /** Those of which TensorFlow Java makes tensors. */
  val all: Seq[Element] = Seq(
    Element("bfloat16", 2, FloatType),
    Element("bool", 1, BooleanType),
    Element("float16", 2, FloatType),
    Element("float32", 4, FloatType),
    Element("float64", 8, DoubleType),
    Element("int32", 4, IntegerType),
    Element("int64", 8, LongType),
    Element("string", 0, StringType),
    Element("uint16", 2, IntegerType),
    Element("uint8", 1, ShortType)
  )

  def named(name: String): Option[Element] = all.find(_.name == name)

  /** What the values of a column are, under all its arrays; None for a type that no tensor takes. */
  def leaf(column: DataType): Option[DataType] = column match {
    case ArrayType(element, _) => leaf(element)
    case ByteType | ShortType | IntegerType | LongType | FloatType | DoubleType | BooleanType | StringType |
        BinaryType => Some(column)
    case SQLDataTypes.VectorType => Some(DoubleType)
    case _ => None
  }

  def depth(column: DataType): Int = column match {
    case ArrayType(element, _) => 1 + depth(element)
    case SQLDataTypes.VectorType => 1
    case _ => 0
  }

  /** Whether values of this type become elements: whole numbers also floating-point ones, booleans also numbers; binary
    * values for numbers are those numbers' bytes. A number is never rounded to a whole one or made a text.
    */
  def takes(element: Element, leaf: DataType): Boolean = leaf match {
    case StringType => element.isText
    case BinaryType => true
    case BooleanType => !element.isText
    case FloatType | DoubleType => element.isReal
    case _ => !element.isText && !element.isBool
  }
}
