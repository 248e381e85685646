package com.crema

import java.io.{BufferedInputStream, BufferedReader, IOException, InputStreamReader}
import java.net.InetAddress
import java.util.concurrent.{CountDownLatch, TimeUnit}
import java.util.concurrent.atomic.AtomicReference
import java.util.concurrent.locks.ReentrantLock

import scala.collection.mutable

import com.crema.wire.Wire.{Event, Job}
import com.google.protobuf.{MessageLite, Parser}
import org.apache.spark.{SparkEnv, TaskContext}
import org.apache.spark.crema.Edges
import org.slf4j.LoggerFactory

/** A process of the executable, started by a task or by the driver.
  *
  * It gets one message, a Job or a Request, on stdin, which then stays open: the child ends when it closes. Events or
  * Replies come on stdout. stderr is relayed to the log, and its last lines are kept for error messages. The thread
  * that starts the child lives as long as it does, because the child's parent-death signal is sent when that thread
  * ends.
  *
  * @param silence seconds: a child that is waited for, and has said nothing for so long, is killed
  */
class Child(subcommand: String, first: MessageLite, silence: Option[Double]) extends AutoCloseable {
  def this(subcommand: String, first: MessageLite) = this(subcommand, first, None)

  private val log = LoggerFactory.getLogger("crema." + subcommand)
  private val lastLines = mutable.Queue[String]()
  private val started = new CountDownLatch(1)
  @volatile private var process: Process = _
  @volatile private var failure: Throwable = _
  @volatile private var abandoned = false // whoever started it was interrupted before it had it

  private val keeper = daemon(s"crema-$subcommand-keeper") {
    try {
      process = new ProcessBuilder(NativeBinary.path, subcommand, "-job", "-").start()
    } catch { case e: Throwable => failure = e }
    started.countDown()
    if (abandoned && process != null) process.destroyForcibly()
    if (process != null) { relay(); process.waitFor() }
  }
  try started.await()
  catch {
    case e: InterruptedException =>
      abandoned = true
      if (process != null) process.destroyForcibly()
      throw e
  }
  if (failure != null) throw new CremaException(s"cannot start `crema $subcommand`: ${failure.getMessage}", failure)
  private val watch = silence.map(new SilenceWatch(process, s"crema-$subcommand-silence", _))
  private val events =
    new BufferedInputStream(watch.fold(process.getInputStream)(_.watched(process.getInputStream)), 1 << 16)
  private val out = process.getOutputStream
  private def sendFirst(): Unit = { first.writeDelimitedTo(out); out.flush() }
  try watch.fold(sendFirst())(_.waiting(sendFirst()))
  catch {
    case e: IOException =>
      throw new CremaException(s"`crema $subcommand` took no job: ${ending(5)}${tail()}", e)
  }

  def alive: Boolean = process.isAlive

  /** Sends more delimited Inputs behind the Job. False: the child has ended and takes no more. */
  def send(inputs: Array[Byte]): Boolean = sending { out.write(inputs) }
  def send(message: MessageLite): Boolean = sending { message.writeDelimitedTo(out) }

  private val writing = new ReentrantLock
  private def sending(write: => Unit): Boolean = {
    writing.lock()
    try { write; out.flush(); true }
    catch { case _: IOException => false }
    finally writing.unlock()
  }

  private def relay(): Unit = {
    val reader = new BufferedReader(new InputStreamReader(process.getErrorStream))
    var line = reader.readLine()
    while (line != null) {
      lastLines.synchronized { lastLines.enqueue(line); if (lastLines.size > 30) lastLines.dequeue() }
      log.info(line)
      line = reader.readLine()
    }
  }

  /** Ends the child when the task ends or is cancelled, also while the task's thread is blocked reading from it: that
    * read cannot be interrupted, so another thread polls the task's state.
    */
  def endWith(context: TaskContext): Unit = {
    context.addTaskCompletionListener[Unit](_ => close())
    daemon(s"crema-$subcommand-task-watch") {
      while (process.isAlive && !context.isCompleted() && !context.isInterrupted()) Thread.sleep(200)
      if (context.isInterrupted()) close()
    }
  }

  private val ranges = new AtomicReference[Option[RangeServer]](None)

  /** Reads these files for the child, whenever it asks, until it ends. */
  def serve(train: Option[StoredFile], test: Option[StoredFile], hadoop: HadoopSettings): Unit =
    if (train.isDefined || test.isDefined) ranges.set(Some(new RangeServer(this, train, test, hadoop)))

  /** The next message of a child that speaks another protocol; None at the end of the stream. */
  def next[M](parser: Parser[M]): Option[M] =
    try Option(parser.parseDelimitedFrom(events))
    catch { case _: IOException => None }

  /** The next event; None at the end of the stream. Requests for ranges of files are answered here and not returned;
    * heartbeats are not either.
    */
  @annotation.tailrec
  final def next(): Option[Event] = {
    val event = next(Event.parser)
    (event, ranges.get) match {
      case (Some(e), Some(server)) if e.hasNeed => server.answer(e.getNeed); next()
      case (Some(e), _) if e.hasAlive => next()
      case _ => event
    }
  }

  /** The same, from a child that has so many seconds for it, and is killed behind them. */
  def next(seconds: Double): Option[Event] =
    new SilenceWatch(process, s"crema-$subcommand-silence", seconds).waiting(next())

  def pid: Long = process.pid()

  /** How the process ended, waiting for that up to `seconds`. */
  def ending(seconds: Long): String =
    if (process.waitFor(seconds, TimeUnit.SECONDS)) Child.ending(process.exitValue)
    else "has closed its channel and not ended"

  /** Whether a signal has ended it, waiting for its end up to `seconds`. */
  def killed(seconds: Long): Boolean = process.waitFor(seconds, TimeUnit.SECONDS) && process.exitValue > 128

  /** What the process said last, for messages. */
  def tail(): String = lastLines.synchronized {
    if (lastLines.isEmpty) ""
    else lastLines.mkString(s"\nlast lines of `crema $subcommand` (pid ${process.pid()}):\n  ", "\n  ", "")
  }

  /** Waits for the end. @throws CremaException with the child's failure and last log lines unless the exit code is 0 */
  def finish(failed: Option[Event.Failed], seconds: Long = 30): Unit = {
    if (!process.waitFor(seconds, TimeUnit.SECONDS))
      throw new CremaException(s"`crema $subcommand` did not end within $seconds s${tail()}")
    keeper.join(2000) // the rest of its log
    val code = process.exitValue
    for (seconds <- watch.flatMap(_.killedAfter) if code != 0) throw new CremaException(
      s"`crema $subcommand` (pid $pid, host ${InetAddress.getLocalHost.getHostName}) has been silent for " +
        s"$seconds s and was killed: it was stopped, or its machine is overloaded. Spark runs the task again where " +
        s"spark.task.maxFailures allows; spark.crema.stepTimeout is how long silence is borne${tail()}")
    if (code != 0 || failed.isDefined) {
      Edges.endWithJvm() // Ctrl-C reaches the processes of a local master as well, and Spark would log this one's end
      val how = Child.ending(code)
      val why = failed.fold(s"a process of this run $how without a word")(_.getStory)
      throw CremaException.of(failed.fold("")(_.getKind), s"$why\n`crema $subcommand` (pid $pid) $how${tail()}")
    }
  }

  /** Closes stdin, at which the child ends by itself, and kills it when it has not within 0.2 s. While another thread
    * writes to stdin it is not closed: that thread may be blocked on a full pipe, and closing would wait for it.
    */
  override def close(): Unit = if (process != null) {
    ranges.getAndSet(None).foreach(_.close())
    if (writing.tryLock())
      try out.close()
      catch { case _: IOException => }
      finally writing.unlock()
    val ended =
      try process.waitFor(200, TimeUnit.MILLISECONDS)
      catch { case _: InterruptedException => Thread.currentThread.interrupt(); false }
    if (!ended) process.destroyForcibly()
  }

  private def daemon(name: String)(body: => Unit): Thread = {
    val thread = new Thread(() => body, name)
    thread.setDaemon(true)
    thread.start()
    thread
  }
}

object Child {

  /** Seconds; a child says every second that it is alive. */
  private val LeastSilence = 5.0

  /** One that works for this task alone and says every second that it is alive: `crema score`, `rows`, `index`. */
  def ofTask(subcommand: String, job: Job.Builder): Child = {
    val silence = math.max(Cluster.stepTimeout(SparkEnv.get.conf), LeastSilence)
    val child = new Child(subcommand, job.setStepTimeout(silence).build(), Some(silence))
    child.endWith(TaskContext.get())
    child
  }

  /** How a process ended, by its exit code as Java gives it. */
  private[crema] def ending(code: Int): String =
    if (code > 128) s"was killed by ${signal(code - 128)}" else s"ended with exit code $code"

  /** What people call it, and what most often sends it. */
  private def signal(number: Int): String = number match {
    case 4 => "signal 4 (SIGILL): it met an instruction that this CPU lacks; please report it with the CPU's name"
    case 6 => "signal 6 (SIGABRT); please report it with its log"
    case 7 => "signal 7 (SIGBUS): a file that it maps was cut short, or its disk failed"
    case 9 =>
      "signal 9 (SIGKILL): somebody killed it, most often the kernel or the container's guard for want of memory " +
        "(see spark.executor.memoryOverhead and the machine's own log)"
    case 11 => "signal 11 (SIGSEGV); please report it with its log"
    case 15 => "signal 15 (SIGTERM): somebody asked it to end"
    case other => s"signal $other"
  }
}
