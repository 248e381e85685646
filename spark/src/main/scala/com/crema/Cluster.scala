package com.crema

import java.net.{InetAddress, UnknownHostException}

import org.apache.spark.{SparkConf, SparkContext, SparkEnv}

/** What Spark knows of the cluster: how many workers can run at once, and numeric addresses. */
object Cluster {
  private val log = org.slf4j.LoggerFactory.getLogger(getClass)

  private def local(sc: SparkContext): Boolean = sc.master.startsWith("local") && !sc.master.startsWith("local-cluster")

  /** @throws IllegalArgumentException when this jar is not for this Spark */
  def checkVersion(): Unit = Option(JarCheck.complaint()).foreach(text => throw new WrongArgument(text))

  /** Cores a task may use: spark.task.cpus. */
  def threadsPerTask(sc: SparkContext): Int = sc.getConf.getInt("spark.task.cpus", 1)

  private def executors(sc: SparkContext): Int = sc.getExecutorMemoryStatus.size - 1 // the driver is in the list

  /** Whether the executables seal what they say to each other: spark.crema.encrypt, or else whether Spark encrypts what
    * its own processes say.
    */
  def encrypts(c: SparkConf): Boolean =
    c.getBoolean("spark.crema.encrypt", encryptionOfSpark.exists(c.getBoolean(_, false)))
  private val encryptionOfTasks =
    Seq("spark.network.crypto.enabled", "spark.authenticate.enableSaslEncryption", "spark.ssl.rpc.enabled")
  private val encryptionOfSpark = encryptionOfTasks :+ "spark.ssl.enabled"

  /** What to say where the executables seal what they say, and Spark sends the key to the executors, in their tasks, as
    * it is. (spark.ssl.enabled alone is about its web pages.)
    */
  def openKey(c: SparkConf): Option[String] =
    if (!encrypts(c) || encryptionOfTasks.exists(c.getBoolean(_, false))) None
    else
      Some(
        "warning: what the workers say is encrypted with a key that Spark sends to the executors in the clear; set " +
          "spark.authenticate=true and spark.network.crypto.enabled=true, so that nobody reads it on the way")

  /** The same of the Spark that this process is a part of; false outside of one. */
  def encryptsHere: Boolean = Option(SparkEnv.get).exists(e => encrypts(e.conf))

  /** The number of executors that these settings ask for, where they give one. */
  private def asked(c: SparkConf): Option[Int] =
    c.getOption(if (isDynamic(c)) "spark.dynamicAllocation.minExecutors" else "spark.executor.instances").map(_.toInt)
  private def isDynamic(c: SparkConf) = c.getBoolean("spark.dynamicAllocation.enabled", false)

  /** The number of executors this application gets, where it is known: YARN and Kubernetes start two when none is set.
    */
  private def requested(sc: SparkContext): Option[Int] = {
    val LocalCluster = """local-cluster\[\s*(\d+)\s*,.*""".r
    if (isDynamic(sc.getConf)) asked(sc.getConf)
    else sc.master match {
      case LocalCluster(n) => Some(n.toInt)
      case m if m.startsWith("yarn") || m.startsWith("k8s") => asked(sc.getConf).orElse(Some(2))
      case _ => None
    }
  }

  /** CaffeOnSpark's clusterSize, which the model depends on: on YARN the number of executors asked for, or 1 where none
    * is set (though Spark then starts two); with dynamic allocation the minimum; else the flag.
    */
  def clusterSize(c: SparkConf, flag: Int): Int =
    if (isDynamic(c)) asked(c).getOrElse(flag)
    else if (c.get("spark.master", "").startsWith("yarn")) asked(c).getOrElse(1)
    else flag

  private def most(c: SparkConf): Int = c.getInt("spark.dynamicAllocation.maxExecutors", Int.MaxValue)
  private def fewest(c: SparkConf): Int = c.getInt("spark.dynamicAllocation.minExecutors", 0)

  /** Whether dynamic allocation may bring executors while a run goes on. */
  def grows(c: SparkConf): Boolean = isDynamic(c) && most(c) != fewest(c)

  /** The largest number of workers that a run with `workers` ones may grow to, whose records any worker can read. */
  def places(sc: SparkContext, ranks: Int, workers: Int): Int =
    if (local(sc) || !grows(sc.getConf)) workers
    else math.max(workers, math.min(ranks, most(sc.getConf)))

  /** Why executors that dynamic allocation brings later could not join a run of `ranks` ranks, where it may bring some.
    */
  def whyNoGrowth(c: SparkConf, ranks: Int): Option[String] = {
    val LocalCluster = """local-cluster\[\s*\d+\s*,\s*(\d+)\s*,.*""".r
    val cores = c.getOption("spark.executor.cores").map(_.toInt).orElse(c.get("spark.master", "") match {
      case LocalCluster(n) => Some(n.toInt)
      case m if m.startsWith("yarn") || m.startsWith("k8s") => Some(1)
      case _ => None
    })
    val cpus = c.getInt("spark.task.cpus", 1)
    if (!grows(c)) None
    else if (fewest(c) < 1) Some("a run begins with minExecutors, which is 0 or not set")
    else if (ranks <= fewest(c))
      Some(s"the $ranks rank(s), minExecutors x devices, give more than ${fewest(c)} executor(s) nothing to do; with " +
        "-devices 2 each would begin with two ranks and leave one to an executor that comes")
    else if (!cores.contains(cpus))
      Some(
        "an executor that comes must have room for one worker: set spark.executor.cores and spark.task.cpus to one " +
          s"number, not ${cores.fold("none")(_.toString)} and $cpus")
    else None
  }

  /** spark.crema.leastWorkers: how many workers are enough, for a run that begins with `workers` ones and may grow to
    * `places`.
    *
    * @throws WrongArgument for what is no number, negative, or more than there can be
    */
  def leastWorkers(c: SparkConf, workers: Int, places: Int): Int = {
    val key = "spark.crema.leastWorkers"
    val text = c.get(key, "0")
    val least = scala.util.Try(text.trim.toInt).toOption.filter(_ >= 0)
      .getOrElse(throw new WrongArgument(s"$key=$text is not a number of workers; give 0 to $workers"))
    val more =
      if (places > workers) s"raise spark.dynamicAllocation.minExecutors to $least"
      else s"ask for at least $least executors and ranks"
    if (least > workers)
      throw new WrongArgument(s"$key=$least, but the run begins with $workers worker(s), and fewer than are enough " +
        s"would end it at once; $more, or set $key to at most $workers")
    least
  }

  /** spark.crema.stepTimeout: seconds of silence after which a process is given up. */
  def stepTimeout(c: SparkConf): Double = c.getTimeAsSeconds("spark.crema.stepTimeout", "60s").toDouble

  /** Seconds for which another worker is waited for: spark.crema.replacementTimeout, or a minute. Where a lost one had
    * rows of its own, so that nothing goes on without it, at least as long as Spark takes to see that a machine is gone
    * (spark.network.timeout, checked every minute) and to run its task again.
    */
  def replacementTimeout(c: SparkConf, rowsSent: Boolean): Double = {
    val usual = if (rowsSent) c.getTimeAsSeconds("spark.network.timeout", "120s") + 120 else 60L
    c.getTimeAsSeconds("spark.crema.replacementTimeout", s"${usual}s").toDouble
  }

  /** Workers for `ranks` ranks: one per executor, at most as many as ranks. Executors register one by one, so this
    * waits: for the number asked for, at most as long as Spark itself would; where no number is known, until none has
    * registered for three seconds.
    *
    * @throws IllegalStateException when fewer register than were asked for
    */
  def workers(sc: SparkContext, ranks: Int): Int =
    if (local(sc)) math.min(ranks, math.max(1, sc.defaultParallelism / threadsPerTask(sc)))
    else {
      val patience = sc.getConf.getTimeAsMs("spark.scheduler.maxRegisteredResourcesWaitingTime", "30s")
      val wanted = requested(sc).fold(ranks)(math.min(_, ranks))
      def now = System.nanoTime() / 1000000 // the wall clock may jump
      val (start, quiet) = (now, if (requested(sc).isDefined) patience else 3000L)
      var (seen, since) = (executors(sc), start)
      while (seen < wanted && now - start < patience && (seen == 0 || now - since < quiet)) {
        Thread.sleep(50)
        val have = executors(sc)
        if (have > seen) { seen = have; since = now }
      }
      if (seen == 0)
        throw new IllegalStateException(
          s"no executor has registered within ${patience / 1000} s; are there free cores and memory in the cluster?")
      if (requested(sc).isDefined && seen < wanted) {
        log.error(
          s"Requested # of executors: $wanted actual # of executors:$seen. Please try to set --conf " +
            "spark.scheduler.maxRegisteredResourcesWaitingTime with a large value (default 30s)")
        throw new IllegalStateException(
          s"actual number of executors is not as expected ($seen of $wanted after ${patience / 1000} s): free " +
            "resources in the cluster, ask for fewer, or set " +
            "--conf spark.scheduler.maxRegisteredResourcesWaitingTime to a larger value")
      }
      math.min(ranks, if (grows(sc.getConf)) math.min(wanted, seen) else seen) // more may be idle, and taken away again
    }

  /** This driver's address as the executors see it. */
  def driverAddress(sc: SparkContext): String =
    if (local(sc)) "127.0.0.1" else InetAddress.getByName(sc.getConf.get("spark.driver.host")).getHostAddress

  /** In a task: this executor's address as the others see it. */
  def executorAddress(localMode: Boolean): String =
    if (localMode) "127.0.0.1" else InetAddress.getByName(SparkEnv.get.blockManager.blockManagerId.host).getHostAddress

  /** This machine's address as others see it, also in a JVM without Spark: -Dcrema.host, else Spark's, else the
    * machine's own.
    */
  def ownAddress: String = sys.props.getOrElse("crema.host", addressOfSparkOrMachine)

  private def addressOfSparkOrMachine: String =
    if (SparkEnv.get != null) executorAddress(localMode = false)
    else {
      try InetAddress.getLocalHost.getHostAddress
      catch { case _: UnknownHostException => "127.0.0.1" }
    }

  def isLocal(sc: SparkContext): Boolean = local(sc)
}
