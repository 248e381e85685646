package com.crema

import java.io.{File, IOException}
import java.nio.channels.{FileChannel, OverlappingFileLockException}
import java.nio.file.{Files, LinkOption, Path, StandardCopyOption, StandardOpenOption}

import org.apache.hadoop.fs.FileUtil

/** A JVM's folder for temporary files, `crema-work-<pid>-<start>-<random>`. A file `.lock` in it is locked as long as
  * the process lives, however it ends. A later JVM of the same user removes the folders whose lock is free. (The pid
  * alone does not tell: containers with pid namespaces of their own share /tmp. With the time at which the process
  * began it tells this JVM's own folders, as closing a second descriptor of one's own lock file would release the
  * lock.)
  */
private[crema] object WorkFolder {
  private val All = "crema-work-"
  private val own = {
    val process = ProcessHandle.current
    s"$All${process.pid}-${process.info.startInstant.map[Long](_.toEpochMilli).orElse(0L)}-"
  }

  def make(root: File): File = {
    clear(root)
    val folder = Files.createTempDirectory(root.toPath, own)
    val unnamed = folder.resolve(".lock.new") // renamed once it is locked, so that no other JVM finds it unlocked
    val channel = FileChannel.open(unnamed, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)
    channel.lock()
    Files.move(unnamed, folder.resolve(".lock"), StandardCopyOption.ATOMIC_MOVE)
    Runtime.getRuntime.addShutdownHook(new Thread(() => { FileUtil.fullyDelete(folder.toFile); channel.close() }))
    folder.toFile
  }

  /** Removes what processes that are gone left in `root`. */
  def clear(root: File): Unit = for (folder <- Option(root.listFiles).toSeq.flatten)
    if (folder.getName.startsWith(All) && !folder.getName.startsWith(own))
      try remove(folder.toPath)
      catch { case _: IOException | _: OverlappingFileLockException => /* another does it, or it is not ours */ }

  private def remove(folder: Path): Unit = {
    val lock = folder.resolve(".lock")
    if (Files.isDirectory(folder, LinkOption.NOFOLLOW_LINKS) && Files.isRegularFile(lock, LinkOption.NOFOLLOW_LINKS)) {
      val channel = FileChannel.open(lock, StandardOpenOption.WRITE)
      try if (channel.tryLock() != null) FileUtil.fullyDelete(folder.toFile)
      finally channel.close()
    }
  }
}
