package com.crema

import java.io.File
import java.nio.file.Files
import java.util.concurrent.TimeUnit

import scala.annotation.tailrec
import scala.util.control.NonFatal

import com.crema.wire.Wire.{Event, Input, Job}
import org.apache.hadoop.fs.FileUtil
import org.apache.spark.crema.Edges
import org.apache.spark.{SparkEnv, TaskContext}
import org.slf4j.LoggerFactory

/** In a task of a training run: stages files, runs one worker, publishes what the worker that leads writes.
  *
  * @param rows those of any worker
  */
private[crema] class TrainTask(spec: TrainSpec, jobBytes: Array[Byte], worker: Int, rows: Int => Iterator[Array[Byte]],
    databases: Databases) {
  import TrainTask._
  private val (context, began) = (TaskContext.get(), System.nanoTime())
  private lazy val conf = spec.hadoop.configuration // a third of a second in a fresh JVM, and local files need none
  private var folder: Option[File] = None
  private val grows = Job.parseFrom(jobBytes).getFirstWorkers > 0

  /** @return how many records could not be decoded */
  def run(): Long =
    try lives().getSkipped
    finally folder.foreach(FileUtil.fullyDelete)

  /** The worker's job, made when it is first asked for, and again where that failed. */
  private lazy val job: Job.Builder = {
    NativeBinary.path
    if (folder.isEmpty) folder = Some(Files.createTempDirectory(Storage.workFolder.toPath, s"worker-$worker-").toFile)
    def inFolder(name: String) = new File(folder.get, name).getPath
    def fetched(uri: String) = if (uri.isEmpty) "" else Storage.fetch(uri, conf)
    val staged = Job.parseFrom(jobBytes).toBuilder
      .setWorker(worker).setPartition(worker).setStageAttempt(context.stageAttemptNumber())
      .setTask(context.taskAttemptId()).setExecutor(SparkEnv.get.executorId)
      .setHost(Cluster.executorAddress(spec.localMode))
      .setTrainSource(localPathOf(spec.train)).setTestSource(localPathOf(spec.test.getOrElse(spec.train)))
      .setWeights(fetched(spec.weights)).setWeightsName(Storage.plain(spec.weights))
      .setSnapshot(fetched(spec.snapshot)).setSnapshotName(Storage.plain(spec.snapshot))
      .setWorkFolder(folder.get.getPath).setPublishes(true)
      .setModel(inFolder(if (spec.model.endsWith(".h5")) "final.caffemodel.h5" else "final.caffemodel"))
      .setSnapshotPrefix(inFolder(spec.snapshotName))
      .setPublishedPrefix(Storage.inFolder(spec.snapshotFolder, spec.snapshotName))
    databases.train.foreach(f => staged.setTrainFile(f.message(spec.trainBatch)))
    databases.test.foreach(f => staged.setTestFile(f.message(spec.testBatch)))
    staged.setUnpackSeconds(NativeBinary.unpackSeconds()).setTaskSeconds((System.nanoTime() - began) / 1e9)
  }

  private def localPathOf(records: Records): String = records match {
    case AtPath(location) if Storage.isLocal(location) => Storage.localPath(location)
    case _ => ""
  }

  private def lives(): Event.Done = {
    @tailrec def life(number: Int): Event.Done = again(number)(once(number)) match {
      case Right(done) => done
      case Left(next) => life(next)
    }
    life(0)
  }

  /** One process of the worker, and the number of the next one, if there is one. A worker that was killed is started
    * again here, at once, where others go on without it and its rows need not be sent anew; else the task fails, and
    * Spark runs it again. A process that the coordinator had in reserve ends when another worker's place is free, and
    * that worker is started here.
    */
  private def once(number: Int): Either[Int, Event.Done] = {
    job.setAttempt(context.attemptNumber() * 2 * Lives + number)
    val child = new Child("worker", job.build())
    child.endWith(context)
    child.serve(databases.train, databases.test, spec.hadoop)
    val end = follow(child, new RowSender(child, rows(job.getWorker), ends, context))
    val killed = end.failed.isEmpty && child.killed(5)
    val replaced = job.getReplacement != "fail" && job.getWorkers > 1 && !job.hasTrainRows && !job.hasTestRows
    if (end.place.nonEmpty || killed && replaced && number + 1 < Lives && !context.isInterrupted()) {
      end.place.foreach(job.setWorker(_))
      Left(if (killed) number + 1 else number)
    } else {
      child.finish(end.failed)
      Right(end.done)
    }
  }

  /** What has failed, staging included, is tried again, in a run that grows: it goes on without the worker, and a
    * failure of the task may end Spark's job. How many Spark has counted is not known: attempts that were preempted are
    * none. Where the run needs the worker, the coordinator ends the run.
    */
  private def again(number: Int)(life: => Either[Int, Event.Done]): Either[Int, Event.Done] =
    try life
    catch {
      case NonFatal(e)
          if grows && !context.isInterrupted() &&
            context.attemptNumber() + 1 >= SparkEnv.get.conf.getInt("spark.task.maxFailures", 4) =>
        val more = number + 1 < 2 * Lives
        val next = if (more) s"; it is started again in ${Pause / 1000} s" else ""
        log.warn(s"the run goes on without this executor, whose worker failed once more$next: ${JobError.message(e)}")
        if (more) Thread.sleep(Pause)
        if (more) Left(math.max(number + 1, Lives)) else Right(Event.Done.getDefaultInstance)
    }

  /** Reads what the worker says to its end, and publishes its snapshots. */
  private def follow(child: Child, sender: RowSender): End = {
    // Not in this thread, which answers the child's requests for ranges meanwhile.
    val publisher = Daemon.executor("crema-publisher")
    // The worker, and all others, wait for twice as long (kPublicationTimeouts in cluster/patience.h).
    val retry = new Retry(5 * job.getStepTimeout)
    try {
      var end = End(Event.Done.getDefaultInstance, None, None)
      var event = child.next()
      while (event.isDefined) {
        for (e <- event if e.hasSnapshot) publisher.execute(answer(child)(publishSnapshot(e.getSnapshot, retry)))
        for (e <- event if e.hasModel) publisher.execute(answer(child)(publishModel(e.getModel, retry)))
        if (event.get.hasFailed) end = end.copy(failed = Some(event.get.getFailed))
        if (event.get.hasDone) end = end.copy(done = event.get.getDone)
        if (event.get.hasPlace) end = end.copy(place = Some(event.get.getPlace.getWorker))
        event = child.next()
      }
      if (end.place.isEmpty) sender.check()
      end
    } finally {
      retry.end()
      publisher.shutdown()
      try publisher.awaitTermination(60, TimeUnit.SECONDS) // a snapshot of a run that has failed is worth as much
      finally { publisher.shutdownNow(); sender.close() }
    }
  }

  /** The Inputs that mark the end of the rows that the job announces. */
  private def ends: Seq[Input] = {
    def end(test: Boolean) = Input.newBuilder.setEnd(Input.End.newBuilder.setTest(test)).build()
    (if (job.hasTestRows) Seq(end(true)) else Nil) ++ (if (job.hasTrainRows) Seq(end(false)) else Nil)
  }

  private def answer(child: Child)(made: => Option[Input]): Runnable = () =>
    try made.foreach(child.send)
    catch { case _: InterruptedException => /* the task is cancelled, and its worker with it */ }

  /** The answer to the worker about the final model. */
  private def publishModel(model: Event.Model, retry: Retry): Option[Input] = {
    def publish() = retry("the model cannot be published now")(Storage.publish(model.getPath, spec.model, conf))
    published(Input.Published.newBuilder, "the model is trained and not saved")(publish())
  }

  /** The answer to the worker about its snapshot: both files are published, or why not. Nobody reads the staged files
    * again, also where that failed, and a run of days takes many.
    */
  private def publishSnapshot(s: Event.Snapshot, retry: Retry): Option[Input] = {
    val files = Seq(s.getModel, s.getState)
    val pair = files.map(f => f -> Storage.inFolder(spec.snapshotFolder, new File(f).getName))
    val not = s"the snapshot of iteration ${s.getIteration} cannot be published"
    try published(Input.Published.newBuilder.setIteration(s.getIteration), not) {
        retry(s"$not now")(Storage.publishPair(pair, conf))
      }
    finally files.foreach(new File(_).delete())
  }

  /** None from a JVM that is being ended, whose hooks remove what is read here: its worker is lost with it. */
  private def published(said: Input.Published.Builder, not: String)(publish: => Unit): Option[Input] = {
    def answer = Some(Input.newBuilder.setPublished(said).build())
    try { publish; answer }
    catch { case NonFatal(e) => if (Edges.endWithJvm()) None else { said.setFailed(s"$not: ${e.getMessage}"); answer } }
  }
}

private[crema] object TrainTask {
  private val log = LoggerFactory.getLogger(getClass)
  private val Lives = 4 // of a worker in one task, and as many where a run that grows goes on without it meanwhile
  private val Pause = 60000L // ms

  /** How a worker's process has ended. place: the worker that is to be started instead. */
  private case class End(done: Event.Done, failed: Option[Event.Failed], place: Option[Int])
}
