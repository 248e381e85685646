package com.yahoo.tensorflowonspark

import com.crema.WrongArgument
import org.apache.spark.sql.types._

/** Schemas as StructType.simpleString writes them, of the types that an Example holds:
  * {{{struct<name:type,...>}}}
  * `binary boolean tinyint smallint int bigint long float double string`, and `array<one of these>`; long is bigint.
  * A name is anything without `: , < >` and blanks.
  */
object SimpleTypeParser {
  private val Whole = """\s*struct\s*<(.*)>\s*""".r
  private val Field = """\s*([^:,<>\s]+)\s*:\s*(\S.*?)\s*""".r
  private val ArrayOf = """array\s*<\s*(\w+)\s*>""".r
  private val Types = Map(
    "binary" -> BinaryType,
    "boolean" -> BooleanType,
    "tinyint" -> ByteType,
    "smallint" -> ShortType,
    "int" -> IntegerType,
    "long" -> LongType,
    "bigint" -> LongType,
    "float" -> FloatType,
    "double" -> DoubleType,
    "string" -> StringType
  )

  /** @throws WrongArgument with the field that is not understood */
  def parse(simpleString: String): StructType = simpleString match {
    case Whole(fields) => StructType(fields.split(",", -1).map(field(simpleString, _)))
    case _ => throw wrong(simpleString, "it has not the form struct<name:type,name:type>")
  }

  private def field(all: String, text: String): StructField = text match {
    case Field(name, ArrayOf(element)) => StructField(name, ArrayType(base(all, name, element)))
    case Field(name, written) => StructField(name, base(all, name, written))
    case _ => throw wrong(all, s"'$text' has not the form name:type")
  }

  private def base(all: String, name: String, written: String): DataType = Types.getOrElse(written,
    throw wrong(all,
      s"field '$name' has type '$written', and types are ${Types.keys.toSeq.sorted.mkString(", ")} and " +
        "array<one of these>"))

  private def wrong(text: String, why: String) = new WrongArgument(s"the schema '$text' cannot be read: $why")
}
