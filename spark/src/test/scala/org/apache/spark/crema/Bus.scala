package org.apache.spark.crema

import org.apache.spark.SparkContext
import org.apache.spark.scheduler.{SparkListener, SparkListenerJobStart}

object Bus {
  /** Waits until listeners have received all events. */
  def drained(sc: SparkContext): Unit = sc.listenerBus.waitUntilEmpty(10000)

  /** The number of Spark jobs that `work` starts. */
  def jobs(sc: SparkContext)(work: => Unit): Int = {
    val started = new java.util.concurrent.atomic.AtomicInteger
    val listener =
      new SparkListener { override def onJobStart(e: SparkListenerJobStart): Unit = started.incrementAndGet() }
    drained(sc)
    sc.addSparkListener(listener)
    try { work; drained(sc); started.get }
    finally sc.removeSparkListener(listener)
  }
}
