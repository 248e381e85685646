package com.crema

import scala.collection.mutable

import com.crema.wire.Wire.Event
import org.apache.spark.SparkContext

/** Where the time until the first training step went. One for each training run, on the driver. Every interval between
  * two laps is assigned to one part, so the parts add up to the whole.
  *
  * @param submitted when spark-submit began, for a program that does nothing but this run; else the run begins now
  * @param clock wall clock in ms, as Spark's own times are
  */
class Budget(submitted: Option[Long], clock: () => Long = () => System.currentTimeMillis()) {
  private val parts = mutable.LinkedHashMap(Budget.Parts.map(_ -> 0.0): _*)
  private var mark = submitted.getOrElse(clock())
  private var trains = false
  private var shown = false

  /** Assigns the time since the last lap to `part`, but for what is known to belong to other parts. */
  def lap(part: String, others: (String, Double)*): Unit = synchronized {
    val (now, known) = (clock(), others.map(_._2).sum)
    parts(part) += math.max(0.0, (now - mark) / 1e3 - known)
    for ((other, seconds) <- others) parts(other) += seconds
    mark = now
  }

  /** The time at which all executors were there: what the driver did before that cost nothing, as it had to wait
    * anyway.
    */
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

  /** Follows the coordinator's events; returns the line to print when the first step is done. */
  def follow(event: Event): Option[String] = synchronized {
    if (shown) None
    else if (event.hasJoined) {
      // The time between the start of the stage (or the worker before) and this worker: its task reports what it did
      // itself; the rest is Spark's scheduling.
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
  /** Spark: its start, waiting for executors, scheduling. Staging: counting rows, sorting them to workers, fetching
    * files.
    */
  private val Parts =
    Seq("Spark", "unpacking", "plan and checks", "staging", "rendezvous", "nets and data", "first test", "first step")

  def ofApplication(sc: SparkContext): Budget =
    new Budget(Some(sc.getConf.getLong("spark.app.submitTime", sc.startTime)))
}
