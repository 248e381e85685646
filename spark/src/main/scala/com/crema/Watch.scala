package com.crema

import java.util.UUID

import scala.collection.mutable
import scala.util.control.NonFatal

import com.crema.wire.Wire.Event
import org.apache.spark.SparkContext
import org.apache.spark.crema.Whereabouts

/** Follows the coordinator while the tasks run: shows progress, cancels the tasks when it fails, and tells the better
  * story.
  *
  * @param stateOf where the .solverstate of a snapshot is; @param published is told of each snapshot whose files are in
  *   their places
  */
private[crema] class Watch(sc: SparkContext, coordinator: Child, console: Console, budget: Budget,
    stateOf: Event.Snapshot => String, published: Event.Snapshot => Unit) {
  val group: String = "crema-" + UUID.randomUUID()
  private val seen = mutable.ArrayBuffer[Event.Test]()
  @volatile private var failed: Option[Event.Failed] = None
  @volatile private var last: Option[Event.Snapshot] = None
  @volatile private var died: Option[String] = None // without a word of its own
  @volatile private var done, cancelled, closing = false

  def tests: Seq[Event.Test] = seen.synchronized(seen.toList)

  def during[A](body: => A): A = {
    val reader = new Thread(() => follow(), "crema-coordinator-events")
    reader.setDaemon(true)
    val places = new Whereabouts(sc, group)
    reader.start()
    try {
      val result = body
      reader.join(20000)
      if (!done) throw CremaException.of(failed.fold("")(_.getKind),
        failed.fold("the coordinator ended before the run did")(_.getStory) + coordinator.tail())
      result
    } catch {
      case NonFatal(e) =>
        reader.join(5000) // the coordinator hears of the same failure and has the better words
        closing = true
        coordinator.close()
        reader.join(5000)
        throw told(e, places)
    } finally places.close()
  }

  /** The coordinator's story, where its worker ran, what Spark says unless that is only that we cancelled the job, and
    * where to go on.
    */
  private def told(e: Throwable, places: Whereabouts): CremaException = {
    val wrong = Story.lasting(e) || failed.exists(f => CremaException.of(f.getKind, "").isInstanceOf[WrongInput])
    val stories = (failed.map(_.getStory) ++ died).toSeq
    val sparks = Some(Story.of(e)).filterNot { text =>
      def consequence = cancelled && !Story.isOurs(e) || text.contains("the run was over before attempt")
      died.isDefined || failed.isDefined && consequence
    }
    val snapshot =
      if (wrong) None else last.map(s => s"the last snapshot is of iteration ${s.getIteration}: ${stateOf(s)}")
    val text = (stories ++ stories.flatMap(places.of) ++ sparks ++ snapshot).distinct.mkString("\n")
    if (wrong) new WrongInput(text, e) else new CremaException(text, e)
  }

  private def follow(): Unit = {
    var event = coordinator.next()
    while (event.isDefined) {
      val e = event.get
      if (e.hasSnapshot) { // first of all: one that people have seen is known to a next attempt
        last = Some(e.getSnapshot)
        published(e.getSnapshot)
      }
      console.show(e)
      budget.follow(e).foreach(console.say)
      if (e.hasTest) seen.synchronized(seen += e.getTest)
      if (e.hasDone) done = true
      if (e.hasFailed) failed = Some(e.getFailed)
      event = if (e.hasFailed) None else coordinator.next()
    }
    if (!done && failed.isEmpty && !closing) {
      val how = coordinator.ending(5) + coordinator.tail()
      died = Some(s"`crema coordinator` (pid ${coordinator.pid}), which leads the run beside the driver, $how")
    }
    // The survivors have been told and end by themselves; a moment later what is left of the stage is cancelled.
    // Without it nobody tells them.
    if (!done) { if (died.isEmpty) Thread.sleep(3000); cancelled = true; sc.cancelJobGroup(group) }
  }
}
