package org.apache.spark.crema

import java.util.concurrent.atomic.AtomicLong

import com.crema.wire.Wire.Event
import com.yahoo.ml.caffe.TestRecords
import org.apache.spark.scheduler.{SparkListener, SparkListenerTaskEnd}
import org.apache.spark.{SparkContext, SparkException, TaskContext, TaskKilled}
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

class WhereaboutsSuite extends AnyFunSuite with BeforeAndAfterAll {
  private lazy val sc: SparkContext = TestRecords.spark("local[1]").sparkContext
  override def afterAll(): Unit = sc.stop()
  private def worker(task: Long) = Event.Joined.newBuilder.setWorker(3).setTask(task).setExecutor("driver").build()

  /** Runs one task in the group. */
  private def run(group: String)(body: () => Unit): Unit = {
    sc.setJobGroup(group, "")
    try sc.parallelize(Seq(1), 1).foreach(_ => body())
    catch { case _: SparkException => }
    finally { sc.clearJobGroup(); Bus.drained(sc) }
  }

  test("a failure of a task is told as long as its worker has not joined") {
    val places = new Whereabouts(sc, "mine")
    run("another")(() => throw new IllegalStateException("elsewhere"))
    assert(places.unheard.isEmpty)
    WhereaboutsSuite.task.set(-1)
    run("mine") { () =>
      WhereaboutsSuite.task.set(TaskContext.get().taskAttemptId())
      throw new IllegalStateException("/tmp is full")
    }
    assert(places.unheard.exists(_.matches("a task in executor driver on host .* failed: /tmp is full")),
      places.unheard)
    places.joined(worker(WhereaboutsSuite.task.get))
    assert(places.unheard.isEmpty)
    assert(
      places.of("worker 3 (rank 3, host a) failed").exists(_.startsWith("worker 3 was in executor driver on host ")))
    assert(places.of("worker 2 (rank 2, host a) failed").isEmpty)
    places.close()
  }

  test("a worker's task is ended, by the number that its worker has said") {
    val places = new Whereabouts(sc, "mine")
    @volatile var killed = 0
    sc.addSparkListener(new SparkListener {
      override def onTaskEnd(e: SparkListenerTaskEnd): Unit = if (e.reason.isInstanceOf[TaskKilled]) killed += 1
    })
    WhereaboutsSuite.task.set(-1)
    val ending = new Thread(() => {
      while (WhereaboutsSuite.task.get < 0) Thread.sleep(20)
      places.joined(worker(WhereaboutsSuite.task.get))
      places.endTask(3)
    })
    ending.start()
    run("mine") { () =>
      if (WhereaboutsSuite.task.compareAndSet(-1, TaskContext.get().taskAttemptId())) Thread.sleep(60000)
    }
    ending.join(10000)
    assert(killed == 1)
    places.close()
  }
}

object WhereaboutsSuite { val task = new AtomicLong }
