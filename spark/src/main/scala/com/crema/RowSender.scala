package com.crema

import com.crema.wire.Wire.Input
import org.apache.spark.TaskContext
import org.apache.spark.crema.TaskThread

private object RowSender {
  val Patience = 10000L // ms
  val SignEvery = 2000L // ms
  private val preparing = Input.newBuilder.setPreparing(Input.Preparing.getDefaultInstance).build()
}

/** Sends a task's rows to its child in a thread of its own, while the task's thread reads what comes back. While the
  * next rows are still being computed, fetched or sorted, it sends the child a message, as there is no limit to
  * how long Spark may take for that.
  *
  * @param rows delimited Inputs, computed as they are sent
  * @param ends what is sent behind them
  */
class RowSender(child: Child, rows: Iterator[Array[Byte]], ends: Seq[Input], context: TaskContext) {
  @volatile private var failure: Throwable = _
  @volatile private var waiting = false // for the next row

  private val thread = new Thread(() => TaskThread.as(context) { send() }, "crema-row-sender")
  thread.setDaemon(true)
  // A task may end early, as with a limit. Completion listeners run in reverse order: this one stops the reading before
  // Spark's own listeners release what the rows are read from.
  context.addTaskCompletionListener[Unit] { _ => close() }
  thread.start()

  private val signs = new Thread(() => signWhileWaiting(), "crema-row-sender-signs")
  signs.setDaemon(true)
  signs.start()

  /** Ends the child and the sending. Who returns a lazy iterator must call this itself at its end: listeners registered
    * while the rows are computed would run before the one above.
    */
  def close(): Unit = { child.close(); thread.interrupt(); thread.join(RowSender.Patience) }

  /** Sends the child a message now and then, as long as the next row is still being computed. */
  private def signWhileWaiting(): Unit =
    try {
      thread.join(RowSender.SignEvery)
      while (thread.isAlive && child.alive) {
        if (waiting) child.send(RowSender.preparing)
        thread.join(RowSender.SignEvery)
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
      // A child that ended early is not a failure of this thread's: either it needs no more rows (max_iter is reached),
      // or it reports itself what is wrong.
      var more = open
      while (more) more = row() match {
        case Some(bytes) => child.send(bytes) && open
        case None => ends.foreach(child.send(_)); false
      }
    } catch {
      case e: Throwable => // also a fatal one: this thread is ours, and the task must fail with it
        failure = e
        child.close()
    }

  /** Rethrows what the source of the rows threw. To be called at the end of the child's events, before the child's own
    * failure is reported.
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
