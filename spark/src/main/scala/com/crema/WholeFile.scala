package com.crema

import java.io.{File, IOException}
import java.nio.channels.FileChannel
import java.nio.file.{Files, StandardCopyOption, StandardOpenOption}
import java.util.UUID

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileAlreadyExistsException, FileSystem, FileUtil, LocalFileSystem, Options, Path}
import org.apache.hadoop.hdfs.DistributedFileSystem
import org.slf4j.LoggerFactory

/** Writes files so that readers see the whole file or none: under a temporary name, then renamed over the old file. On
  * a local disk both are flushed, so that a machine that loses its power keeps the old file or the new one. After a
  * failure the temporary file is removed; what a killed process leaves is removed when the same file is written an hour
  * later or more.
  */
object WholeFile {
  private val log = LoggerFactory.getLogger(getClass)
  /** Milliseconds, by the clock of the file system, after which nobody writes a temporary file any more. */
  private[crema] val Abandoned = 3600000L

  /** On this machine. @param write creates the file or folder whose path it gets */
  def local(to: File)(write: File => Unit): Unit = {
    val part = new File(to.getPath + ".part")
    FileUtil.fullyDelete(part)
    try {
      write(part)
      Files.move(part.toPath, to.toPath, StandardCopyOption.ATOMIC_MOVE)
    } finally FileUtil.fullyDelete(part) // nothing is left there after the rename
  }

  /** On any of Hadoop's file systems. HDFS and local disks replace the old file in one step; elsewhere it is deleted
    * first.
    *
    * @param write creates the file whose path it gets
    * @throws CremaException when the finished file cannot be renamed: it then stays under its temporary name, which the
    *   message gives
    */
  def at(to: Path, conf: Configuration)(write: (FileSystem, Path) => Unit): Unit = {
    val fs = to.getFileSystem(conf)
    val part = new Path(to.getParent, s"_${to.getName}.${UUID.randomUUID()}.part") // attempts may overlap
    try { write(fs, part); flush(fs, part) }
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
    try flush(fs, to.getParent)
    catch { case NonFatal(e) => log.info(s"the name of $to may not be on the disk yet: ${Storage.cause(e)}") }
    try removeAbandoned(fs, to)
    catch { case NonFatal(e) => log.info(s"older temporary files of $to may be left: ${Storage.cause(e)}") }
  }

  /** On a local disk: a file and its checksums, or the names in a folder, which Java opens alike on Linux. */
  private def flush(fs: FileSystem, path: Path): Unit = fs match {
    case local: LocalFileSystem =>
      for (p <- Seq(path, local.getChecksumFile(path)); file = new File(p.toUri.getPath) if file.exists()) {
        val channel = FileChannel.open(file.toPath, StandardOpenOption.READ)
        try channel.force(true)
        catch { case e: IOException if e.getMessage == "Invalid argument" => /* nothing to flush, say its drivers */ }
        finally channel.close()
      }
    case _ =>
  }

  /** Removes temporary files of `to`, which has just been written, that are so much older that nobody writes them. */
  private def removeAbandoned(fs: FileSystem, to: Path): Unit = {
    val Part = s"_\\Q${to.getName}\\E\\.[-0-9a-f]{36}\\.part".r
    val written = fs.getFileStatus(to).getModificationTime
    for (f <- fs.listStatus(to.getParent) if Part.pattern.matcher(f.getPath.getName).matches())
      if (written - f.getModificationTime > Abandoned) fs.delete(f.getPath, false)
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
