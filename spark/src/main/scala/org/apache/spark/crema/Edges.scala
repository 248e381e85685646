package org.apache.spark.crema

import org.apache.hadoop.conf.Configuration
import org.apache.spark.SparkConf
import org.apache.spark.deploy.SparkHadoopUtil
import org.apache.spark.util.ShutdownHookManager

/** The phases of an application in which there is no SparkContext: before it is made, and when the JVM is about to end.
  */
object Edges {
  /** Hadoop's settings as the SparkContext will have them. */
  def hadoop(settings: SparkConf): Configuration = SparkHadoopUtil.get.newConfiguration(settings)

  /** Whether the JVM is being ended, by a signal or by Spark: failures that occur then are only consequences of that.
    */
  def ending: Boolean = ShutdownHookManager.inShutdown()

  /** As `ending`; a Ctrl-C ends the children of this JVM as well, and may reach them first. */
  def endingSoon: Boolean = ending || {
    try Thread.sleep(300)
    catch { case _: InterruptedException => Thread.currentThread.interrupt() } // a task that is cancelled
    ending
  }

  /** Where this JVM is being ended: waits for that, 10 s at most, so that nobody logs what fails as a consequence.
    * @return whether it is being ended
    */
  def endWithJvm(): Boolean = endingSoon && {
    val deadline = System.nanoTime + 10000000000L
    while (System.nanoTime < deadline)
      try Thread.sleep(100)
      catch { case _: InterruptedException => /* Spark ends its tasks before itself */ }
    true
  }
}
