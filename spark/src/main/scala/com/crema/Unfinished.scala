package com.crema

import java.util.concurrent.atomic.AtomicBoolean

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}
import org.apache.hadoop.util.ShutdownHookManager

/** Folders that a job of Spark writes are there whole or not at all. */
object Unfinished {

  /** Runs `write`, which makes the folder at `uri`. When it fails, or the driver is asked to end (Ctrl-C), what is
    * there by then is removed, as the next run would refuse a folder that exists. What was there before is left.
    */
  def removed(uri: String, conf: Configuration)(write: => Unit): Unit = {
    val path = new Path(uri)
    val files = path.getFileSystem(conf)
    if (files.exists(path)) write
    else {
      val ended = new AtomicBoolean
      val remove: Runnable = () =>
        if (!ended.getAndSet(true))
          try files.delete(path, true)
          catch { case NonFatal(_) => () } // the error that led here is the one to report
      val hooks = ShutdownHookManager.get
      // Behind Spark's own, which ends the job (+ 30), and before file systems are closed.
      hooks.addShutdownHook(remove, FileSystem.SHUTDOWN_HOOK_PRIORITY + 20)
      try {
        write
        ended.set(true)
      } finally if (!hooks.isShutdownInProgress) {
          hooks.removeShutdownHook(remove)
          remove.run()
        }
    }
  }
}
