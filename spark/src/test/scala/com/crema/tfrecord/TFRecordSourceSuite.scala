package com.crema.tfrecord

import java.io.File
import java.nio.file.{Files, Path}

import com.yahoo.ml.caffe.TestRecords
import org.apache.hadoop.fs.FileUtil
import org.apache.spark.sql.functions.{col, lit}
import org.apache.spark.sql.types._
import org.apache.spark.sql.{DataFrame, DataFrameReader, Row}
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

class TFRecordSourceSuite extends AnyFunSuite with BeforeAndAfterAll {
  private lazy val folder: Path = Files.createTempDirectory("tfrecord-source-suite-")
  private lazy val spark = TestRecords.spark("local[2]")
  private var outputs = 0

  override def afterAll(): Unit = {
    spark.stop()
    FileUtil.fullyDelete(folder.toFile)
  }

  private def fresh(): String = { outputs += 1; folder.resolve(s"output-$outputs").toString }
  private def frame(schema: StructType, rows: Row*): DataFrame =
    spark.createDataFrame(spark.sparkContext.parallelize(rows, 1), schema)
  private def written(frame: DataFrame, options: (String, String)*): String = {
    val output = fresh()
    frame.write.format("tfrecord").options(options.toMap).save(output)
    output
  }
  private def read(options: (String, String)*): DataFrameReader = spark.read.format("tfrecord").options(options.toMap)
  private def files(output: String, ending: String): Array[File] =
    new File(output).listFiles.filter(f => f.getName.endsWith(ending) && !f.getName.startsWith("."))
  private def story(e: Throwable): String =
    Iterator.iterate(e)(_.getCause).takeWhile(_ != null).map(_.getMessage).mkString("\n")
  private def fails(body: => Any): String = story(intercept[Exception](body))
  private def plain(value: Any): Any = value match {
    case bytes: Array[Byte] => bytes.toSeq
    case many: scala.collection.Seq[_] => many.map(plain).toList
    case row: Row => row.toSeq.map(plain).toList
    case other => other
  }
  private def same(found: DataFrame, expected: Row*): Unit =
    assert(found.collect().toSeq.map(plain) == expected.map(plain))
  private def fields(all: (String, DataType)*): StructType = StructType(all.map { case (n, t) => StructField(n, t) })

  private val all = fields(
    "bool" -> BooleanType,
    "byte" -> ByteType,
    "short" -> ShortType,
    "int" -> IntegerType,
    "long" -> LongType,
    "float" -> FloatType,
    "double" -> DoubleType,
    "text" -> StringType,
    "bytes" -> BinaryType
  )
  private val arrays = StructType(all.map(f => StructField("many_" + f.name, ArrayType(f.dataType))))
  private val one = Seq(true, (-7).toByte, 300.toShort, -70000, 1L << 40, 1.25f, -0.5, "größe", Array[Byte](-1, 0, 1))
  private val other = Seq(false, 7.toByte, (-300).toShort, 70000, -1L, Float.NaN, 1e30f.toDouble, "", Array[Byte]())

  test("every type, its arrays of two, one and no values, and nulls, with their schema") {
    val schema = StructType(all ++ arrays)
    val rows = Seq(
      Row.fromSeq(one ++ one.zip(other).map { case (a, b) => Seq(a, b) }),
      Row.fromSeq(other ++ one.map(Seq(_))),
      Row.fromSeq(one ++ one.map(_ => Nil)),
      Row.fromSeq(Seq.fill(schema.length)(null))
    )
    val output = written(frame(schema, rows: _*))
    val back = read().schema(schema).load(output)
    def noNaN(r: Row) = plain(r).toString // NaN is no number that equals itself
    assert(back.collect().map(noNaN).toSeq == rows.map(noNaN) && back.schema == schema)
    assert(back.filter(col("long") === -1L).select("text", "many_int").collect().map(plain).toSeq ==
      Seq(List("", List(-70000))))
    assert(back.count() == 4 && back.select().count() == 4)
  }

  test("without a schema: bigint, float, string; arrays where a record has several values; columns by name") {
    val output = written(frame(StructType(all ++ arrays), Row.fromSeq(other ++ one.map(Seq(_))),
      Row.fromSeq(one ++ one.map(a => Seq(a, a)))))
    val expected = StructType(StructType(all ++ arrays).map { f =>
      def base(t: DataType): DataType = t match {
        case ArrayType(element, _) => ArrayType(base(element))
        case FloatType | DoubleType => FloatType
        case StringType | BinaryType => StringType
        case _ => LongType
      }
      StructField(f.name, base(f.dataType))
    }.sortBy(_.name))
    assert(read().load(output).schema == expected)
    val doubles = read("floatType" -> "double", "binaryFeatures" -> "bytes, many_bytes").load(output).schema
    assert(doubles("float").dataType == DoubleType && doubles("many_double").dataType == ArrayType(DoubleType))
    assert(doubles("bytes").dataType == BinaryType && doubles("many_bytes").dataType == ArrayType(BinaryType))
    assert(doubles("text").dataType == StringType)
    assert(read("BINARYFEATURES" -> """["bytes"]""").load(output).schema("bytes").dataType == BinaryType)
  }

  test("types are merged over records: as many as asked for, or all") {
    val schema = fields("a" -> ArrayType(LongType), "b" -> StringType)
    val rows = Seq.fill(5)(Row(Seq(1L), null)) :+ Row(Seq(1L, 2L), "x")
    val output = written(frame(schema, rows: _*))
    assert(read("inferRecords" -> "5").load(output).schema == fields("a" -> LongType))
    for (n <- Seq("6", "1000", "all", "ALL")) {
      assert(read("inferRecords" -> n).load(output).schema == schema)
      same(read("inferRecords" -> n).load(output), rows: _*)
    }
    val said = fails(read("inferRecords" -> "5").load(output).collect())
    assert(
      said.contains("feature 'a' holds 2 value(s) of kind int64 numbers, and its column is bigint") &&
        said.contains("record at byte ") && said.contains("inferRecords"),
      said
    )
    for (wrong <- Seq("0", "-1", "many", ""))
      assert(fails(read("inferRecords" -> wrong).load(output)).contains("inferRecords"))
  }

  test("whole numbers and floats in one feature are doubles; bytes and numbers are refused by name") {
    val (whole, floats) = (fields("x" -> LongType), fields("x" -> FloatType))
    val output = written(frame(whole, Row(3L)))
    frame(floats, Row(0.5f)).write.format("tfrecord").mode("append").save(output)
    assert(read().load(output).orderBy("x").collect().toSeq == Seq(Row(0.5), Row(3.0)))
    frame(fields("x" -> StringType), Row("y")).write.format("tfrecord").mode("append").save(output)
    for (records <- Seq("1000", "all")) {
      val said = fails(read("inferRecords" -> records).load(output))
      assert(said.contains("feature 'x' holds bytes (file:") && said.contains("and numbers (file:") &&
          said.contains(", record at byte 0)"), said)
    }
    val said = fails(read().schema(floats).load(output).collect())
    assert(said.contains("feature 'x' holds 1 value(s) of kind bytes, and its column is float"), said)
  }

  test("a hint names some columns, first and in its order") {
    val output = written(frame(fields("a" -> LongType, "b" -> ArrayType(LongType), "c" -> FloatType, "d" -> LongType),
      Row(1L, Seq(5L), 0.5f, 2L)))
    val expected =
      fields("d" -> BooleanType, "b" -> ArrayType(IntegerType), "none" -> StringType, "a" -> LongType, "c" -> FloatType)
    val hint = StructType(expected.take(3))
    for (text <- Seq(hint.toDDL, hint.json, hint.simpleString)) {
      val back = read("schemaHint" -> text).load(output)
      assert(back.schema == expected)
      same(back, Row(true, Seq(5), null, 1L, 0.5f))
    }
    assert(fails(read("schemaHint" -> "a b c").load(output)).contains("option schemaHint: 'a b c'"))
    assert(fails(read("schemaHint" -> "a date").load(output)).contains("Unsupported dtype: date in column 'a'"))
  }

  test("numbers out of a column's range, and several values for one, are errors with file, record and column") {
    val output =
      written(frame(fields("n" -> LongType, "m" -> ArrayType(LongType)), Row(1L, Seq(1L)), Row(70000L, Seq(1L, 2L))))
    val narrow = fails(read().schema(fields("n" -> ShortType)).load(output).collect())
    assert(
      narrow.contains("feature 'n' holds 70000, which is no smallint; read it as bigint") &&
        narrow.contains(files(output, ".tfrecord").head.getName) && narrow.contains("record at byte 4"),
      narrow
    )
    assert(
      fails(read().schema(fields("m" -> LongType)).load(output).collect()).contains("feature 'm' holds 2 value(s)"))
    assert(fails(read().schema(fields("m" -> ArrayType(FloatType), "n" -> StringType)).load(output).collect())
        .contains("feature 'n' holds 1 value(s) of kind int64 numbers, and its column is string"))
    same(read().schema(fields("m" -> ArrayType(DoubleType), "n" -> FloatType)).load(output), Row(Seq(1.0), 1f),
      Row(Seq(1.0, 2.0), 70000f))
  }

  test("types that no Example holds, and nulls in arrays, are refused with the column and what to do") {
    val good = written(spark.range(1).toDF())
    for (t <- Seq("date", "timestamp", "decimal(10,2)", "struct<x:int>", "map<string,int>", "array<array<int>>",
        "array<date>")) {
      val odd = spark.range(1).select(lit(null).cast(t).as("when"), lit(1).as("x"))
      for (said <- Seq(fails(written(odd)), fails(read().schema(odd.schema).load(good).collect()))) {
        assert(said.contains(s"Unsupported dtype: $t in column 'when'") && said.contains("cast the column"), said)
      }
    }
    val said = fails(written(frame(fields("x" -> ArrayType(StringType)), Row(Seq("a")), Row(Seq("a", null)))))
    assert(said.contains("row 1 of ") && said.contains("column 'x' has an array whose element 1 is null"), said)
  }

  test("folders without files, without records, and with files without bytes") {
    val empty = Files.createDirectory(folder.resolve("nothing"))
    assert(read().load(empty.toString).collect().isEmpty && read().load(empty.toString).schema.isEmpty)
    Files.createFile(empty.resolve("part-r-00000"))
    assert(read().load(empty.toString).collect().isEmpty)
    assert(read("schemaHint" -> "a int").load(empty.toString).schema == fields("a" -> IntegerType))
    assert(read("inferRecords" -> "all").load(empty.toString).count() == 0)
    val output = written(frame(all))
    assert(read().load(output).schema.isEmpty && read().schema(all).load(output).collect().isEmpty)
    assert(fails(read().load(folder.resolve("absent").toString)).contains("absent"))
  }

  test("codecs by option, none of Hadoop's settings forgotten, and unknown ones refused") {
    val rows =
      frame(fields("a" -> LongType, "b" -> StringType), (0 until 1000).map(i => Row(i.toLong, "x" * (i % 50))): _*)
    for ((asked, extension) <- Seq("gzip" -> "gz", "GZIP" -> "gz", "bzip2" -> "bz2", "deflate" -> "deflate",
        "org.apache.hadoop.io.compress.GzipCodec" -> "gz", "none" -> "tfrecord")) {
      for (name <- Seq("codec", "compression")) {
        val output = written(rows, name -> asked)
        assert(files(output, s".$extension").length == 1 && files(output, "").length == 2, asked) // and _SUCCESS
        same(read().load(output), rows.collect().toSeq: _*)
      }
    }
    val said = fails(written(rows, "codec" -> "zip"))
    assert(said.contains("option codec: 'zip'") && said.contains("none, bzip2, deflate, gzip"), said)
  }

  test("partition columns, globs, append and overwrite are Spark's") {
    val output = fresh()
    val rows = spark.range(100).selectExpr("id", "id % 3 as part")
    rows.write.format("tfrecord").partitionBy("part").save(output)
    assert(read().load(output).filter("part = 2").count() == 33)
    assert(read().load(output).columns.toSeq == Seq("id", "part"))
    assert(read().load(s"$output/part=[01]").count() == 67)
    intercept[Exception](rows.write.format("tfrecord").save(output))
    rows.limit(10).write.format("tfrecord").mode("append").partitionBy("part").save(output)
    assert(read().load(output).count() == 110)
    rows.limit(5).write.format("com.crema.tfrecord").mode("overwrite").save(output)
    assert(read().load(output).select("id").orderBy("id").collect().map(_.getLong(0)).toSeq == (0L until 5L))
  }

  test("a file is read by several tasks, in order and every row once; by one on request") {
    val output = written(spark.range(0, 20000, 1, 1).selectExpr("id", "repeat('x', cast(id % 100 as int)) as b"))
    def ids(frame: DataFrame) = (frame.rdd.getNumPartitions, frame.select("id").collect().map(_.getLong(0)).toSeq)
    val settings = Seq("spark.sql.files.maxPartitionBytes" -> "50000", "spark.sql.files.openCostInBytes" -> "0")
    settings.foreach { case (key, value) => spark.conf.set(key, value) }
    try {
      val (parts, found) = ids(read().load(output))
      assert(parts > 20 && found.sorted == (0L until 20000L))
      for (option <- Seq("splittable", "crc32check"))
        assert(ids(read(option -> "false").load(output)) == ((1, (0L until 20000L).toSeq)))
      assert(ids(spark.read.format("tfrecord").option("tensorflow.read.splittable", "false").load(output))._1 == 1)
      assert(fails(read("splittable" -> "no").load(output).collect()).contains("option splittable: 'no'"))
    } finally settings.foreach { case (key, _) => spark.conf.unset(key) }
  }

  test("a damaged or cut file is an error with its name and place; without the check it is read") {
    val output = written(frame(fields("a" -> StringType), Row("x" * 100), Row("y" * 100)))
    val Array(path) = files(output, ".tfrecord")
    new File(output, s".${path.getName}.crc").delete() // Hadoop's own sums would find it first
    val whole = Files.readAllBytes(path.toPath)
    Files.write(path.toPath, whole.updated(60, 'z'.toByte))
    val said = fails(read().load(output).collect())
    assert(said.contains(path.getName) && said.contains("the record at byte 0 is damaged") && said.contains("CRC-32C"),
      said)
    val unchecked = read("crc32check" -> "false").load(output).collect()
    assert(unchecked.length == 2 && unchecked(0).getString(0).contains("xzx"))
    Files.write(path.toPath, whole.dropRight(7))
    assert(
      fails(read().load(output).collect()).contains(s"ends inside the record that begins at byte ${whole.length / 2}"))
  }

  test("records as bytes") {
    val rows = Seq(Row("a".getBytes), Row(Array[Byte]()))
    val output = written(frame(fields("x" -> BinaryType), rows: _*), "recordType" -> "ByteArray")
    val back = read("recordType" -> "bytearray")
    same(back.load(output), rows: _*)
    assert(back.load(output).columns.toSeq == Seq("byteArray") && back.load(output).count() == 2)
    same(back.schema(fields("mine" -> BinaryType)).load(output), rows: _*)
    assert(fails(read().load(output)).contains("recordType=ByteArray"))
    assert(fails(written(frame(all), "recordType" -> "ByteArray")).contains("one column of type binary"))
    assert(fails(written(frame(fields("x" -> BinaryType), Row(null)), "recordType" -> "ByteArray")).contains(
        "row 0 of "))
    assert(fails(read("recordType" -> "SequenceExample").load(output)).contains("read such records with ByteArray"))
    assert(fails(read("recordType" -> "Bytes").load(output)).contains("it is Example or ByteArray"))
  }

  test("SQL, temporary views and a stream read it too") {
    val output = written(spark.range(10).toDF())
    assert(spark.sql(s"SELECT sum(id) FROM tfrecord.`$output`").collect().toSeq == Seq(Row(45L)))
    val query = spark.readStream.format("tfrecord").schema(fields("id" -> LongType)).load(output).writeStream
      .format("memory").queryName("tfrecords").start()
    try {
      query.processAllAvailable()
      assert(spark.table("tfrecords").count() == 10)
    } finally query.stop()
  }
}
