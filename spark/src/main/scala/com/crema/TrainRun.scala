package com.crema

import java.io.File
import java.nio.file.{Files, Paths}
import java.security.SecureRandom
import java.util.UUID

import scala.util.control.NonFatal

import com.crema.wire.Wire.{Event, Job}
import org.apache.hadoop.fs.FileUtil
import org.apache.spark.{SparkContext, TaskContext}

/** What a training run needs; everything in it travels to the tasks. */
case class TrainSpec(
    job: Array[Byte],       // wire.Job without worker, host, coordinator and paths
    trainSource: String, testSource: String, weights: String, snapshot: String,
    model: String,          // where the final model goes, any URI
    snapshotFolder: String, snapshotName: String,
    hadoop: HadoopSettings, localMode: Boolean)

/** Training: a coordinator beside the driver, one ordinary Spark task with a worker process per executor. */
object TrainRun {
  /** The final model's bytes when the model goes to a local path of the driver; else empty. */
  private type TaskResult = Array[Byte]

  /** Runs to the end and returns the test events in time order; throws with the whole story otherwise, and leaves no process behind. */
  def run(sc: SparkContext, spec: TrainSpec, workers: Int, console: Console): Seq[Event.Test] = {
    val token = new Array[Byte](32)
    new SecureRandom().nextBytes(token)
    val base = Job.parseFrom(spec.job).toBuilder.setJoinTimeout(joinTimeout(sc, spec)).setStepTimeout(seconds(sc, "spark.crema.stepTimeout", 60)).setWorkers(workers).setToken(com.google.protobuf.ByteString.copyFrom(token)).build()
    val coordinator = new Child("coordinator", base.toBuilder.setHost(Cluster.driverAddress(sc)).build())
    try {
      val address = coordinator.next().filter(_.hasListening).map(_.getListening.getAddress)
        .getOrElse(throw new CremaException(s"the coordinator did not start${coordinator.tail()}"))
      val watch = new Watch(sc, coordinator, console)
      val job = base.toBuilder.setCoordinator(address).build().toByteArray
      val results = watch.during(runTasks(sc, spec, job, workers, watch.group))
      if (results(0).nonEmpty) writeLocal(results(0), Storage.localPath(spec.model))
      watch.tests
    } finally coordinator.close()
  }

  private def seconds(sc: SparkContext, key: String, default: Double): Double =
    if (sc.getConf.contains(key)) sc.getConf.getTimeAsSeconds(key).toDouble else default

  /** A minute, and what copying remote files to the executors takes at 5 MB/s; or spark.crema.joinTimeout. */
  private def joinTimeout(sc: SparkContext, spec: TrainSpec): Double = {
    val remote = Seq(spec.trainSource, spec.testSource, spec.weights, spec.snapshot).filter(_.nonEmpty).distinct
    seconds(sc, "spark.crema.joinTimeout", 60 + remote.map(Storage.remoteBytes(_, sc.hadoopConfiguration)).sum / 5e6)
  }

  private def runTasks(sc: SparkContext, spec: TrainSpec, job: Array[Byte], workers: Int, group: String): Array[TaskResult] = {
    sc.setJobGroup(group, s"Crema: training on $workers worker(s)", interruptOnCancel = true)
    try sc.parallelize(0 until workers, workers).map(w => trainTask(spec, job, w)).collect()
    finally sc.clearJobGroup()
  }

  /** In a task: stages files, runs one worker, publishes what worker 0 writes. */
  private def trainTask(spec: TrainSpec, jobBytes: Array[Byte], worker: Int): TaskResult = {
    val context = TaskContext.get()
    val conf = spec.hadoop.configuration
    val folder = Files.createTempDirectory(Storage.workFolder.toPath, s"worker-$worker-").toFile
    val model = new File(folder, "final.caffemodel").getPath
    val fetched = (uri: String) => if (uri.isEmpty) "" else Storage.fetch(uri, conf)
    val job = Job.parseFrom(jobBytes).toBuilder
      .setWorker(worker).setAttempt(context.attemptNumber()).setHost(Cluster.executorAddress(spec.localMode))
      .setTrainSource(fetched(spec.trainSource)).setTestSource(fetched(spec.testSource))
      .setWeights(fetched(spec.weights)).setSnapshot(fetched(spec.snapshot))
      .setModel(model).setSnapshotPrefix(new File(folder, spec.snapshotName).getPath)
      .setPublishedPrefix(spec.snapshotFolder + "/" + spec.snapshotName).build()
    val child = new Child("worker", job)
    child.endWith(context)
    try {
      var story: Option[String] = None
      var event = child.next()
      while (event.isDefined) {
        if (event.get.hasSnapshot) publishSnapshot(spec, event.get.getSnapshot, conf)
        if (event.get.hasFailed) story = Some(event.get.getFailed.getStory)
        event = child.next()
      }
      child.finish(story)
      if (worker != 0) Array.emptyByteArray
      else if (Storage.isLocal(spec.model)) Files.readAllBytes(Paths.get(model))
      else { Storage.publish(model, spec.model, conf); Array.emptyByteArray }
    } finally {
      child.close()
      FileUtil.fullyDelete(folder)
    }
  }

  private def publishSnapshot(spec: TrainSpec, s: Event.Snapshot, conf: org.apache.hadoop.conf.Configuration): Unit =
    for (file <- Seq(s.getModel, s.getState)) Storage.publish(file, spec.snapshotFolder + "/" + new File(file).getName, conf)

  private def writeLocal(bytes: Array[Byte], path: String): Unit = {
    val target = Paths.get(path).toAbsolutePath
    val part = Files.createTempFile(target.getParent, s".${target.getFileName}-", ".part")
    try {
      Files.setPosixFilePermissions(part, java.nio.file.attribute.PosixFilePermissions.fromString("rw-r--r--"))
      Files.write(part, bytes)
      Files.move(part, target, java.nio.file.StandardCopyOption.ATOMIC_MOVE, java.nio.file.StandardCopyOption.REPLACE_EXISTING)
    } catch { case e: java.io.IOException => throw new CremaException(s"the model cannot be written to $path: ${e.getMessage}", e) }
    finally Files.deleteIfExists(part)
  }

  /** Follows the coordinator while the tasks run: shows progress, cancels the tasks when it fails, and tells the better story. */
  private class Watch(sc: SparkContext, coordinator: Child, console: Console) {
    val group: String = "crema-" + UUID.randomUUID()
    private val seen = scala.collection.mutable.ArrayBuffer[Event.Test]()
    @volatile private var story: Option[String] = None
    @volatile private var done = false

    def tests: Seq[Event.Test] = seen.synchronized(seen.toList)

    def during[A](body: => A): A = {
      val reader = new Thread(() => follow(), "crema-coordinator-events")
      reader.setDaemon(true)
      reader.start()
      try {
        val result = body
        reader.join(20000)
        if (!done) throw new CremaException(story.getOrElse("the coordinator ended before the run did") + coordinator.tail())
        result
      } catch {
        case NonFatal(e) =>
          reader.join(5000) // the coordinator hears of the same failure and has the better words
          coordinator.close()
          reader.join(5000)
          throw new CremaException((story.toSeq :+ lastWords(e)).distinct.mkString("\n"), e)
      }
    }

    /** What the failed task said, without Spark's frames and stack around it. */
    private def lastWords(e: Throwable): String = {
      val text = Option(e.getMessage).getOrElse(e.toString)
      val own = "com.crema.CremaException: "
      if (!text.contains(own)) text else text.substring(text.indexOf(own) + own.length).split("\n").takeWhile(!_.startsWith("\tat ")).mkString("\n")
    }

    private def follow(): Unit = {
      var event = coordinator.next()
      while (event.isDefined) {
        val e = event.get
        console.show(e)
        if (e.hasTest) seen.synchronized(seen += e.getTest)
        if (e.hasDone) done = true
        if (e.hasFailed) story = Some(e.getFailed.getStory)
        event = if (e.hasFailed) None else coordinator.next()
      }
      // The survivors have been told and end by themselves; a moment later what is left of the stage is cancelled.
      if (!done) { Thread.sleep(3000); sc.cancelJobGroup(group) }
    }
  }
}
