package com.crema

import java.io.File
import java.nio.file.Files
import java.security.SecureRandom
import java.util.concurrent.{Executors, TimeUnit}
import java.util.concurrent.atomic.AtomicLong

import scala.annotation.tailrec
import scala.util.control.NonFatal

import com.crema.wire.Wire.{Event, Input, Job, RowFeed}
import com.google.protobuf.ByteString
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileUtil
import org.apache.spark.{SparkContext, SparkEnv, TaskContext}
import org.apache.spark.crema.Placement
import org.apache.spark.rdd.RDD
import org.slf4j.LoggerFactory

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

/** Training: a coordinator beside the driver, one ordinary Spark task with a worker process per executor. */
object TrainRun {
  private val log = LoggerFactory.getLogger(getClass)

  /** Rows of those sources that are not databases, on their way to the workers. */
  private case class Fed(frames: RDD[(FrameKey, Array[Byte])], train: Option[RowFeed], test: Option[RowFeed])

  /** Databases on a Hadoop FileSystem. */
  private case class Databases(train: Option[StoredFile], test: Option[StoredFile])

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
    val token = new Array[Byte](32)
    new SecureRandom().nextBytes(token)
    val home = if (Storage.isLocal(spec.model)) new File(Storage.localPath(spec.model)).getAbsolutePath else ""
    val base = announce(fed, Job.parseFrom(spec.job).toBuilder)
      .setJoinTimeout(joinTimeout(sc, spec)).setStepTimeout(Cluster.stepTimeout(sc.getConf))
      .setWorkers(places).setFirstWorkers(if (places > workers) workers else 0).setToken(
        ByteString.copyFrom(token)).setModelHome(home).setCoordinatorListens(true)
      .setEncrypted(Cluster.encrypts(sc.getConf))
      .setReplacement(sc.getConf.get("spark.crema.replacement", "continue"))
      .setReplacementTimeout(Cluster.replacementTimeout(sc.getConf, rowsSent = fed.train.orElse(fed.test).isDefined))
      .setRebalance(seconds(sc, "spark.crema.rebalance", 30))
      .setLeastWorkers(Cluster.leastWorkers(sc.getConf, workers, places)).build()
    val coordinator = new Child("coordinator", base.toBuilder.setHost(Cluster.driverAddress(sc)).build())
    try {
      val address = coordinator.next().filter(_.hasListening).map(_.getListening.getAddress)
        .getOrElse(throw new CremaException(s"the coordinator did not start${coordinator.tail()}"))
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

  private def localPathOf(records: Records): String = records match {
    case AtPath(location) if Storage.isLocal(location) => Storage.localPath(location)
    case _ => ""
  }
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
        Iterator(trainTask(spec, job, worker, w => rowsOf(w).map(_._2), databases))
      }
      sc.runJob(tasks, (records: Iterator[Long]) => records.sum, (_: Int, records: Long) => skipped(records))
    } finally sc.clearJobGroup()
  }

  /** In a task: stages files, runs one worker, publishes what the worker that leads writes.
    *
    * @return how many records could not be decoded
    */
  private def trainTask(spec: TrainSpec, jobBytes: Array[Byte], worker: Int, rows: Int => Iterator[Array[Byte]],
      databases: Databases): Long = {
    val (context, began) = (TaskContext.get(), System.nanoTime())
    NativeBinary.path
    lazy val conf = spec.hadoop.configuration // costs a third of a second in a fresh JVM, and local files need none
    val folder = Files.createTempDirectory(Storage.workFolder.toPath, s"worker-$worker-").toFile
    val model = new File(folder, if (spec.model.endsWith(".h5")) "final.caffemodel.h5" else "final.caffemodel").getPath
    val fetched = (uri: String) => if (uri.isEmpty) "" else Storage.fetch(uri, conf)
    val job = Job.parseFrom(jobBytes).toBuilder
      .setWorker(worker).setPartition(worker).setStageAttempt(context.stageAttemptNumber())
      .setHost(Cluster.executorAddress(spec.localMode))
      .setTrainSource(localPathOf(spec.train)).setTestSource(localPathOf(spec.test.getOrElse(spec.train)))
      .setWeights(fetched(spec.weights)).setWeightsName(spec.weights)
      .setSnapshot(fetched(spec.snapshot)).setSnapshotName(spec.snapshot)
      .setWorkFolder(folder.getPath).setPublishes(true)
      .setModel(model).setSnapshotPrefix(new File(folder, spec.snapshotName).getPath)
      .setPublishedPrefix(Storage.inFolder(spec.snapshotFolder, spec.snapshotName))
    databases.train.foreach(f => job.setTrainFile(f.message(spec.trainBatch)))
    databases.test.foreach(f => job.setTestFile(f.message(spec.testBatch)))
    job.setUnpackSeconds(NativeBinary.unpackSeconds()).setTaskSeconds((System.nanoTime() - began) / 1e9)
    try {
      lives(spec, job, rows, databases, context, conf).getSkipped
    } finally FileUtil.fullyDelete(folder)
  }

  /** A worker that was killed is started again here, at once, where others go on without it and its rows need not be
    * sent anew; else the task fails, and Spark runs it again. A process that the coordinator had in reserve ends when
    * another worker's place is free, and that worker is started here.
    */
  private def lives(spec: TrainSpec, job: Job.Builder, rows: Int => Iterator[Array[Byte]], databases: Databases,
      context: TaskContext, conf: => Configuration): Event.Done = {
    val first = context.attemptNumber() * 2 * Lives
    val again = job.getReplacement != "fail" && job.getWorkers > 1 && !job.hasTrainRows && !job.hasTestRows
    @tailrec def life(number: Int): Event.Done = {
      val child = new Child("worker", job.setAttempt(first + number).build())
      child.endWith(context)
      child.serve(databases.train, databases.test, spec.hadoop)
      val end = follow(spec, child, new RowSender(child, rows(job.getWorker), ends(job.build()), context), conf)
      val killed = end.failed.isEmpty && child.killed(5)
      if (end.place.nonEmpty || killed && again && number + 1 < Lives && !context.isInterrupted()) {
        end.place.foreach(job.setWorker(_))
        life(if (killed) number + 1 else number)
      } else if (comesAgain(child, end, job, context, number + 1)) {
        Thread.sleep(Pause)
        life(math.max(number + 1, Lives))
      } else end.done
    }
    life(0)
  }

  /** Whether a worker that has failed is to be started again, in a run that grows: it goes on without the worker, and a
    * failure of the task may end Spark's job. How many Spark has counted is not known: attempts that were preempted are
    * none. Where the run needs the worker, the coordinator ends the run with its error.
    */
  private def comesAgain(child: Child, end: End, job: Job.Builder, context: TaskContext, lives: Int): Boolean =
    try { child.finish(end.failed); false }
    catch {
      case e: CremaException
          if job.getFirstWorkers > 0 &&
            context.attemptNumber() + 1 >= SparkEnv.get.conf.getInt("spark.task.maxFailures", 4) =>
        val again = lives < 2 * Lives && !context.isInterrupted()
        val next = if (again) s"; it is started again in ${Pause / 1000} s" else ""
        log.warn(s"the run goes on without this executor, whose worker failed once more$next: ${e.getMessage}")
        again
    }
  private val Lives = 4 // of a worker in one task, and as many where a run that grows goes on without it meanwhile
  private val Pause = 60000L // ms

  /** How a worker's process has ended. place: the worker that is to be started instead. */
  private case class End(done: Event.Done, failed: Option[Event.Failed], place: Option[Int])

  /** Reads what the worker says to its end, and publishes its snapshots. */
  private def follow(spec: TrainSpec, child: Child, sender: RowSender, conf: => Configuration): End = {
    // Not in this thread, which answers the child's requests for ranges meanwhile.
    val publisher = Executors.newSingleThreadExecutor()
    try {
      var end = End(Event.Done.getDefaultInstance, None, None)
      var event = child.next()
      while (event.isDefined) {
        for (e <- event if e.hasSnapshot)
          publisher.execute(() => child.send(publishSnapshot(spec, e.getSnapshot, conf)))
        for (e <- event if e.hasModel) publisher.execute(() => child.send(publishModel(spec, e.getModel, conf)))
        if (event.get.hasFailed) end = end.copy(failed = Some(event.get.getFailed))
        if (event.get.hasDone) end = end.copy(done = event.get.getDone)
        if (event.get.hasPlace) end = end.copy(place = Some(event.get.getPlace.getWorker))
        event = child.next()
      }
      if (end.place.isEmpty) sender.check()
      end
    } finally {
      publisher.shutdown()
      try publisher.awaitTermination(60, TimeUnit.SECONDS) // a snapshot of a run that has failed is worth as much
      finally { publisher.shutdownNow(); sender.close() }
    }
  }

  /** The Inputs that mark the end of the rows that a job announces. */
  private def ends(job: Job): Seq[Input] = {
    def end(test: Boolean) = Input.newBuilder.setEnd(Input.End.newBuilder.setTest(test)).build()
    (if (job.hasTestRows) Seq(end(true)) else Nil) ++ (if (job.hasTrainRows) Seq(end(false)) else Nil)
  }

  /** The answer to the worker about the final model. */
  private def publishModel(spec: TrainSpec, model: Event.Model, conf: Configuration): Input = {
    val said = Input.Published.newBuilder
    try Storage.publish(model.getPath, spec.model, conf)
    catch { case NonFatal(e) => said.setFailed(s"the model is trained and not saved: ${e.getMessage}") }
    Input.newBuilder.setPublished(said).build()
  }

  /** The answer to the worker about its snapshot: both files are published, or why not. */
  private def publishSnapshot(spec: TrainSpec, s: Event.Snapshot, conf: Configuration): Input = {
    val said = Input.Published.newBuilder.setIteration(s.getIteration)
    def published(file: String) = Storage.inFolder(spec.snapshotFolder, new File(file).getName)
    try {
      Storage.remove(published(s.getState),
        conf) // of an earlier run, which would be a pair with this model until the end
      for (file <- Seq(s.getModel, s.getState)) Storage.publish(file, published(file), conf)
    } catch {
      case NonFatal(e) =>
        said.setFailed(s"the snapshot of iteration ${s.getIteration} cannot be published: ${e.getMessage}")
    }
    Input.newBuilder.setPublished(said).build()
  }
}
