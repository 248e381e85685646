package org.apache.spark.crema

import org.apache.hadoop.conf.Configuration
import org.apache.spark.SparkConf
import org.apache.spark.deploy.SparkHadoopUtil
import org.apache.spark.util.ShutdownHookManager

/** An application before it has a SparkContext, and when it is about to end. */
object Edges {
  /** Hadoop's settings as the SparkContext will have them. */
  def hadoop(settings: SparkConf): Configuration = SparkHadoopUtil.get.newConfiguration(settings)

  /** The JVM is being ended, by a signal or by Spark: failures that come now are no stories of their own. */
  def ending: Boolean = ShutdownHookManager.inShutdown()
}
