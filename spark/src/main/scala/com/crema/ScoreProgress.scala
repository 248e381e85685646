package com.crema

import scala.collection.mutable

import org.apache.spark.SparkContext
import org.apache.spark.scheduler.{SparkListener, SparkListenerExecutorMetricsUpdate, SparkListenerTaskEnd}
import org.apache.spark.util.LongAccumulator

/** Prints now and then how many rows are scored. Executors report their tasks' counts with their heartbeats (every 10
  * s) and at the end of a task.
  *
  * @param total of all tasks, where it is known
  */
class ScoreProgress(sc: SparkContext, console: Console, val total: Option[Long], interval: Double = 5)
    extends SparkListener with AutoCloseable {
  val scored: LongAccumulator = sc.longAccumulator("rows scored")
  private val ofTask = mutable.Map[Long, Long]()
  // When the first rows were reported, and how many: what came before was the start of executors, no rate.
  private var first: Option[(Double, Long)] = None
  private var (said, last) = (0.0, 0L)
  sc.addSparkListener(this)

  override def onExecutorMetricsUpdate(e: SparkListenerExecutorMetricsUpdate): Unit =
    for ((task, _, _, values) <- e.accumUpdates; a <- values if a.id == scored.id; n <- a.update) at(task, n)

  override def onTaskEnd(e: SparkListenerTaskEnd): Unit =
    if (e.taskInfo != null)
      for (a <- e.taskInfo.accumulables if a.id == scored.id; n <- a.update) at(e.taskInfo.taskId, n)

  private def at(task: Long, count: Any): Unit = synchronized {
    count match { case n: Number => ofTask(task) = n.longValue; case _ => }
    val (now, done) = (System.nanoTime() / 1e9, ofTask.values.sum)
    if (first.isEmpty && done > 0) { first = Some((now, done)); said = now; last = done }
    for ((begin, before) <- first if now - said >= interval && done > last && !total.contains(done)) {
      said = now
      last = done
      console.say(ScoreProgress.line(done, total, (done - before) / (now - begin)))
    }
  }

  override def close(): Unit = sc.removeSparkListener(this)
}

private[crema] object ScoreProgress {
  /** @param rate rows a second */
  def line(done: Long, total: Option[Long], rate: Double): String = {
    val left = total.fold("") { n =>
      val s = math.round((n - done) / rate)
      " of %d, %d:%02d left".formatLocal(java.util.Locale.ROOT, n, s / 60, s % 60)
    }
    "scoring: %d rows%s  %.0f rows/s".formatLocal(java.util.Locale.ROOT, done, left, rate)
  }
}
