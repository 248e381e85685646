package com.yahoo.ml.caffe.tools

import com.crema.CremaException
import org.apache.spark.SparkContext
import org.apache.spark.util.AccumulatorV2

import scala.collection.mutable

/** What a tool passed over: numbers (of lines, or of captions), each once however often a task is repeated, and the
  * stories of the lowest ones.
  */
class Skipped extends AccumulatorV2[(Long, String), Skipped] {
  private val numbers = mutable.Set[Long]()
  private val stories = mutable.TreeMap[Long, String]()

  override def isZero: Boolean = numbers.isEmpty
  override def copy(): Skipped = { val c = new Skipped; c.merge(this); c }
  override def reset(): Unit = { numbers.clear(); stories.clear() }
  override def add(v: (Long, String)): Unit = if (numbers.add(v._1)) tell(v)
  override def merge(other: AccumulatorV2[(Long, String), Skipped]): Unit = {
    numbers ++= other.value.numbers
    other.value.stories.foreach(tell)
  }
  override def value: Skipped = this
  override def toString: String = s"$count skipped" // Spark's own prints the value

  private def tell(v: (Long, String)): Unit = {
    stories += v
    if (stories.size > Skipped.Told) stories -= stories.lastKey
  }

  def count: Long = numbers.size.toLong

  /** The stories of the lowest numbers, in their order. */
  def told: Seq[String] = stories.values.toSeq

  /** Says on the driver what was passed over. @throws CremaException when that is everything */
  def report(what: String, source: String, all: => Long): Unit = if (count > 0) {
    told.foreach(story => Tool.say(s"skipped: $story"))
    if (count > told.size) Tool.say(s"skipped: ${count - told.size} more; the executors' logs name them")
    if (count >= all)
      throw new CremaException(s"none of the $all $what of $source could be used; the first reason: ${told.head}")
    Tool.say(s"$count $what of $source skipped, the others written")
  }
}

object Skipped {
  val Told = 20

  def apply(sc: SparkContext, name: String): Skipped = {
    val made = new Skipped
    sc.register(made, name)
    made
  }
}
