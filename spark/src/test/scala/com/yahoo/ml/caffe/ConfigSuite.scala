package com.yahoo.ml.caffe

import org.scalatest.funsuite.AnyFunSuite

class ConfigSuite extends AnyFunSuite {
  private def config(args: String*) = new Config(null, args.toArray)

  test("the 24 flags of CaffeOnSpark, and their defaults") {
    assert(Flags.names.toSet - "resume" === Set( // which is ours
      "conf",
      "train",
      "test",
      "features",
      "label",
      "outputFormat",
      "model",
      "output",
      "devices",
      "persistent",
      "snapshot",
      "weights",
      "connection",
      "resize",
      "clusterSize",
      "lmdb_partitions",
      "imageRoot",
      "labelFile",
      "captionFile",
      "captionLength",
      "vocabSize",
      "imageCaptionDFDir",
      "vocabDir",
      "embeddingDFDir"
    ))
    val c = config()
    assert((c.protoFile, c.label, c.outputFormat, c.modelPath) === (("", "", "json", "")))
    assert((c.outputPath, c.devices) === (("output", 1)))
    assert((c.isTraining, c.isTest, c.isFeature, c.isRddPersistent, c.resize) === ((false, false, false, false, false)))
    assert((c.snapshotStateFile, c.snapshotModelFile, c.connection) === (("", "", Config.CONNECTION_RDMA)))
    assert((c.clusterSize, c.lmdb_partitions) === ((1, 1)))
    assert((c.imageRoot, c.labelFile, c.captionFile, c.captionLength, c.vocabSize) === ((null, null, "", 20, -1)))
    assert((c.imageCaptionDFDir, c.vocabDir, c.embeddingDFDir, c.transform_thread_per_device) === (("", "", "", 1)))
    assert(new Config(null).label === "label")
  }

  test("every flag reaches its setting") {
    val c = config(
      "-conf",
      "s.prototxt",
      "-resume",
      "auto",
      "-train",
      "-features",
      "a, b",
      "-label",
      "l",
      "-outputFormat",
      "parquet",
      "-model",
      "m",
      "-output",
      "o",
      "-devices",
      "2",
      "-persistent",
      "-snapshot",
      "s.solverstate",
      "-weights",
      "w",
      "-connection",
      "Ethernet",
      "-resize",
      "-clusterSize",
      "4",
      "-lmdb_partitions",
      "7",
      "-imageRoot",
      "i",
      "-labelFile",
      "f",
      "-captionFile",
      "c",
      "-captionLength",
      "3",
      "-vocabSize",
      "9",
      "-imageCaptionDFDir",
      "x",
      "-vocabDir",
      "y",
      "-embeddingDFDir",
      "z"
    )
    assert((c.protoFile, c.isTraining, c.isFeature, c.outputFormat) === (("s.prototxt", true, true, "parquet")))
    assert(c.features.toSeq === Seq("a", "b", "l"))
    assert((c.modelPath, c.outputPath, c.devices, c.isRddPersistent) === (("m", "o", 2, true)))
    assert((c.snapshotStateFile, c.snapshotModelFile, c.resume) === (("s.solverstate", "w", "auto")))
    assert((c.connection, c.resize) === ((Config.CONNECTION_SOCKET, true)))
    assert((c.clusterSize, c.ranks, c.lmdb_partitions) === ((4, 8, 7)))
    assert((c.imageRoot, c.labelFile, c.captionFile, c.captionLength, c.vocabSize) === (("i", "f", "c", 3, 9)))
    assert((c.imageCaptionDFDir, c.vocabDir, c.embeddingDFDir) === (("x", "y", "z")))
  }

  test("the label follows the features and is not repeated") {
    assert(Seq("file:s.prototxt", "file:///a/s.prototxt", "file:/a/s.prototxt")
      .map(c => config("-conf", c).protoFile) === Seq("s.prototxt", "/a/s.prototxt", "/a/s.prototxt"))
    assert(config("-features", "ip1,label", "-label", "label").features.toSeq === Seq("ip1", "label"))
    assert(config("-features", "ip1", "-label", "label").features.toSeq === Seq("ip1", "label"))
    assert(config("-features", "ip1").features.toSeq === Seq("ip1"))
  }

  test("features win over test on the command line; the later setter wins otherwise") {
    val c = config("-test", "-features", "ip1")
    assert((c.isTest, c.isFeature) === ((false, true)))
    c.isTest = true
    assert((c.isTest, c.isFeature) === ((true, false)))
  }

  test("wrong command lines get a sentence") {
    val wrong = Seq(
      Seq("-frobnicate") -> "frobnicate",
      Seq("-conf") -> "conf",
      Seq("-devices", "two") -> "-devices needs a whole number, not 'two'",
      Seq("-train", "stray") -> "'stray' is no flag",
      Seq("-conf", "s.prototxt", "--conf", "spark.x=y") ->
        "-conf is given as s.prototxt and as spark.x=y; keep one. Flags of spark-submit, such as --conf, stand before"
    )
    for ((args, words) <- wrong) {
      val e = intercept[IllegalArgumentException](config(args: _*))
      assert(e.getMessage.contains(words) && e.getMessage.endsWith("(-help lists the flags)"), e.getMessage)
    }
    assert(config("-devices", "2", "-devices", "2").devices == 2 && Flags.usage.contains("-outputFormat <format>"))
    assert(intercept[IllegalArgumentException](config("-devices", "0")).getMessage.contains("at least 1"))
    assert(intercept[IllegalArgumentException](config("-clusterSize", "0")).getMessage.contains("at least 1"))
    assert(intercept[IllegalArgumentException](config("-train").plan()).getMessage.contains("-conf"))
  }

  test(
    "clusterSize: executors asked for on YARN, one where nobody says how many; the fewest of dynamic allocation; " +
      "else the flag") {
    def size(settings: (String, String)*) = {
      val conf = new org.apache.spark.SparkConf(false)
      settings.foreach { case (k, v) => conf.set(k, v) }
      Config.ahead(conf, Array("-clusterSize", "5")).clusterSize
    }
    val yarn = "spark.master" -> "yarn"
    assert((size(), size(yarn), size(yarn, "spark.executor.instances" -> "3"),
      size("spark.master" -> "spark://h:1", "spark.executor.instances" -> "3")) === ((5, 1, 3, 5)))
    val dynamic = "spark.dynamicAllocation.enabled" -> "true"
    assert((size(yarn, dynamic, "spark.dynamicAllocation.minExecutors" -> "4", "spark.executor.instances" -> "3"),
      size(yarn, dynamic)) === ((4, 5)))
  }

  test("memory for a worker: rows that it keeps count, where a container has a limit") {
    val plan = com.crema.wire.Wire.Plan.newBuilder.setNetName("n").setMemoryBytes(200L << 20).setBytesPerRow(8).build()
    val yarn = new org.apache.spark.SparkConf(false).setMaster("yarn").set("spark.executor.memoryOverhead", "400m")
    Checks.memory(plan, yarn, 1000000) // 200 + 8 MiB, and 160 of the executor's own
    val e = intercept[IllegalArgumentException](Checks.memory(plan, yarn, 10000000))
    assert(e.getMessage.contains("needs about 277 MiB beside its executor") &&
        e.getMessage.contains("spark.executor.memoryOverhead=512m"), e.getMessage)
    Checks.memory(plan, yarn.clone.setMaster("local[2]"), 10000000)
  }
}
