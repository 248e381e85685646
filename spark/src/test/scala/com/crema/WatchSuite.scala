package com.crema

import java.nio.file.{Files, Path}
import java.util.concurrent.{CountDownLatch, TimeUnit}

import com.crema.wire.Wire.{Event, Job}
import com.google.protobuf.ByteString
import org.apache.spark.{SparkContext, SparkException}
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

import com.yahoo.ml.caffe.TestRecords

/** Runs of one worker, without a task, whose end the driver hears late: its journal hangs. */
class WatchSuite extends AnyFunSuite with BeforeAndAfterAll {
  private lazy val folder: Path = Files.createTempDirectory("watch-suite-")
  override def afterAll(): Unit = org.apache.hadoop.fs.FileUtil.fullyDelete(folder.toFile)

  private lazy val job: Job.Builder = {
    val net =
      """layer { name: "data" type: "DummyData" top: "data" top: "label" dummy_data_param {
        |  shape { dim: 4 dim: 3 } shape { dim: 4 }
        |  data_filler { type: "gaussian" } data_filler { type: "constant" } } }
        |layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 2 } }
        |layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }""".stripMargin
    val solver = TestRecords.solver(folder, net, "snapshot: 20")
    val plan = Planner.plan(solver, ranks = 1, seed = 7, features = Nil, train = false, test = false)
    Job.newBuilder.setSolver(plan.getSolver).setRanks(1).setWorkers(1).setThreads(1).setHost("127.0.0.1")
      .setToken(ByteString.copyFrom(new Array[Byte](32))).setSnapshotPrefix(folder.resolve("snap").toString)
  }

  /** @param tasks gets the coordinator's address */
  private def watched(stepTimeout: Int, published: Event.Snapshot => Unit)(
      tasks: (SparkContext, Watch, String) => Unit): Unit = {
    val spark = TestRecords.spark("local[1]", "spark.crema.stepTimeout" -> s"${stepTimeout}s")
    val coordinator = new Child("coordinator", job.setStepTimeout(stepTimeout.toDouble).build())
    try {
      val address = coordinator.next().get.getListening.getAddress
      val watch = new Watch(spark.sparkContext, coordinator, new Console, new Budget(None), _.getState, published)
      watch.during(tasks(spark.sparkContext, watch, address))
    } finally { coordinator.close(); spark.stop() }
  }

  private def run(stepTimeout: Int)(published: Event.Snapshot => Unit): Unit =
    watched(stepTimeout, published) { (_, _, address) =>
      val worker = new Child("worker", job.clone().setCoordinator(address).build())
      while (worker.next().isDefined) {}
      worker.finish(None)
    }

  test("where a worker has not come, the error says why its task failed") {
    job.setJoinTimeout(3)
    val e =
      try intercept[CremaException](watched(stepTimeout = 60, _ => ()) { (sc, watch, _) =>
          sc.setJobGroup(watch.group, "")
          intercept[SparkException](sc.parallelize(Seq(1), 1).foreach(_ => throw new CremaException("/tmp is full")))
          sc.clearJobGroup()
          Thread.sleep(8000) // until the coordinator has ended the run
          throw new SparkException("Job 0 cancelled part of cancelled job group")
        }).getMessage
      finally job.clearJoinTimeout()
    assert(e.contains("1 workers wanted, 0 here") && e.contains("failed: /tmp is full") && !e.contains("cancelled"), e)
  }

  test("a run that is done is one, also where the driver hears of it some time later") {
    val noted = new CountDownLatch(1)
    run(stepTimeout = 3)(s => if (s.getIteration == 20) noted.await(22, TimeUnit.SECONDS))
  }

  test("a driver that cannot hear the end of a run says what holds it") {
    val never = new CountDownLatch(1)
    try {
      val e = intercept[CremaException](run(stepTimeout = 1)(_ => never.await())).getMessage
      assert(e.contains("all tasks have ended well, and 10 s later") &&
          e.contains("as it still notes the last snapshot for another attempt"), e)
    } finally never.countDown()
  }
}
