package com.crema

import java.io.{FilterInputStream, InputStream}

/** Kills a process that has not moved a byte for `seconds` in which it was waited for. Its end then ends the wait. A
  * thread counts them in steps, so that a pause of this JVM, which stops the thread too, is no silence of the process.
  */
private[crema] class SilenceWatch(process: Process, name: String, seconds: Double) {
  @volatile private var waits = 0L // odd: somebody waits
  @volatile private var killed = false

  def killedAfter: Option[Long] = if (killed) Some(math.round(seconds)) else None

  /** What the body waits for counts as of the process. One thread. */
  def waiting[T](body: => T): T = {
    waits += 1
    try body
    finally waits += 1
  }

  def watched(stream: InputStream): InputStream = new FilterInputStream(stream) {
    override def read(): Int = waiting(stream.read())
    override def read(to: Array[Byte], at: Int, most: Int): Int = waiting(stream.read(to, at, most))
  }

  private def count(): Unit = {
    val step = math.max(10, math.min(1000, (seconds * 100).toLong)) // ms
    var (seen, silent) = (waits, 0.0)
    while (process.isAlive && !killed) {
      val from = System.nanoTime()
      Thread.sleep(step)
      val now = waits
      if (now == seen && now % 2 == 1) silent += math.min((System.nanoTime() - from) / 1e6, 2.0 * step) / 1000
      else silent = 0
      seen = now
      if (silent >= seconds) { killed = true; process.destroyForcibly() }
    }
  }

  private val thread = new Thread(() => count(), name)
  thread.setDaemon(true)
  thread.start()
}
