package com.crema

import java.io.File
import java.security.SecureRandom
import java.util.concurrent.atomic.AtomicLong

import scala.util.control.NonFatal

import com.crema.wire.Wire.{Event, Job, RowFeed}
import com.google.protobuf.ByteString
import org.apache.spark.SparkContext
import org.apache.spark.crema.Placement
import org.apache.spark.rdd.RDD

/** What a training run needs; everything in it travels to the tasks. */
case class TrainSpec(
    job: Array[Byte], // wire.Job without worker, host, coordinator and paths
    train: Records, test: Option[Records], trainBatch: Int, testBatch: Int, ranks: Int, persistent: Boolean,
    weights: String, snapshot: String,
    model: String, // where the final model goes, any URI
    snapshotFolder: String, snapshotName: String,
    hadoop: HadoopSettings, localMode: Boolean) {
  /** Whether any worker can read any record; else only those that Spark sends its rows to. */
  def anyWorkerReads: Boolean = (Seq(train) ++ test).forall { case _: AtPath => true; case _ => false }
}

/** Databases on a Hadoop FileSystem. */
private[crema] case class Databases(train: Option[StoredFile], test: Option[StoredFile])

/** Training: a coordinator beside the driver, one ordinary Spark task with a worker process per executor. */
object TrainRun {
  /** Rows of those sources that are not databases, on their way to the workers. */
  private case class Fed(frames: RDD[(FrameKey, Array[Byte])], train: Option[RowFeed], test: Option[RowFeed])

  /** Runs to the end and returns the test events in time order. On failure it throws with the whole error chain and
    * leaves no process behind.
    *
    * @param workers with how many it begins
    * @param places how many there may be, as others come later
    * @param kept called before rows are shuffled, with the largest number of rows that one worker will keep; may refuse
    *   by throwing
    * @param published called for each snapshot whose files are published
    */
  def run(sc: SparkContext, spec: TrainSpec, workers: Int, places: Int, console: Console, budget: Budget,
      kept: Long => Unit = _ => (), published: Event.Snapshot => Unit = _ => ()): Seq[Event.Test] = {
    val (fed, release) = feed(sc, spec, places, console, kept)
    try {
      val databases = Databases(fileOf(sc, spec.train), fileOf(sc, spec.test.getOrElse(spec.train)))
      databases.train.foreach(f => checkEnough(f.records, f.uri, spec.ranks))
      budget.lap("staging")
      runFed(sc, spec, workers, places, console, fed, databases, budget, published)
    } finally release()
  }

  private def runFed(sc: SparkContext, spec: TrainSpec, workers: Int, places: Int, console: Console, fed: Fed,
      databases: Databases, budget: Budget, published: Event.Snapshot => Unit): Seq[Event.Test] = {
    if (!spec.localMode) Cluster.openKey(sc.getConf).foreach(console.say)
    val token = new Array[Byte](32)
    new SecureRandom().nextBytes(token)
    val home = if (Storage.isLocal(spec.model)) new File(Storage.localPath(spec.model)).getAbsolutePath else ""
    val base = announce(fed, Job.parseFrom(spec.job).toBuilder)
      .setJoinTimeout(joinTimeout(sc, spec)).setStepTimeout(Cluster.stepTimeout(sc.getConf))
      .setWorkers(places).setFirstWorkers(if (places > workers) workers else 0).setToken(
        ByteString.copyFrom(token)).setModelHome(home).setCoordinatorListens(true)
      .setEncrypted(Cluster.encrypts(sc.getConf)).setCompareAll(sc.getConf.getBoolean("spark.crema.compareAll", false))
      .setReplacement(sc.getConf.get("spark.crema.replacement", "continue"))
      .setReplacementTimeout(Cluster.replacementTimeout(sc.getConf, rowsSent = fed.train.orElse(fed.test).isDefined))
      .setRebalance(seconds(sc, "spark.crema.rebalance", 30))
      .setLeastWorkers(Cluster.leastWorkers(sc.getConf, workers, places)).build()
    val coordinator = new Child("coordinator", base.toBuilder.setHost(Cluster.driverAddress(sc)).build())
    try {
      val address = coordinator.next(StartSeconds).filter(_.hasListening).map(_.getListening.getAddress)
        .getOrElse(throw new CremaException("the coordinator did not start, for which it has " +
            s"${StartSeconds.toInt} s: it ${coordinator.ending(5)}${coordinator.tail()}"))
      val watch = new Watch(sc, coordinator, console, budget,
        s => Storage.inFolder(spec.snapshotFolder, new File(s.getState).getName), published)
      budget.lap("rendezvous")
      val job = base.toBuilder.setCoordinator(address).build().toByteArray
      val skipped = new AtomicLong // by the tasks that have ended
      watch.during(runTasks(sc, spec, job, workers, watch.group, fed.frames, databases)(skipped.addAndGet(_)))
      if (skipped.get > 0)
        console.say(s"$skipped record(s) could not be decoded and were passed over; " +
          "the workers' logs name the first ones")
      watch.tests
    } finally coordinator.close()
  }

  private val StartSeconds = 60.0 // of a coordinator

  private def seconds(sc: SparkContext, key: String, default: Double): Double =
    if (sc.getConf.contains(key)) sc.getConf.getTimeAsSeconds(key).toDouble else default

  /** spark.crema.joinTimeout, or a minute and the time that copying remote files to the executors takes at 5 MB/s. */
  private def joinTimeout(sc: SparkContext, spec: TrainSpec): Double = {
    val remote = Seq(spec.weights, spec.snapshot).filter(_.nonEmpty).distinct
    seconds(sc, "spark.crema.joinTimeout", 60 + remote.map(Storage.remoteBytes(_, sc.hadoopConfiguration)).sum / 5e6)
  }

  private def checkEnough(records: Long, what: String, ranks: Int): Unit =
    if (records < ranks)
      throw new Refusal("Insufficient training data. Please adjust hyperparameters or increase dataset. " +
        s"($records records in $what for $ranks ranks; every rank, clusterSize x devices, needs one)")

  private def fileOf(sc: SparkContext, records: Records): Option[StoredFile] = records match {
    case AtPath(location) => ScoreRun.stored(sc, location)
    case _ => None
  }

  /** Counts the rows of those sources that are not databases, and shuffles them to their workers. */
  private def feed(sc: SparkContext, spec: TrainSpec, workers: Int, console: Console,
      kept: Long => Unit): (Fed, () => Unit) = {
    def prepared(records: Records) = records match {
      case rows: RowSource[_] => Some(rows.read(spec.persistent) -> rows.description)
      case _: AtPath => None
    }
    val (train, test) = (prepared(spec.train), spec.test.flatMap(prepared))
    val release = () => (train ++ test).foreach(_._1.release())
    try {
      for ((rows, what) <- train) {
        checkEnough(rows.count, what, spec.ranks)
        console.say(s"${rows.count} training records in $what")
      }
      for ((rows, what) <- test if rows.count == 0)
        throw new Refusal(
          s"Insufficient validation data. Please adjust hyperparameters or increase dataset. ($what is empty)")
      val testSharding = test.flatMap { case (rows, _) => Sharding.ofTests(rows.count, spec.testBatch, workers) }
      val mostRanks = (spec.ranks + workers - 1) / workers
      val keptTests = test.fold(0L)(_._1.count / testSharding.fold(1)(_.workers))
      kept(train.fold(0L)(_._1.count * mostRanks / spec.ranks) + keptTests)
      val frames = test.map(_._1.frames(testSharding, workers, test = true)).toSeq ++
        train.map { case (rows, _) =>
          rows.frames(Some(Sharding(rows.count, spec.trainBatch, spec.ranks, workers)), workers, test = false)
        }
      def announced(rows: PreparedRows, what: String) = RowFeed.newBuilder.setRecords(rows.count).setDescription(what)
      val trainFeed =
        train.map { case (r, what) => announced(r, what).setSharded(true).setBatch(spec.trainBatch).build() }
      val testFeed = test.map { case (r, what) =>
        announced(r, what).setSharded(testSharding.isDefined).setBatch(spec.testBatch).build()
      }
      val shuffled =
        if (frames.isEmpty) sc.parallelize(Seq.empty[(FrameKey, Array[Byte])], workers)
        else FrameShuffle(sc, frames, workers)
      (Fed(shuffled, trainFeed, testFeed), release)
    } catch { case NonFatal(e) => release(); throw e }
  }

  private def announce(fed: Fed, job: Job.Builder): Job.Builder = {
    fed.train.foreach(job.setTrainRows)
    fed.test.foreach(job.setTestRows)
    job
  }

  private def runTasks(sc: SparkContext, spec: TrainSpec, job: Array[Byte], workers: Int, group: String,
      frames: RDD[(FrameKey, Array[Byte])], databases: Databases)(skipped: Long => Unit): Unit = {
    sc.setJobGroup(group, s"Crema: training on $workers worker(s)", interruptOnCancel = true)
    try {
      val tasks = Placement.spread(sc, frames).mapPartitionsWithIndex { (worker, rows) =>
        val rowsOf = rows.next()
        Iterator(new TrainTask(spec, job, worker, w => rowsOf(w).map(_._2), databases).run())
      }
      sc.runJob(tasks, (records: Iterator[Long]) => records.sum, (_: Int, records: Long) => skipped(records))
    } finally sc.clearJobGroup()
  }
}
