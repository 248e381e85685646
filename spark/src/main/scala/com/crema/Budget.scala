package com.crema

import scala.collection.mutable

import com.crema.wire.Wire.Event
import org.apache.spark.SparkContext

/** What the time until the first step went to. One for each training run, on the driver: every lap of one clock belongs
  * to one part, so the parts add up to the whole.
  *
  * @param submitted when spark-submit began, for a program that does nothing but this run; else the run begins now
  * @param clock wall clock, in ms as everywhere here: Spark gives its times so
  */
class Budget(submitted: Option[Long], clock: () => Long = () => System.currentTimeMillis()) {
  private val parts = mutable.LinkedHashMap(Budget.Parts.map(_ -> 0.0): _*)
  private var mark = submitted.getOrElse(clock())
  private var trains = false
  private var shown = false

  /** What passed since the last lap goes to `part`, except what is known to belong to others. */
  def lap(part: String, others: (String, Double)*): Unit = synchronized {
    val (now, known) = (clock(), others.map(_._2).sum)
    parts(part) += math.max(0.0, (now - mark) / 1e3 - known)
    for ((other, seconds) <- others) parts(other) += seconds
    mark = now
  }

  /** All executors were there at this time: what was done before was done in the shadow of Spark's start. */
  def executorsSince(time: Long): Unit = synchronized {
    lap("Spark")
    val ours = math.max(0.0, (clock() - time) / 1e3)
    val (sum, spark) = (parts.values.sum, parts("Spark"))
    if (sum - spark > ours) {
      val share = ours / (sum - spark)
      for ((part, seconds) <- parts.toSeq if part != "Spark") parts(part) = seconds * share
      parts("Spark") = sum - ours
    }
  }

  /** Follows the coordinator; the line for people when the first step is done. */
  def follow(event: Event): Option[String] = synchronized {
    if (shown) None
    else if (event.hasJoined) {
      // Between the start of the stage, or the worker before, and this one: what its task did is known, the rest is
      // Spark's scheduling.
      val (unpacking, task) = (event.getJoined.getUnpackSeconds, event.getJoined.getTaskSeconds)
      val passed = (clock() - mark) / 1e3
      val share = if (task > passed) passed / task else 1.0 // tasks run at the same time
      lap("Spark", "unpacking" -> unpacking * share, "staging" -> (task - unpacking) * share)
      None
    } else if (event.hasStarted) { lap("nets and data"); trains = true; None }
    else if (event.hasTest) { lap("first test"); None }
    else if (event.hasProgress && trains) { lap("first step"); shown = true; Some(line) }
    else None
  }

  private def line: String = {
    val spent = parts.toSeq.filter(_._2 >= 0.005).map { case (part, seconds) => f"$part $seconds%.2f" }
    val since = if (submitted.isDefined) "submit" else "the call"
    f"first step done ${parts.values.sum}%.2f s after $since: ${spent.mkString(", ")} s"
  }
}

object Budget {
  /** Spark: its start, executors that come, scheduling. Staging: rows counted and sorted to workers, files fetched. */
  private val Parts =
    Seq("Spark", "unpacking", "plan and checks", "staging", "rendezvous", "nets and data", "first test", "first step")

  def ofApplication(sc: SparkContext): Budget =
    new Budget(Some(sc.getConf.getLong("spark.app.submitTime", sc.startTime)))
}
