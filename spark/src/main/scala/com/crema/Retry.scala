package com.crema

import java.io.{FileNotFoundException, IOException}
import java.nio.file.NoSuchFileException

import scala.annotation.tailrec
import scala.util.control.NonFatal

import org.slf4j.LoggerFactory

/** Does again what fails in a way that may pass, as while a name node is in safe mode or a store is busy: after 1 s,
  * then after twice as long each time, at most 15 s, for `seconds` in all.
  *
  * @param now seconds of a steady clock
  * @param sleep waits for so many seconds
  */
private[crema] class Retry(seconds: Double, now: () => Double = () => System.nanoTime() / 1e9,
    sleep: Double => Unit = s => Thread.sleep((s * 1000).toLong)) {
  @volatile private var over = false

  /** From now on each is done once. */
  def end(): Unit = over = true

  /** @param what for the log, a sentence's beginning
    * @throws Throwable the last failure of body
    */
  def apply[A](what: String)(body: => A): A = {
    val last = now() + seconds
    @tailrec def attempt(pause: Double): A = {
      val done =
        try Right(body)
        catch { case NonFatal(e) => Left(e) }
      done match {
        case Right(result) => result
        case Left(e) if over || !Retry.mayPass(e) || now() + pause > last => throw e
        case Left(e) =>
          Retry.log.warn(s"$what: ${JobError.message(e)}; it is tried again in ${pause.toLong} s")
          sleep(pause)
          attempt(math.min(2 * pause, Retry.LongestPause))
      }
    }
    attempt(1)
  }
}

private[crema] object Retry {
  private val log = LoggerFactory.getLogger(getClass)
  private val LongestPause = 15.0

  /** Whether it is an error of a file system which neither the place nor its size or permissions explain. */
  def mayPass(e: Throwable): Boolean = {
    val chain = Storage.causes(e)
    val stays = chain.exists {
      case _: FileNotFoundException | _: NoSuchFileException => true
      case t => t.getClass.getName.contains("Quota") || String.valueOf(t.getMessage).contains("No space left on device")
    }
    chain.exists(_.isInstanceOf[IOException]) && !stays && !Storage.isLasting(e)
  }
}
