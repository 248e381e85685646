package com.crema

import java.util.UUID
import java.util.concurrent.{CountDownLatch, TimeUnit}

import scala.collection.mutable
import scala.util.control.NonFatal

import com.crema.wire.Wire.Event
import org.apache.spark.SparkContext
import org.apache.spark.crema.Whereabouts
import org.slf4j.LoggerFactory

/** Follows the coordinator while the tasks run: shows progress, ends tasks whose workers are stopped or stuck, cancels
  * all of them when it fails, and builds the error message from what coordinator, workers and Spark report.
  *
  * @param stateOf where the .solverstate of a snapshot is published
  * @param published called for each snapshot whose files are published
  */
private[crema] class Watch(sc: SparkContext, coordinator: Child, console: Console, budget: Budget,
    stateOf: Event.Snapshot => String, published: Event.Snapshot => Unit) {
  private val log = LoggerFactory.getLogger(getClass)
  val group: String = "crema-" + UUID.randomUUID()
  private val seen = mutable.ArrayBuffer[Event.Test]()
  @volatile private var failed: Option[Event.Failed] = None
  @volatile private var last: Option[Event.Snapshot] = None
  @volatile private var died: Option[String] = None // the coordinator ended without reporting a failure
  @volatile private var started, done, cancelled, closing = false
  @volatile private var busy: Option[String] = None // what the reader does, other than to wait for the coordinator
  private val tasksEnded = new CountDownLatch(1)

  def tests: Seq[Event.Test] = seen.synchronized(seen.toList)

  /** Runs `tasks` to the end. Once the coordinator has said that the run is done it has its result, whatever becomes of
    * tasks that have not ended.
    */
  def during(tasks: => Unit): Unit = {
    val places = new Whereabouts(sc, group)
    val reader = new Thread(() => follow(places), "crema-coordinator-events")
    reader.setDaemon(true)
    val interrupted = new Thread(() => System.err.println(s"crema: error: $endedFromOutside"), "crema-interrupted")
    Runtime.getRuntime.addShutdownHook(interrupted)
    reader.start()
    try {
      val failure =
        try { tasks; None }
        catch { case NonFatal(e) => Some(e) }
        finally tasksEnded.countDown()
      // The coordinator hears of the same failure, and its message is the better one.
      reader.join(if (failure.isEmpty) patience else 5000)
      if (!done) throw failure.getOrElse(
        CremaException.of(failed.fold("")(_.getKind), failed.fold(notHeard(reader))(_.getStory) + coordinator.tail()))
      for (e <- failure if !cancelled) log.warn(s"a task failed when the run was done: ${JobError.message(e)}")
    } catch {
      case NonFatal(e) =>
        closing = true
        coordinator.close()
        reader.join(5000)
        throw explained(e, places)
    } finally {
      places.close()
      try Runtime.getRuntime.removeShutdownHook(interrupted)
      catch { case _: IllegalStateException => /* it runs */ }
    }
  }

  /** ms for which the coordinator keeps what it says for a driver that does not read (docs/decisions/0142). */
  private val patience = (10000 * Cluster.stepTimeout(sc.getConf)).toLong

  /** Why the end of a run is not known whose tasks have all ended well. */
  private def notHeard(reader: Thread): String =
    if (!reader.isAlive) "the coordinator ended before the run did"
    else s"all tasks have ended well, and ${patience / 1000} s later the driver does not know what its coordinator " +
      s"(pid ${coordinator.pid}) says of the end, as it ${busy.getOrElse("still waits for that")}; " +
      "ten times spark.crema.stepTimeout is the limit"

  /** The error at Ctrl-C or SIGTERM, printed at once: the JVM does not wait for the thread that runs the job. */
  private def endedFromOutside: String =
    "the driver was asked to end (Ctrl-C, SIGTERM or its cluster), and the run ended with it; " + last.fold(
      "there is no snapshot to go on from: `snapshot: N` in the solver writes one every N iterations")(lastSnapshot)
  private def lastSnapshot(s: Event.Snapshot): String =
    s"the last snapshot is of iteration ${s.getIteration}: ${stateOf(s)}"

  /** The error: the coordinator's message, where its worker ran, Spark's message unless it only says that the job was
    * cancelled from here, and the snapshot to resume from.
    */
  private def explained(e: Throwable, places: Whereabouts): CremaException = {
    val wrong = JobError.isLasting(e) || failed.exists(f => CremaException.of(f.getKind, "").isInstanceOf[WrongInput])
    val reasons = (failed.map(_.getStory) ++ died).toSeq
    def late(text: String) = text.contains("the run was over before attempt")
    val sparks = Some(JobError.message(e)).filterNot { text =>
      def consequence = cancelled && !JobError.isOurs(e) || late(text)
      died.isDefined || failed.isDefined && consequence
    }
    val snapshot = if (wrong) None else last.map(lastSnapshot)
    // Why a worker is missing that the coordinator has waited for.
    val missing = places.unheard.filter(text => !started && failed.exists(_.getKind == "timeout") && !late(text))
    val text = (reasons ++ reasons.flatMap(places.of) ++ missing ++ sparks ++ snapshot).distinct.mkString("\n")
    if (wrong) new WrongInput(text, e) else new CremaException(text, e)
  }

  private def follow(places: Whereabouts): Unit = {
    var event = coordinator.next()
    while (event.isDefined) {
      val e = event.get
      if (e.hasSnapshot) { // first, so that a snapshot that users have seen in the log is known to the next attempt
        last = Some(e.getSnapshot)
        busyWith("still notes the last snapshot for another attempt: does the file system of its journal hang?") {
          published(e.getSnapshot)
        }
      }
      busyWith("cannot write to its console: is stderr held, by a pipe that nobody reads?") {
        console.show(e)
        budget.follow(e).foreach(console.say)
      }
      if (e.hasJoined) places.joined(e.getJoined)
      if (e.hasStarted) started = true
      if (e.hasTest) seen.synchronized(seen += e.getTest)
      if (e.hasLost && e.getLost.getSilent) places.endTask(e.getLost.getWorker)
      if (e.hasDone) done = true
      if (e.hasFailed) failed = Some(e.getFailed)
      event = if (e.hasFailed) None else coordinator.next()
    }
    if (!done && failed.isEmpty && !closing) {
      val how = coordinator.ending(5) + coordinator.tail()
      died = Some(s"`crema coordinator` (pid ${coordinator.pid}), which leads the run beside the driver, $how")
    }
    if (!done) {
      // The other workers have been notified and end by themselves; after a moment the rest of the stage is cancelled.
      // When the coordinator itself is gone nobody notifies them, so there is nothing to wait for.
      if (died.isEmpty) Thread.sleep(3000)
      cancel()
    } else if (!tasksEnded.await(Watch.Grace, TimeUnit.SECONDS)) {
      log.warn(s"the run is done, and ends without tasks that have not ended ${Watch.Grace} s later")
      cancel()
    }
  }

  private def busyWith(what: String)(body: => Unit): Unit = { busy = Some(what); body; busy = None }

  private def cancel(): Unit = {
    cancelled = true
    try sc.cancelJobGroup(group)
    catch { case _: IllegalStateException => /* the context is stopped, and the job with it: at Ctrl-C, say */ }
  }
}

private[crema] object Watch {
  private val Grace = 30L // seconds in which tasks end by themselves once the run is done
}
