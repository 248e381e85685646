package com.yahoo.ml.caffe

import java.io.{DataOutputStream, File, FileOutputStream}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path}

import com.crema.Command
import org.apache.spark.{SparkConf, SparkContext}
import org.apache.spark.sql.SparkSession

/** Small learnable pictures (28 x 28, ten classes: each is bright in its own pixels), as an LMDB and in memory; and the
  * nets over them.
  */
class TestRecords(val folder: Path, val count: Int, seed: Int, val side: Int = 12) {
  private val random = new scala.util.Random(seed)
  val labels: Array[Int] = Array.fill(count)(random.nextInt(10))
  val pixels: Array[Array[Byte]] = labels.map(l =>
    Array.tabulate(side * side)(i => (random.nextInt(90) + (if ((i * 7 + i / side) % 10 == l) 150 else 0)).toByte))
  def id(i: Int): String = f"$i%08d"

  /** Written by the executable, keys 00000000 and on. */
  lazy val lmdb: String = {
    val (images, marks) = (folder.resolve(s"images-$seed").toFile, folder.resolve(s"labels-$seed").toFile)
    write(images) { out => Seq(2051, count, side, side).foreach(out.writeInt); pixels.foreach(p => out.write(p)) }
    write(marks) { out => Seq(2049, count).foreach(out.writeInt); labels.foreach(l => out.writeByte(l)) }
    val database = folder.resolve(s"lmdb-$seed").toString
    val done = Command.run(60, "convert_mnist_data", images.getPath, marks.getPath, database)
    assert(done.code == 0, done.errors)
    database
  }

  private def write(file: File)(body: DataOutputStream => Unit): Unit = {
    val out = new DataOutputStream(new FileOutputStream(file))
    try body(out)
    finally out.close()
  }
}

object TestRecords {
  /** A net with one convolution; `train` and `test` are the data layers' parameters and class. */
  def net(train: String, test: String): String = {
    def data(phase: String, body: String) =
      s"""layer { name: "data" top: "data" top: "label" include { phase: $phase } $body }\n"""
    s"""name: "small"\n${data("TRAIN", train)}${data("TEST", test)}
       |layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" param { lr_mult: 1 } param { lr_mult: 2 }
       |  convolution_param { num_output: 4 kernel_size: 3 stride: 2 weight_filler { type: "xavier" } } }
       |layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
       |layer { name: "ip" type: "InnerProduct" bottom: "conv" top: "ip"
       |  inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
       |layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy" include { phase: TEST } }
       |layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
       |""".stripMargin
  }

  def solver(folder: Path, net: String, more: String = ""): String = {
    Files.createDirectories(folder)
    Files.write(folder.resolve("net.prototxt"), net.getBytes(UTF_8))
    val text = s"""net: "net.prototxt"
                  |base_lr: 0.05 momentum: 0.9 lr_policy: "fixed" max_iter: 30 random_seed: 7
                  |snapshot_prefix: "snap" solver_mode: CPU
                  |$more""".stripMargin
    Files.write(folder.resolve("solver.prototxt"), text.getBytes(UTF_8)).toString
  }

  def spark(master: String, settings: (String, String)*): SparkSession = {
    val conf = new SparkConf().setMaster(master).setAppName("test").set("spark.ui.enabled", "false")
      .set("spark.sql.shuffle.partitions", "3")
    settings.foreach { case (k, v) => conf.set(k, v) }
    SparkSession.builder().config(conf).getOrCreate()
  }

  def config(sc: SparkContext, solver: String, model: Path, flags: String*): Config =
    new Config(sc, Array("-conf", solver, "-model", s"file:$model", "-connection", "ethernet") ++ flags)
}
