package org.apache.spark.crema

import org.apache.spark.SparkContext

object Bus {
  /** Listeners have seen everything that has happened. */
  def drained(sc: SparkContext): Unit = sc.listenerBus.waitUntilEmpty(10000)
}
