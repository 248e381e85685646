package com.crema

import com.crema.wire.Wire.Input
import org.apache.spark.TaskContext
import org.apache.spark.crema.TaskThread

private object Feeder {
  val Patience = 10000L // ms
  val SignEvery = 2000L // ms
  private val preparing = Input.newBuilder.setPreparing(Input.Preparing.getDefaultInstance).build()
}

/** Sends a task's rows to its child in a thread of its own, while the task's thread reads what comes back. As long as
  * the next rows are still being computed, fetched or sorted, the child hears so: how long that may take is Spark's to
  * say.
  *
  * @param rows delimited Inputs, computed as they are sent; @param ends what is sent behind them
  */
class Feeder(child: Child, rows: Iterator[Array[Byte]], ends: Seq[Input], context: TaskContext) {
  @volatile private var failure: Throwable = _
  @volatile private var waiting = false // for the next row

  private val thread = new Thread(() => TaskThread.as(context) { send() }, "crema-feeder")
  thread.setDaemon(true)
  // Before what the rows are read from is given up (listeners run last first), nobody may read it any more: the task
  // may end early, as with a limit.
  context.addTaskCompletionListener[Unit] { _ => close() }
  thread.start()

  private val teller = new Thread(() => tell(), "crema-feeder-signs")
  teller.setDaemon(true)
  teller.start()

  /** Ends the child and the feeding. Who computes the rows only as they are asked for must call it: listeners of theirs
    * would run before ours.
    */
  def close(): Unit = { child.close(); thread.interrupt(); thread.join(Feeder.Patience) }

  private def tell(): Unit =
    try {
      thread.join(Feeder.SignEvery)
      while (thread.isAlive && child.alive) {
        if (waiting) child.send(Feeder.preparing)
        thread.join(Feeder.SignEvery)
      }
    } catch { case _: InterruptedException => }

  private def open = child.alive && !context.isCompleted() && !context.isInterrupted()
  private def row(): Option[Array[Byte]] = {
    waiting = true
    try { if (rows.hasNext) Some(rows.next()) else None }
    finally waiting = false
  }

  private def send(): Unit =
    try {
      // A child that ended early is not our failure: it has enough (max_iter is reached), or it says itself what is
      // wrong.
      var more = open
      while (more) more = row() match {
        case Some(bytes) => child.send(bytes) && open
        case None => ends.foreach(child.send(_)); false
      }
    } catch {
      case e: Throwable => // also a fatal one: this thread is ours, and the task must hear of it
        failure = e
        child.close()
    }

  /** Throws what the source of the rows threw. Call it at the end of the child's events, before the child's own story
    * is told.
    */
  def check(): Unit = {
    // A child that is gone makes the next send fail at once; a source that still computes is interrupted with the task.
    thread.join(1000)
    failure match {
      case null =>
      case e: CremaException => throw e
      case e => throw new CremaException(s"the rows for a worker could not be read: $e", e)
    }
  }
}
