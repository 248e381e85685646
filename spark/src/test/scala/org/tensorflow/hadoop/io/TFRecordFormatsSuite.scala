package org.tensorflow.hadoop.io

import java.io.File
import java.nio.file.{Files, Path}

import com.crema.tfrecord.ReadSettings
import com.yahoo.ml.caffe.TestRecords
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileUtil
import org.apache.hadoop.io.compress.GzipCodec
import org.apache.hadoop.io.{BytesWritable, NullWritable}
import org.apache.spark.rdd.RDD
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

class TFRecordFormatsSuite extends AnyFunSuite with BeforeAndAfterAll {
  private lazy val folder: Path = Files.createTempDirectory("tfrecord-formats-suite-")
  private lazy val spark = TestRecords.spark("local[2]")
  private lazy val sc = spark.sparkContext

  override def afterAll(): Unit = {
    spark.stop()
    FileUtil.fullyDelete(folder.toFile)
  }

  private def conf(settings: (String, String)*): Configuration = {
    val made = new Configuration(sc.hadoopConfiguration)
    settings.foreach { case (key, value) => made.set(key, value) }
    made
  }
  private def save(name: String, partitions: Int, settings: (String, String)*): String = {
    val output = folder.resolve(name).toString
    sc.parallelize(0 until 1000, partitions)
      .map(i => (new BytesWritable(Array.fill(i % 70)(i.toByte)), NullWritable.get()))
      .saveAsNewAPIHadoopFile(output, classOf[BytesWritable], classOf[NullWritable], classOf[TFRecordFileOutputFormat],
        conf(settings: _*))
    output
  }
  private def load(path: String, settings: (String, String)*): RDD[(BytesWritable, NullWritable)] =
    sc.newAPIHadoopFile(path, classOf[TFRecordFileInputFormat], classOf[BytesWritable], classOf[NullWritable],
      conf(settings: _*))
  private def check(rdd: RDD[(BytesWritable, NullWritable)]): Unit = {
    // getBytes as a whole: programs parse it, and keys are collected without a copy.
    val found = rdd.keys.map(_.getBytes.toSeq).collect().toSeq
    assert(found == (0 until 1000).map(i => Seq.fill(i % 70)(i.toByte)))
  }
  private val small = "mapreduce.input.fileinputformat.split.maxsize" -> "1000"

  test("records come back in order; files have the names that they had") {
    val output = save("plain", 3)
    assert(new File(output).list.filter(_.startsWith("part")).sorted.toSeq == (0 to 2).map(i => s"part-r-0000$i"))
    check(load(output))
    check(load(s"$output/part-r-0000[01],$output/part-r-00002"))
  }

  test("files are split, and not where that is asked for") {
    val output = save("split", 1)
    val many = load(output, small)
    assert(many.getNumPartitions > 40)
    check(many)
    for (key <- Seq(ReadSettings.SPLITTABLE, ReadSettings.CRC)) {
      val one = load(output, small, key -> "false")
      assert(one.getNumPartitions == 1)
      check(one)
    }
  }

  test("gzip by Hadoop's settings, read by the extension and not split") {
    val output = save("packed", 2, "mapreduce.output.fileoutputformat.compress" -> "true",
      "mapreduce.output.fileoutputformat.compress.codec" -> classOf[GzipCodec].getName)
    assert(new File(output).list.filter(_.startsWith("part")).sorted.toSeq == Seq("part-r-00000.gz", "part-r-00001.gz"))
    assert(load(output, small).getNumPartitions == 2)
    check(load(output, small))
  }

  test("a damaged file fails the job with its name, unless the check is switched off") {
    val output = save("damaged", 1)
    val path = new File(output, "part-r-00000").toPath
    new File(output, ".part-r-00000.crc").delete() // Hadoop's own sums would find it first
    val bytes = Files.readAllBytes(path)
    val inside = 20000
    Files.write(path, bytes.updated(inside, (bytes(inside) ^ 1).toByte))
    for (settings <- Seq(Nil, Seq(small))) {
      val said = intercept[Exception](load(output, settings: _*).count()).toString
      assert(said.contains("part-r-00000: ") && said.contains("CRC-32C"), said)
    }
  }
}
