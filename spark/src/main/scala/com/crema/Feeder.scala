package com.crema

import com.crema.wire.Wire.Input
import org.apache.spark.TaskContext
import org.apache.spark.crema.TaskThread

private object Feeder {
  val Patience = 10000L // ms
}

/** Sends a task's rows to its child in a thread of its own, while the task's thread reads what comes back.
  *
  * @param rows delimited Inputs, computed as they are sent; @param ends what is sent behind them
  */
class Feeder(child: Child, rows: Iterator[Array[Byte]], ends: Seq[Input], context: TaskContext) {
  @volatile private var failure: Throwable = _

  private val thread = new Thread(() => TaskThread.as(context) { send() }, "crema-feeder")
  thread.setDaemon(true)
  // Before what the rows are read from is given up (listeners run last first), nobody may read it any more: the task may end early, as with a limit.
  context.addTaskCompletionListener[Unit] { _ => child.close(); thread.interrupt(); thread.join(Feeder.Patience) }
  thread.start()

  private def send(): Unit =
    try {
      // A child that ended early is not our failure: it has enough (max_iter is reached), or it says itself what is wrong.
      while (child.alive && !context.isCompleted() && !context.isInterrupted() && rows.hasNext && child.send(rows.next())) {}
      if (!rows.hasNext) ends.foreach(child.send)
    } catch {
      case e: Throwable => // also a fatal one: this thread is ours, and the task must hear of it
        failure = e
        child.close()
    }

  /** Throws what the source of the rows threw. Call it at the end of the child's events, before the child's own story is told. */
  def check(): Unit = {
    thread.join(1000) // a child that is gone makes the next send fail at once; a source that still computes is interrupted with the task
    failure match {
      case null =>
      case e: CremaException => throw e
      case e => throw new CremaException(s"the rows for a worker could not be read: $e", e)
    }
  }
}
