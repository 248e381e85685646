package org.apache.spark.crema

import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.SparkContext
import org.apache.spark.scheduler.{SparkListener, SparkListenerJobStart, SparkListenerTaskStart}

/** In which executor each worker of a run is. Worker w is task w of the last stage of the jobs of this group. */
class Whereabouts(sc: SparkContext, group: String) extends SparkListener with AutoCloseable {
  @volatile private var stage = -1
  private val executors = new ConcurrentHashMap[Int, (String, String)]() // id, host
  sc.addSparkListener(this)

  override def onJobStart(job: SparkListenerJobStart): Unit =
    if (Option(job.properties).exists(_.getProperty("spark.jobGroup.id") == group)) stage = job.stageIds.max

  override def onTaskStart(task: SparkListenerTaskStart): Unit =
    if (task.stageId == stage) executors.put(task.taskInfo.index, (task.taskInfo.executorId, task.taskInfo.host))

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
