package com.crema

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, PrintStream}
import java.nio.file.{Files, Path}
import java.util.concurrent.atomic.AtomicLong

import com.crema.wire.Wire.Input
import com.yahoo.ml.caffe.{CaffeOnSpark, DataSource, OwnImages, Pictures, SourceRuns, TestRecords}
import org.apache.spark.crema.SlowShuffle
import org.apache.spark.scheduler.{SparkListener, SparkListenerTaskEnd}
import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

/** Rows of numbers, id "i" and one float i. */
private class Numbers(@transient sc: SparkContext, count: Int) extends RowSource[Int] {
  override val description = "numbers"
  override val batch = 4
  override val fields = 1
  override def records: RDD[Int] = sc.parallelize(0 until count, 5)
  override def put(r: Int, row: RowBuilder): Unit = { row.begin(r.toString); row.float(r.toFloat) }
}

/** Training runs whose rows Spark shuffles: which worker gets which TEST rows, and how long Spark may take. */
class TrainRunSuite extends AnyFunSuite with BeforeAndAfterAll {
  private lazy val folder: Path = Files.createTempDirectory("train-run-suite-")
  private val ranks = 3
  override def afterAll(): Unit = org.apache.hadoop.fs.FileUtil.fullyDelete(folder.toFile)

  /** A run's test values, and the bytes that were shuffled. */
  private case class Run(tests: Seq[Seq[Float]], bytes: Long, model: Seq[Byte])

  private def memory(source: String, kind: String, batch: Int): String =
    s"""type: "MemoryData" source_class: "$kind" transform_param { scale: 0.00390625 mirror: true }
       |memory_data_param { source: "$source" batch_size: $batch channels: 1 height: 12 width: 12 }""".stripMargin
  private def rows(testBatch: Int) =
    TestRecords.net(memory("none", classOf[OwnImages].getName, 16),
      memory("none", classOf[OwnImages].getName, testBatch))
  private def lmdb(testBatch: Int) =
    TestRecords.net(memory(SourceRuns.train.lmdb, "com.yahoo.ml.caffe.LMDB", 16),
      memory(SourceRuns.test.lmdb, "com.yahoo.ml.caffe.LMDB", testBatch))

  private def run(name: String, workers: Int, net: String, more: String, flags: Seq[String] = Nil,
      settings: Seq[(String, String)] = Nil): Run = {
    val spark = TestRecords.spark(s"local[$workers]", settings: _*)
    try {
      val (sc, home, bytes) = (spark.sparkContext, folder.resolve(name), new AtomicLong)
      sc.addSparkListener(new SparkListener {
        override def onTaskEnd(e: SparkListenerTaskEnd): Unit =
          bytes.addAndGet(e.taskMetrics.shuffleWriteMetrics.bytesWritten)
      })
      val conf = TestRecords.config(sc, TestRecords.solver(home, net, more), home.resolve("model"),
        Seq("-train", "-clusterSize", ranks.toString) ++ flags: _*)
      val Seq(t, v) = Seq(true, false).map(DataSource.getSource(conf, _).asInstanceOf[DataSource[Any, Any]])
      val rows = new CaffeOnSpark(sc).trainWithValidation(t, v).collect()
      val tests = rows.map(r => r.getSeq[Float](0) ++ r.getSeq[Float](1)).toSeq
      org.apache.spark.crema.Bus.drained(sc)
      Run(tests.map(_.toSeq), bytes.get, Files.readAllBytes(home.resolve("model")).toSeq)
    } finally spark.stop()
  }

  // 115 rows: 5 whole batches of 23, of which each test takes the next 4; or 5 batches of 20 and one that wraps.
  for ((batch, dealt) <- Seq(23 -> true, 20 -> false))
    test(s"test batches of $batch: the same values for any number of workers, resumed as well; " +
      s"TEST rows travel ${if (dealt) "once" else "to every worker"}") {
      val more = "test_iter: 4 test_interval: 5 snapshot: 15"
      val expected = run(s"lmdb-$batch", 1, lmdb(batch), more)
      assert(expected.tests.size == 5 && expected.tests.toSet.size == 5, expected.tests)
      val runs = (1 to 3).map(w => run(s"rows-$batch-$w", w, rows(batch), more))
      for (r <- runs) assert(r.tests == expected.tests && r.model == runs.head.model)
      assert(run(s"lmdb-$batch-2", 2, lmdb(batch), more).tests == expected.tests)
      val from = folder.resolve(s"rows-$batch-2")
      val again = run(s"again-$batch", 3, rows(batch), more,
        Seq("-snapshot", s"file:$from/snap_iter_15.solverstate", "-weights", s"file:$from/snap_iter_15.caffemodel"))
      // The test at 15 is taken by the run that is resumed there, before its first step.
      assert(again.tests == expected.tests.drop(2), s"${again.tests} ${expected.tests}")
      val testBytes = SourceRuns.test.pixels.map(_.length).sum.toLong
      println(
        s"shuffled for 1, 2, 3 workers: ${runs.map(_.bytes).mkString(", ")} bytes; the TEST pixels are $testBytes")
      if (dealt) assert(runs(2).bytes - runs(0).bytes < testBytes / 4)
      else assert(runs(2).bytes - runs(0).bytes > testBytes)
    }

  test(
    "a damaged picture is replaced in its own test batch, a damaged batch is left out of the mean, " +
      "for any number of workers") {
    def net(kind: String) = {
      val tests = memory(kind, classOf[Pictures].getName, 23)
      TestRecords.net(memory("none", classOf[OwnImages].getName, 16), tests).replace("mirror: true", "")
    }
    val expected = run("without", 1, net("without"), "test_iter: 4 test_interval: 10").tests
    assert(expected.size == 2)
    for (w <- 1 to 3)
      assert(run(s"damaged-$w", w, net("damaged"), "test_iter: 5 test_interval: 10").tests == expected, w)
  }

  test("of N rows that are dealt, N are shuffled, each to the worker who tests it; of others N to every worker") {
    val spark = TestRecords.spark("local[2]")
    try for ((count, workers) <- Seq((40, 3), (40, 1), (8, 5), (41, 3))) {
        val sharding = Sharding.ofTests(count.toLong, 4, workers)
        val read = new Numbers(spark.sparkContext, count).read(persistent = false)
        val frames = read.frames(sharding, workers, test = true).collect().toSeq
        val sent = frames.flatMap { case (key, bytes) =>
          val batch = Input.parseDelimitedFrom(new ByteArrayInputStream(bytes)).getRows.getBatch
          val ids = batch.getColumn(0)
          val lengths =
            if (ids.getLengthCount > 0) (0 until ids.getLengthCount).map(ids.getLength)
            else Seq.fill(batch.getRows)(ids.getWidth)
          lengths.scanLeft(0)(_ + _).zip(lengths).map { case (at, n) =>
            key.worker -> ids.getValues.substring(at, at + n).toStringUtf8.toInt
          }
        }
        def takers(row: Int) = if (count % 4 == 0) Seq(row / 4 % workers) else 0 until workers
        val wanted = for (row <- 0 until count; w <- takers(row)) yield w -> row
        assert(sent.sorted == wanted.sorted, (count, workers))
      }
    finally spark.stop()
  }

  test("a sort that takes longer than all deadlines is waited for, and told") {
    val settings = Seq("spark.shuffle.manager" -> classOf[SlowShuffle].getName, "spark.crema.stepTimeout" -> "2s",
      "spark.crema.joinTimeout" -> "4s")
    val said = new ByteArrayOutputStream
    val before = System.err
    SlowShuffle.readers.set(0)
    SlowShuffle.delay.set(24000)
    System.setErr(new PrintStream(said, true))
    val slow =
      try run("slow", 2, rows(23), "test_iter: 4 test_interval: 5", settings = settings)
      finally { System.setErr(before); SlowShuffle.delay.set(0) }
    assert(SlowShuffle.readers.get == 2 && slow.tests.size == 5)
    assert("preparing rows: 0 of 2 workers have theirs".r.findAllIn(said.toString).size >= 3, said)
  }
}
