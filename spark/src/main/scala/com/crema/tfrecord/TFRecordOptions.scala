package com.crema.tfrecord

import java.util.Locale

import com.crema.WrongArgument
import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.io.compress.{CompressionCodec, CompressionCodecFactory}
import org.apache.spark.sql.types._

import scala.util.control.NonFatal

/** The options of the data source `tfrecord`, checked when they are asked for. docs/tfrecords.md lists them.
  *
  * @param written as Spark hands them over; names in any case
  */
private[tfrecord] case class TFRecordOptions(written: Map[String, String]) {
  import TFRecordOptions._
  private val options = written.map { case (name, value) => (name.toLowerCase(Locale.ROOT), value) }
  private def option(name: String): Option[String] = options.get(name.toLowerCase(Locale.ROOT)).map(_.trim)

  private def wrong(name: String, value: String, remedy: String) =
    new WrongArgument(s"option $name: '$value' of the data source tfrecord: $remedy")

  private def oneOf(name: String, default: String, values: String*): String = {
    val asked = option(name).getOrElse(default)
    values.find(_.equalsIgnoreCase(asked)).getOrElse(throw wrong(name, asked, s"it is ${values.mkString(" or ")}"))
  }

  /** Whether records are Examples; otherwise they are bytes. */
  def examples: Boolean = {
    if (option("recordType").exists(_.equalsIgnoreCase("SequenceExample")))
      throw wrong("recordType", "SequenceExample", "read such records with ByteArray, and parse them in your program")
    oneOf("recordType", "Example", "Example", "ByteArray") == "Example"
  }

  /** What the schema comes of; None is all records. */
  def sample: Option[Sample] = option("inferRecords") match {
    case None => Some(DefaultSample)
    case Some(all) if all.equalsIgnoreCase("all") => None
    case Some(n) if n.matches("[1-9][0-9]{0,17}") => Some(Sample(n.toLong, Long.MaxValue))
    case Some(other) => throw wrong("inferRecords", other, "it is a number from 1 on, or all")
  }

  def floatType: DataType = if (oneOf("floatType", "float", "float", "double") == "float") FloatType else DoubleType

  def binaryFeatures: Set[String] = option("binaryFeatures") match {
    case None => Set.empty
    case Some(json) if json.startsWith("[") =>
      try new ObjectMapper().readValue(json, classOf[Array[String]]).toSet
      catch { case NonFatal(_) => throw wrong("binaryFeatures", json, "it is no JSON list of strings") }
    case Some(names) => names.split(",").map(_.trim).filter(_.nonEmpty).toSet
  }

  /** Types of some columns. @throws WrongArgument also for types that no Example holds */
  def schemaHint: StructType = option("schemaHint") match {
    case None => new StructType()
    case Some(text) =>
      val parsed =
        try if (text.startsWith("{")) DataType.fromJson(text) else DataType.fromDDL(text)
        catch {
          case NonFatal(e) =>
            throw wrong("schemaHint", text, s"it is no schema (`a int, b array<float>`): ${e.getMessage}")
        }
      parsed match {
        case struct: StructType => struct
        case _ => throw wrong("schemaHint", text, "it is a type and no schema; write `name type, name type`")
      }
  }

  /** What a reader needs to know, as keys of `conf`. */
  def setReading(conf: Configuration): Configuration = {
    for ((name, key) <- Seq("crc32check" -> ReadSettings.CRC, "splittable" -> ReadSettings.SPLITTABLE))
      option(name).foreach(_ => conf.setBoolean(key, oneOf(name, "true", "true", "false") == "true"))
    conf
  }

  /** The codec of the files to write: None where the options name none, Some(None) where they name `none`. */
  def codec(conf: Configuration): Option[Option[CompressionCodec]] =
    option("codec").map("codec" -> _).orElse(option("compression").map("compression" -> _)).map {
      case (_, none) if Set("none", "uncompressed", "").contains(none.toLowerCase(Locale.ROOT)) => None
      case (name, asked) =>
        val known = CodecNames.getOrElse(asked.toLowerCase(Locale.ROOT), asked)
        val found = Option(new CompressionCodecFactory(conf).getCodecByName(known))
        val names = CodecNames.keys.toSeq.sorted.mkString(", ")
        Some(found.getOrElse(
            throw wrong(name, asked, s"Hadoop knows no such codec; it is none, $names or a codec's class")))
    }
}

private[tfrecord] object TFRecordOptions {
  /** The first records: so many, or as many as are in so many bytes and one more. */
  case class Sample(records: Long, bytes: Long)
  private val DefaultSample = Sample(1000, 64L << 20) // the driver reads them while the user waits
  private def hadoop(name: String) = s"org.apache.hadoop.io.compress.$name"
  private val CodecNames = Map(
    "gzip" -> hadoop("GzipCodec"),
    "deflate" -> hadoop("DeflateCodec"),
    "bzip2" -> hadoop("BZip2Codec"),
    "snappy" -> hadoop("SnappyCodec"),
    "lz4" -> hadoop("Lz4Codec"),
    "zstd" -> hadoop("ZStandardCodec")
  )
}
