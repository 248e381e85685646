package com.crema

import java.util.concurrent.{ExecutorService, Executors}

/** Threads that do not keep a JVM from ending, as file systems may hang. */
private[crema] object Daemon {
  /** One thread that does what it is given, in order. */
  def executor(name: String): ExecutorService = Executors.newSingleThreadExecutor { body =>
    val t = new Thread(body, name)
    t.setDaemon(true)
    t
  }
}
