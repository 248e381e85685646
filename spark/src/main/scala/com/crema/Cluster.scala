package com.crema

import java.net.{InetAddress, UnknownHostException}

import org.apache.spark.{SparkContext, SparkEnv}

/** What Spark gives: how many workers can run at once, and numeric addresses. */
object Cluster {
  private def local(sc: SparkContext): Boolean = sc.master.startsWith("local") && !sc.master.startsWith("local-cluster")

  /** Cores a task may use: spark.task.cpus. */
  def threadsPerTask(sc: SparkContext): Int = sc.getConf.getInt("spark.task.cpus", 1)

  private def executors(sc: SparkContext): Int = sc.getExecutorMemoryStatus.size - 1 // the driver is in the list

  /** Workers for `ranks` ranks: one per executor, at most as many as ranks. Executors register one by one: waits until all wanted are there,
    * or until no new one has come for two seconds, at most the time Spark itself would wait.
    */
  def workers(sc: SparkContext, ranks: Int): Int =
    if (local(sc)) math.min(ranks, math.max(1, sc.defaultParallelism / threadsPerTask(sc)))
    else {
      val patience = sc.getConf.getTimeAsMs("spark.scheduler.maxRegisteredResourcesWaitingTime", "30s")
      val (start, quiet) = (System.currentTimeMillis(), 2000)
      var (seen, since) = (0, start)
      def now = System.currentTimeMillis()
      while (seen < ranks && now - start < patience && (seen == 0 || now - since < quiet)) {
        val have = executors(sc)
        if (have > seen) { seen = have; since = now }
        Thread.sleep(50)
      }
      if (seen == 0)
        throw new IllegalStateException(s"no executor has registered within ${patience / 1000} s; are there free cores and memory in the cluster?")
      math.min(ranks, seen)
    }

  /** This driver's address as the executors see it. */
  def driverAddress(sc: SparkContext): String =
    if (local(sc)) "127.0.0.1" else InetAddress.getByName(sc.getConf.get("spark.driver.host")).getHostAddress

  /** In a task: this executor's address as the others see it. */
  def executorAddress(localMode: Boolean): String =
    if (localMode) "127.0.0.1" else InetAddress.getByName(SparkEnv.get.blockManager.blockManagerId.host).getHostAddress

  /** This machine's address as others see it, for a JVM that may know of no Spark: -Dcrema.host, else Spark's, else the machine's own. */
  def ownAddress: String = sys.props.getOrElse("crema.host",
    if (SparkEnv.get != null) executorAddress(localMode = false)
    else try InetAddress.getLocalHost.getHostAddress catch { case _: UnknownHostException => "127.0.0.1" })

  def isLocal(sc: SparkContext): Boolean = local(sc)
}
