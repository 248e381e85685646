package org.apache.spark.crema

import java.util.concurrent.atomic.{AtomicInteger, AtomicLong}

import org.apache.spark.shuffle.sort.SortShuffleManager
import org.apache.spark.shuffle.{ShuffleHandle, ShuffleReadMetricsReporter, ShuffleReader}
import org.apache.spark.{SparkConf, TaskContext}

/** Spark's own shuffle with readers that start late: to those who wait for the first row it looks like a long sort. */
class SlowShuffle(conf: SparkConf) extends SortShuffleManager(conf) {
  override def getReader[K, C](handle: ShuffleHandle, startMap: Int, endMap: Int, start: Int, end: Int,
      context: TaskContext, metrics: ShuffleReadMetricsReporter): ShuffleReader[K, C] = {
    SlowShuffle.readers.incrementAndGet()
    Thread.sleep(SlowShuffle.delay.get)
    super.getReader[K, C](handle, startMap, endMap, start, end, context, metrics)
  }
}

object SlowShuffle {
  val readers = new AtomicInteger
  val delay = new AtomicLong // ms
}
