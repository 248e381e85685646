package com.crema.tfrecord

import java.nio.charset.StandardCharsets.UTF_8

import com.crema.WrongArgument
import com.crema.tfrecord.FeatureValues.{BYTES, FLOAT, INT64, NONE}
import com.crema.tfrecord.TFRecordOptions.Sample
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.SparkContext
import org.apache.spark.sql.types._
import org.apache.spark.util.SerializableConfiguration

/** What the records of some files say of one feature.
  *
  * @param places by kind, the first record that has it
  * @param several whether any record has more than one value
  */
private[tfrecord] case class SeenFeature(places: Map[Int, String], several: Boolean) {
  def and(later: SeenFeature): SeenFeature = SeenFeature(later.places ++ places, several || later.several)
}

/** The schema of Examples: types merged over records, so that the result does not depend on their order. */
private[tfrecord] object InferredSchema {
  type Seen = Map[String, SeenFeature]
  private val Everything = Sample(Long.MaxValue, Long.MaxValue)

  /** @param files in the order in which they are read */
  def of(sc: SparkContext, files: Seq[String], options: TFRecordOptions, conf: Configuration): StructType = {
    val hint = options.schemaHint
    hint.foreach(f => RowDecoder.setter(f.name, f.dataType))
    val seen = options.sample match {
      case Some(sample) => first(files, sample, conf)
      case None if files.isEmpty => Map.empty: Seen
      case None =>
        val shared = sc.broadcast(new SerializableConfiguration(conf))
        // Files in order, so that the records that a message names are always the same ones.
        sc.parallelize(files, files.length).map(f => first(Seq(f), Everything, shared.value.value)).collect()
          .foldLeft(Map.empty: Seen)(merge)
    }
    val others = (seen.keySet -- hint.fieldNames).toSeq.sorted
    StructType(hint.fields ++ others.map(name => StructField(name, typeOf(name, seen(name), options))))
  }

  private def merge(a: Seen, b: Seen): Seen =
    b.foldLeft(a) { case (all, (name, feature)) => all.updated(name, all.get(name).fold(feature)(_.and(feature))) }

  private def first(files: Seq[String], sample: Sample, conf: Configuration): Seen = {
    val collector = new Collector
    val next = files.iterator
    def wanted = collector.records < sample.records && collector.bytes < sample.bytes
    while (wanted && next.hasNext) {
      val reader = new SplitReader(new Path(next.next()), 0, Long.MaxValue, conf)
      try while (wanted && reader.next()) collector.add(reader)
      finally reader.close()
    }
    collector.seen
  }

  private class Collector extends ExampleParser.Sink {
    var seen: Seen = Map.empty
    var records = 0L
    var bytes = 0L
    private val parser = new ExampleParser
    private val values = new FeatureValues
    private var where = ""

    def add(reader: SplitReader): Unit = {
      where = reader.where()
      val r = reader.record()
      records += 1
      bytes += r.length()
      try parser.parse(r.bytes(), r.start(), r.start() + r.length(), this)
      catch { case e: BadRecord => throw new BadRecord(s"$where: ${e.getMessage}") }
    }

    override def feature(b: Array[Byte], nameFrom: Int, nameTo: Int, from: Int, to: Int): Unit = {
      values.read(b, from, to)
      val name = new String(b, nameFrom, nameTo - nameFrom, UTF_8)
      val known = seen.get(name)
      val several = values.count > 1
      if (!known.exists(k => (values.kind == NONE || k.places.contains(values.kind)) && (k.several || !several))) {
        val places = if (values.kind == NONE) Map.empty[Int, String] else Map(values.kind -> where)
        seen = merge(seen, Map(name -> SeenFeature(places, several)))
      }
    }
  }

  private def typeOf(name: String, feature: SeenFeature, options: TFRecordOptions): DataType = {
    def place(kind: Int) = feature.places(kind)
    val one = feature.places.keySet.toSeq.sorted match {
      case Seq() => StringType
      case Seq(BYTES) => if (options.binaryFeatures(name)) BinaryType else StringType
      case Seq(FLOAT) => options.floatType
      case Seq(INT64) => LongType
      case Seq(FLOAT, INT64) => DoubleType
      case Seq(BYTES, number, _*) =>
        throw new WrongArgument(
          s"feature '$name' holds bytes (${place(BYTES)}) and numbers (${place(number)}), so it has " +
            "no type; read such files apart, or leave the feature out by naming all others in .schema(...)")
    }
    if (feature.several) ArrayType(one) else one
  }
}
