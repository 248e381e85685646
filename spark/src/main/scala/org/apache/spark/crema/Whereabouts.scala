package org.apache.spark.crema

import scala.collection.concurrent.TrieMap

import com.crema.wire.Wire.Event
import org.apache.spark.scheduler.{SparkListener, SparkListenerJobStart, SparkListenerTaskEnd}
import org.apache.spark.{ExceptionFailure, SparkContext}

/** In which executor, and in which attempt of which task, each worker of a run is, as each says when it joins. Numbers
  * of Spark's partitions do not tell: when Spark repeats the stage, tasks of the attempt before go on, and those of the
  * later one may do the work of other workers.
  */
class Whereabouts(sc: SparkContext, group: String) extends SparkListener with AutoCloseable {
  private val workers = TrieMap[Int, Event.Joined]() // the latest process of each
  @volatile private var stage = -1 // the last one of the jobs of this group
  private val failures = TrieMap[Long, String]() // by task
  sc.addSparkListener(this)

  override def onJobStart(job: SparkListenerJobStart): Unit =
    if (Option(job.properties).exists(_.getProperty("spark.jobGroup.id") == group)) stage = job.stageIds.max

  override def onTaskEnd(task: SparkListenerTaskEnd): Unit = task.reason match {
    case e: ExceptionFailure if task.stageId == stage =>
      val info = task.taskInfo
      failures.put(info.taskId, s"a task in executor ${info.executorId} on host ${info.host} failed: ${e.description}")
    case _ =>
  }

  /** The last failure of a task whose worker has not joined, so that the coordinator knows nothing of it. */
  def unheard: Option[String] = {
    val known = workers.values.map(_.getTask).toSet
    failures.toSeq.filterNot(f => known(f._1)).sortBy(_._1).lastOption.map(_._2)
  }

  def joined(worker: Event.Joined): Unit = workers.put(worker.getWorker, worker)

  /** Ends this worker's task, which Spark does not count as a failure, and runs again. */
  def endTask(worker: Int): Unit =
    for (w <- workers.get(worker))
      try
        sc.killTaskAttempt(w.getTask, interruptThread = true,
          s"worker $worker counts as lost, and its process has not ended")
      catch { case _: IllegalStateException => /* the context is stopped, and the task with it */ }

  private val Worker = "worker (\\d+) \\(".r

  /** For an error message that begins with a worker: where it ran, in the terms of Spark and YARN. */
  def of(reason: String): Option[String] =
    for {
      found <- Worker.findPrefixMatchOf(reason)
      worker <- workers.get(found.group(1).toInt)
    } yield {
      val id = worker.getExecutor
      val summary = sc.statusStore.executorList(activeOnly = false).find(_.id == id)
      val host = summary.fold(worker.getHost)(_.hostPort.replaceFirst(":\\d+$", ""))
      def inLogs = summary.flatMap(_.executorLogs.values.flatMap("container_[0-9a-z_]+".r.findFirstIn(_)).headOption)
      val container = summary.flatMap(_.attributes.get("CONTAINER_ID")).orElse(inLogs)
      val log = summary.flatMap(_.executorLogs.get("stderr")).fold("")(url => s"; its log: $url")
      s"worker ${worker.getWorker} was in executor $id on host $host${container.fold("")(c => s", container $c")}$log"
    }

  override def close(): Unit = sc.removeSparkListener(this)
}
