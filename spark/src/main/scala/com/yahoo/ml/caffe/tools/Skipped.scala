package com.yahoo.ml.caffe.tools

import com.crema.CremaException
import org.apache.spark.SparkContext
import org.apache.spark.util.AccumulatorV2

import scala.collection.mutable

/** What a tool skipped: numbers (of lines, or of captions), each once however often a task is repeated, and the reasons
  * of the lowest ones.
  */
class Skipped extends AccumulatorV2[(Long, String), Skipped] {
  private val numbers = mutable.Set[Long]()
  private val reasons = mutable.TreeMap[Long, String]()

  override def isZero: Boolean = numbers.isEmpty
  override def copy(): Skipped = { val c = new Skipped; c.merge(this); c }
  override def reset(): Unit = { numbers.clear(); reasons.clear() }
  override def add(v: (Long, String)): Unit = if (numbers.add(v._1)) keep(v)
  override def merge(other: AccumulatorV2[(Long, String), Skipped]): Unit = {
    numbers ++= other.value.numbers
    other.value.reasons.foreach(keep)
  }
  override def value: Skipped = this
  override def toString: String = s"$count skipped" // Spark's own prints the value

  private def keep(v: (Long, String)): Unit = {
    reasons += v
    if (reasons.size > Skipped.Reported) reasons -= reasons.lastKey
  }

  def count: Long = numbers.size.toLong

  /** The reasons of the lowest numbers, in their order. */
  def reported: Seq[String] = reasons.values.toSeq

  /** Prints on the driver what was skipped. @throws CremaException when that is everything */
  def report(what: String, source: String, all: => Long): Unit = if (count > 0) {
    reported.foreach(reason => Tool.say(s"skipped: $reason"))
    if (count > reported.size) Tool.say(s"skipped: ${count - reported.size} more; the executors' logs name them")
    if (count >= all)
      throw new CremaException(s"none of the $all $what of $source could be used; the first reason: ${reported.head}")
    Tool.say(s"$count $what of $source skipped, the others written")
  }
}

object Skipped {
  val Reported = 20

  def apply(sc: SparkContext, name: String): Skipped = {
    val made = new Skipped
    sc.register(made, name)
    made
  }
}
