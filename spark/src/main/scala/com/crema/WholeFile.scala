package com.crema

import java.io.{File, IOException}
import java.nio.file.{Files, StandardCopyOption}
import java.util.UUID

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileAlreadyExistsException, FileSystem, FileUtil, Options, Path}
import org.apache.hadoop.hdfs.DistributedFileSystem

/** Files that are seen whole or not at all: written under a name of their own, then renamed over what is there. What
  * could not be written is removed again.
  */
object WholeFile {
  /** On this machine. @param write makes the file, or folder, that it is given the name of */
  def local(to: File)(write: File => Unit): Unit = {
    val part = new File(to.getPath + ".part")
    FileUtil.fullyDelete(part)
    try {
      write(part)
      Files.move(part.toPath, to.toPath, StandardCopyOption.ATOMIC_MOVE)
    } finally FileUtil.fullyDelete(part) // nothing is there when it was moved
  }

  /** On any of Hadoop's file systems. HDFS and local disks put the new file in the old one's place in one step;
    * elsewhere the old one is removed first.
    *
    * @param write makes the file that it is given the name of
    * @throws CremaException when the whole new file cannot have its name: it stays, and the story tells where
    */
  def at(to: Path, conf: Configuration)(write: (FileSystem, Path) => Unit): Unit = {
    val fs = to.getFileSystem(conf)
    val part = new Path(to.getParent, s"_${to.getName}.${UUID.randomUUID()}.part") // attempts may overlap
    try write(fs, part)
    catch {
      case e: Throwable =>
        try fs.delete(part, false)
        catch { case NonFatal(_) => /* what failed before has the better words */ }
        throw e
    }
    try replace(fs, part, to)
    catch {
      case e: IOException =>
        val why = Storage.cause(e)
        throw new CremaException(s"$to cannot be written: $why; the whole new file is $part: mend that and rename it",
          e)
    }
  }

  private def replace(fs: FileSystem, part: Path, to: Path): Unit = fs match {
    case hdfs: DistributedFileSystem => hdfs.rename(part, to, Options.Rename.OVERWRITE)
    case _ =>
      def taken = fs.exists(to)
      if (taken && fs.getFileStatus(to).isDirectory)
        throw new IOException("it is a folder") // a rename would put the file into it
      def rename() =
        try fs.rename(part, to)
        catch { case _: FileAlreadyExistsException => false }
      val done = rename() || taken && fs.delete(to, false) && rename()
      if (!done) throw new IOException("the file system refuses to rename a file to it")
  }
}
