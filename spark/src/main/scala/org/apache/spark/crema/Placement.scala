package org.apache.spark.crema

import scala.reflect.ClassTag

import org.apache.spark.rdd.RDD
import org.apache.spark.scheduler.ExecutorCacheTaskLocation
import org.apache.spark.{Partition, SparkContext, TaskContext}

/** Spreads the workers of a run over the executors. Spark prefers to run a task where its shuffled rows are, which may
  * put all of them on one executor.
  */
object Placement {
  /** One element for each partition of the RDD, which computes any of them when the first row is asked for. Code above
    * it can start before a shuffle is fetched and sorted, may ask from a thread of its own, which must end before the
    * task does, and may do the work of another partition than its own. Partition p prefers the p-th executor,
    * and those beyond take any that comes.
    */
  def spread[T: ClassTag](sc: SparkContext, rdd: RDD[T]): RDD[Int => Iterator[T]] = {
    val executors = sc.env.blockManager.master.getMemoryStatus.keys.filterNot(_.isDriver).toSeq.sortBy(_.executorId)
    new Spread(rdd, executors.map(e => ExecutorCacheTaskLocation(e.host, e.executorId).toString))
  }

  /** The time at which the newest executor registered, in ms of the wall clock. */
  def lastExecutor(sc: SparkContext): Long = {
    val executors = sc.statusStore.executorList(activeOnly = true).filterNot(_.id == SparkContext.DRIVER_IDENTIFIER)
    val times = executors.map(_.addTime.getTime)
    if (times.isEmpty) sc.startTime else times.max
  }

  private class Part(override val index: Int, val all: Array[Partition]) extends Partition

  private class Spread[T: ClassTag](parent: RDD[T], places: Seq[String]) extends RDD[Int => Iterator[T]](parent) {
    override protected def getPartitions: Array[Partition] =
      parent.partitions.indices.map(i => new Part(i, parent.partitions): Partition).toArray
    override def compute(split: Partition, context: TaskContext): Iterator[Int => Iterator[T]] = {
      val all = split.asInstanceOf[Part].all
      Iterator(i =>
        new Iterator[T] {
          private lazy val rows = firstParent[T].iterator(all(i), context)
          override def hasNext: Boolean = rows.hasNext
          override def next(): T = rows.next()
        })
    }
    override protected def getPreferredLocations(split: Partition): Seq[String] =
      places.lift(split.index).toSeq
  }
}
