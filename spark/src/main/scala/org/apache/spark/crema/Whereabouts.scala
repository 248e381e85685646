package org.apache.spark.crema

import java.util.concurrent.ConcurrentHashMap

import scala.collection.concurrent.TrieMap

import org.apache.spark.SparkContext
import org.apache.spark.scheduler.{SparkListener, SparkListenerJobStart, SparkListenerTaskStart}

/** In which executor, and in which attempt of which task, each worker of a run is. Worker w is task w of the last stage
  * of the jobs of this group, until Spark repeats that stage.
  */
class Whereabouts(sc: SparkContext, group: String) extends SparkListener with AutoCloseable {
  @volatile private var stage = -1
  private val executors = new ConcurrentHashMap[Int, (String, String)]() // id, host
  private val tasks = TrieMap[Int, Long]() // ids of the latest attempts
  sc.addSparkListener(this)

  override def onJobStart(job: SparkListenerJobStart): Unit =
    if (Option(job.properties).exists(_.getProperty("spark.jobGroup.id") == group)) stage = job.stageIds.max

  override def onTaskStart(task: SparkListenerTaskStart): Unit =
    if (task.stageId == stage) {
      executors.put(task.taskInfo.index, (task.taskInfo.executorId, task.taskInfo.host))
      if (task.stageAttemptId == 0) tasks.put(task.taskInfo.index, task.taskInfo.taskId)
      else tasks.clear() // tasks of both attempts go on, and any of the later ones may do the work of another worker
    }

  /** Ends this worker's task, which Spark does not count as a failure, and runs again. */
  def endTask(worker: Int): Unit =
    for (id <- tasks.get(worker))
      try
        sc.killTaskAttempt(id, interruptThread = true, s"worker $worker counts as lost, and its process has not ended")
      catch { case _: IllegalStateException => /* the context is stopped, and the task with it */ }

  private val Worker = "worker (\\d+) \\(".r

  /** For an error message that begins with a worker: where it ran, in the terms of Spark and YARN. */
  def of(reason: String): Option[String] =
    for {
      found <- Worker.findPrefixMatchOf(reason)
      w = found.group(1).toInt
      (id, host) <- Option(executors.get(w))
    } yield {
      val summary = sc.statusStore.executorList(activeOnly = false).find(_.id == id)
      def inLogs = summary.flatMap(_.executorLogs.values.flatMap("container_[0-9a-z_]+".r.findFirstIn(_)).headOption)
      val container = summary.flatMap(_.attributes.get("CONTAINER_ID")).orElse(inLogs)
      val log = summary.flatMap(_.executorLogs.get("stderr")).fold("")(url => s"; its log: $url")
      s"worker $w was in executor $id on host $host${container.fold("")(c => s", container $c")}$log"
    }

  override def close(): Unit = sc.removeSparkListener(this)
}
