package com.crema

import org.scalatest.funsuite.AnyFunSuite

class ClusterSuite extends AnyFunSuite {
  test("a Spark that this jar is not for is refused with the jar to take") {
    Cluster.checkVersion()
    def said(line: String, scala: String, spark: String, running: String) =
      JarCheck.complaint(line, scala, spark, running)
    assert(said("3.5", "2.12", "3.5.9", "2.12.18") == null)
    assert(said("3.5", "2.13", "3.5.9", "2.13.8") == null)
    assert(said("4", "2.13", "4.1.4", "2.13.17") == null)
    assert(said("4", "2.13", "4.0.0", "2.13.16").contains("Spark 4.0.0 is not supported"))
    assert(said("3.5", "2.12", "3.4.2", "2.12.17").endsWith("take the jar crema-spark-3.5_2.12 and Spark 3.5 or 4"))
    val wrong = "this jar is for Spark 3.5 with Scala 2.12, and this is Spark 4.1.4 with Scala 2.13; "
    assert(said("3.5", "2.12", "4.1.4", "2.13.17") == wrong + "take the jar crema-spark-4_2.13")
    for ((line, scala) <- Seq("4" -> "2.13", "3.5" -> "2.13"))
      assert(said(line, scala, "3.5.9", "2.12.18").endsWith("take the jar crema-spark-3.5_2.12"))
    assert(said("3.5", "2.12", "3.5.9", "2.13.8").endsWith("take the jar crema-spark-3.5_2.13"))
  }

  test("what the executables say is encrypted where Spark encrypts what it says, and where it is asked for") {
    def encrypts(settings: (String, String)*) =
      Cluster.encrypts(new org.apache.spark.SparkConf(false).setAll(settings))
    assert(!encrypts())
    // As python/tensorflowonspark/util.py has them.
    for (key <- Seq("spark.network.crypto.enabled", "spark.authenticate.enableSaslEncryption", "spark.ssl.enabled",
        "spark.ssl.rpc.enabled", "spark.crema.encrypt"))
      assert(encrypts(key -> "true") && !encrypts(key -> "false"), key)
    assert(!encrypts("spark.ssl.enabled" -> "true", "spark.crema.encrypt" -> "false"))
    def warned(keys: String*) =
      Cluster.openKey(new org.apache.spark.SparkConf(false).setAll(keys.map(_ -> "true"))).isDefined
    assert(warned("spark.ssl.enabled") && warned("spark.crema.encrypt") && !warned())
    assert(!warned("spark.ssl.enabled", "spark.network.crypto.enabled") && !warned("spark.ssl.rpc.enabled"))
  }

  test("a run grows with dynamic allocation where an executor that comes has room for one worker, and ranks to take") {
    val dynamic = Seq("spark.master" -> "yarn", "spark.dynamicAllocation.enabled" -> "true",
      "spark.dynamicAllocation.minExecutors" -> "2")
    def why(ranks: Int, more: (String, String)*) = {
      val conf = new org.apache.spark.SparkConf(false).setAll(dynamic ++ more)
      assert(Cluster.grows(conf) || Cluster.whyNoGrowth(conf, ranks).isEmpty)
      Cluster.whyNoGrowth(conf, ranks).getOrElse("it grows")
    }
    assert(why(4) === "it grows", "to one worker for each rank: maxExecutors is not set")
    assert(why(4, "spark.executor.cores" -> "8", "spark.task.cpus" -> "8") === "it grows")
    assert(why(4, "spark.executor.cores" -> "8").endsWith("to one number, not 8 and 1"))
    assert(why(4, "spark.master" -> "spark://h:7077").endsWith("to one number, not none and 1"))
    assert(why(2).startsWith("the 2 rank(s), minExecutors x devices, give more than 2 executor(s) nothing to do"))
    assert(why(4, "spark.dynamicAllocation.minExecutors" -> "0").startsWith("a run begins with minExecutors"))
    for (fixed <- Seq("spark.dynamicAllocation.enabled" -> "false", "spark.dynamicAllocation.maxExecutors" -> "2"))
      assert(!Cluster.grows(new org.apache.spark.SparkConf(false).setAll(dynamic :+ fixed)))
  }

  test("how many workers are enough is a number, and not more than a run begins with") {
    def least(text: String, workers: Int, places: Int) =
      Cluster.leastWorkers(new org.apache.spark.SparkConf(false).set("spark.crema.leastWorkers", text), workers, places)
    assert(Cluster.leastWorkers(new org.apache.spark.SparkConf(false), 2, 4) == 0)
    assert(least("2", 2, 4) == 2 && least(" 0 ", 1, 1) == 0)
    for (wrong <- Seq("two", "", "-1", "99999999999"))
      assert(intercept[WrongArgument](least(wrong, 2, 4)).getMessage ===
        s"spark.crema.leastWorkers=$wrong is not a number of workers; give 0 to 2")
    assert(intercept[WrongArgument](least("3", 2, 4)).getMessage.endsWith(
        "raise spark.dynamicAllocation.minExecutors to 3, or set spark.crema.leastWorkers to at most 2"))
    assert(intercept[WrongArgument](least("3", 2, 2)).getMessage.contains("ask for at least 3 executors and ranks"))
  }

  test("where rows are sent, another worker is waited for until Spark sees that a machine is gone") {
    def timeout(rowsSent: Boolean, settings: (String, String)*) =
      Cluster.replacementTimeout(new org.apache.spark.SparkConf(false).setAll(settings), rowsSent)
    assert(timeout(false) == 60 && timeout(true) == 240)
    assert(timeout(false, "spark.network.timeout" -> "10min") == 60)
    assert(timeout(true, "spark.network.timeout" -> "10min") == 720)
    for (rowsSent <- Seq(false, true)) assert(timeout(rowsSent, "spark.crema.replacementTimeout" -> "7s") == 7)
  }

  test("ranks are dealt to workers as the executable deals them") {
    for (ranks <- 1 to 9; workers <- 1 to ranks; records <- Seq(ranks.toLong, 100L, 1003L);
      sharding = Sharding(records, 7, ranks, workers)) {
      val owners = (0L until records).map(r => sharding.workerOf(r))
      assert(owners.toSet == (0 until workers).toSet || records < 7L * ranks, (ranks, workers, records))
      // engine/collective/tree.cc: worker w has the ranks from ceil(w R / W) on
      for (w <- 0 until workers;
        rank <- (w * ranks + workers - 1) / workers until ((w + 1) * ranks + workers - 1) / workers;
        record = rank.toLong * sharding.block; if record < records)
        assert(sharding.workerOf(record) == w)
    }
  }

  test("TEST rows are dealt by batches, each row to one worker, unless batches wrap") {
    for (batch <- Seq(1, 4, 10); batches <- Seq(1, 2, 3, 7, 20); workers <- Seq(1, 2, 3, 5, 12)) {
      val sharding = Sharding.ofTests(batch.toLong * batches, batch, workers).get
      for (row <- 0 until batch * batches)
        assert(sharding.workerOf(row.toLong) == row / batch % workers, (batch, batches, workers, row))
    }
    assert(Sharding.ofTests(101, 10, 3).isEmpty)
  }
}
