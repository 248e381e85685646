package com.crema

import java.io.File
import java.util.concurrent.{FutureTask, TimeUnit, TimeoutException}

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, FileUtil, Path, UnsupportedFileSystemException}
import org.apache.hadoop.security.AccessControlException

/** Hadoop's settings, so that they can travel to tasks. */
case class HadoopSettings(entries: Map[String, String]) {
  def configuration: Configuration = {
    val c = new Configuration()
    entries.foreach { case (k, v) => c.set(k, v) }
    c
  }
}

object HadoopSettings {
  def of(c: Configuration): HadoopSettings = {
    val entries = Map.newBuilder[String, String]
    c.forEach(e => entries += e.getKey -> e.getValue)
    HadoopSettings(entries.result())
  }
}

/** Copies files between Hadoop's FileSystems and local paths, as the executable reads local paths only. */
object Storage {
  private val Scheme = "^([A-Za-z][A-Za-z0-9+.-]*):.*".r
  private def scheme(uri: String): Option[String] = uri match {
    case Scheme(name) => Some(name.toLowerCase(java.util.Locale.ROOT))
    case _ => None
  }

  /** What a user's URI means; no other code decides that. Without a scheme it is a path of Hadoop's default file system
    * (fs.defaultFS), relative to the user's folder there. `file:`, and plain paths where the default file system is the
    * local one, are relative to the working folder. In what this returns only local files may lack a scheme.
    */
  def resolve(written: String, conf: Configuration): String =
    if (scheme(written).exists(_ != "file")) written
    else if (scheme(written).isDefined || defaultIsLocal(conf)) "file:" + new File(localPath(written)).getAbsolutePath
    else reaching(written) {
      val fs = FileSystem.get(conf)
      new Path(written).makeQualified(fs.getUri, fs.getWorkingDirectory).toString
    }

  private def defaultIsLocal(conf: Configuration): Boolean = FileSystem.getDefaultUri(conf).getScheme == "file"

  /** The same for something that must exist. @throws IllegalArgumentException when it does not, and a local file of
    * that name does
    */
  def resolveInput(written: String, what: => String, conf: Configuration): String = {
    val uri = resolve(written, conf)
    if (!isLocal(uri) && scheme(written).isEmpty && new File(written).exists() && !exists(uri, conf))
      throw new WrongArgument(
        s"there is nothing at $uri, which $what $written means, as fs.defaultFS is " +
          s"${FileSystem.getDefaultUri(conf)}; on the local disk there is: write file:$written if that is meant")
    uri
  }

  /** Plain paths and file: URIs are local: they mean the same path on whichever machine uses them. */
  def isLocal(uri: String): Boolean = scheme(uri).forall(_ == "file")

  /** file:relative, file:/absolute, file:///absolute, as they are: nothing is escaped. */
  def localPath(uri: String): String =
    if (scheme(uri).isEmpty) uri
    else {
      val path = uri.substring("file:".length)
      val slashes = path.takeWhile(_ == '/').length
      if (slashes == 2) path.drop(2).dropWhile(_ != '/') // file://host/path
      else if (slashes > 1) path.drop(slashes - 1)
      else path
    }

  /** A local path without its file:, for what takes paths and for people; all others as they are. */
  def plain(uri: String): String = if (isLocal(uri)) localPath(uri) else uri

  /** With its file system, so that it means the same where it is resolved again: a plain path may be one of HDFS. */
  def named(uri: String): String = if (isLocal(uri)) "file:" + localPath(uri) else uri

  /** As Hadoop names it. */
  def pathOf(uri: String): Path = if (isLocal(uri)) new Path(new File(localPath(uri)).toURI) else new Path(uri)

  /** A file in a folder; the folder may be the root of a store. */
  def inFolder(folder: String, name: String): String =
    if (isLocal(folder)) new File(localPath(folder), name).getPath else new Path(new Path(folder), name).toString

  def exists(uri: String, conf: Configuration): Boolean =
    if (isLocal(uri)) new File(localPath(uri)).exists()
    else reaching(uri) {
      val p = new Path(uri)
      p.getFileSystem(conf).exists(p)
    }

  /** The same of what a worker on this machine would read. */
  def existsHere(uri: String, conf: Configuration): Boolean =
    if (isLocal(uri)) new File(shipped(localPath(uri))).exists() else exists(uri, conf)

  /** @throws CremaException that names the place and the cause, unless it is one already */
  private[crema] def reaching[A](uri: String)(body: => A): A =
    try body
    catch {
      case e: CremaException => throw e
      case NonFatal(e) =>
        val message = s"$uri cannot be reached: ${cause(e)}; correct it, or see to its file system"
        throw CremaException.of(if (isLasting(e)) "invalid" else "", message, e)
    }

  def isFolder(uri: String, conf: Configuration): Boolean =
    if (isLocal(uri)) new File(localPath(uri)).isDirectory
    else reaching(uri) {
      val p = new Path(uri)
      val fs = p.getFileSystem(conf)
      fs.exists(p) && fs.getFileStatus(p).isDirectory
    }

  /** The bytes that fetch() would copy: 0 for local paths and for what does not exist. */
  def remoteBytes(uri: String, conf: Configuration): Long =
    if (isLocal(uri)) 0
    else {
      val p = new Path(uri)
      val fs = p.getFileSystem(conf)
      if (fs.exists(p)) fs.getContentSummary(p).getLength else 0
    }

  /** A local path with the contents of `uri`: itself when local, else a copy made once per JVM. */
  def fetch(uri: String, conf: Configuration): String = synchronized {
    if (isLocal(uri)) return shipped(localPath(uri))
    val source = new Path(uri)
    val fs = source.getFileSystem(conf)
    if (!fs.exists(source)) throw new CremaException(s"there is nothing at $uri; check the path")
    val key = Integer.toHexString((uri, stateOf(fs, source)).hashCode)
    val target = new File(workFolder, s"$key-${source.getName}")
    if (!target.exists()) WholeFile.local(target) { part =>
      try FileUtil.copy(fs, source, part, false, conf)
      catch { case NonFatal(e) => throw new CremaException(s"$uri cannot be copied to $workFolder: ${cause(e)}", e) }
      new File(part.getParentFile, s".${part.getName}.crc").delete()
      val (have, want) = (sizeOf(part), fs.getContentSummary(source).getLength)
      if (have < want)
        throw new CremaException(s"the copy of $uri has $have bytes of $want; is the disk of ${workFolder} full?")
    }
    target.getPath
  }

  /** What changes when a file, or one in a folder, is written anew: sizes and times of the files alone. A folder's own
    * time is that of the question on S3A, and stays where a file in it is replaced on others.
    */
  private def stateOf(fs: FileSystem, source: Path): Seq[(String, Long, Long)] = fs.listStatus(source).toSeq.flatMap {
    s =>
      if (s.isDirectory) stateOf(fs, s.getPath)
      else Seq((s.getPath.toString, s.getLen, s.getModificationTime))
  }.sorted

  /** A local file that does not exist here may have been shipped with --files, which puts it into the executor's
    * working folder under its own name.
    */
  private def shipped(path: String): String = {
    val here = new File(new File(path).getName)
    if (new File(path).exists() || !here.exists()) path else here.getAbsolutePath
  }

  /** The reason a file system gave, without exception classes and stack traces. */
  def cause(e: Throwable): String = {
    val chain = causes(e)
    def text(t: Throwable) =
      Option(t.getMessage).getOrElse(t.toString).split("\n").head.split("; For more details").head.trim
    chain.collectFirst {
      case t: java.net.UnknownHostException => s"the host ${text(t)} is not known"
      case t: java.net.ConnectException => text(t)
      case t: UnsupportedFileSystemException => text(t)
      case t: java.nio.file.AccessDeniedException => s"permission denied: ${text(t)}"
      case t: AccessControlException => text(t)
    }.getOrElse(text(chain.last))
  }

  /** Whether a file system's error stays until the user changes the request or permissions; all other errors may be
    * temporary.
    */
  private[crema] def isLasting(e: Throwable): Boolean = causes(e).exists {
    case _: Lasting | _: UnsupportedFileSystemException => true
    case _: AccessControlException | _: java.nio.file.AccessDeniedException => true
    case _ => false
  }

  /** An exception and its causes, the first first. */
  private[crema] def causes(e: Throwable): List[Throwable] =
    Iterator.iterate(e)(_.getCause).takeWhile(_ != null).take(20).toList

  /** Why a file cannot be written at a place. */
  case class Unwritable(why: String, lasting: Boolean)

  /** Whether a file can be written at `uri`, found by writing a small one beside it: None, or the reason. */
  def refusal(uri: String, conf: Configuration, seconds: Long = 60): Option[Unwritable] = {
    val answer = new FutureTask[Option[Unwritable]](() =>
      try { writeBeside(uri, conf); None }
      catch { case NonFatal(e) => Some(Unwritable(cause(e), isLasting(e))) })
    val thread = new Thread(answer, "crema-probe")
    thread.setDaemon(true)
    thread.start()
    try answer.get(seconds, TimeUnit.SECONDS)
    catch {
      case _: TimeoutException =>
        thread.interrupt()
        Some(Unwritable(s"no answer within $seconds s", lasting = false))
    }
  }

  private def writeBeside(uri: String, conf: Configuration): Unit = {
    val to = pathOf(uri)
    val fs = to.getFileSystem(conf)
    if (fs.exists(to) && fs.getFileStatus(to).isDirectory) throw new WrongInput("it is a folder; name a file in it")
    val probe = new Path(to.getParent, s"_${to.getName}.${java.util.UUID.randomUUID()}.probe")
    try {
      val out = fs.create(probe, false)
      try out.write(new Array[Byte](4096))
      finally out.close()
    } finally fs.delete(probe, false)
  }

  /** Copies a local file to exactly `uri`. @throws CremaException that names the place and the cause */
  def publish(local: String, uri: String, conf: Configuration): Unit = publishWith(local, uri, conf)(())

  /** Copies two files: both are there as a whole before either gets its name, the first one first, so that a pair which
    * they replace is there until then. @throws CremaException as publish() does
    */
  def publishPair(files: Seq[(String, String)], conf: Configuration): Unit = {
    val Seq((first, firstAt), (second, secondAt)) = files
    publishWith(second, secondAt, conf)(publish(first, firstAt, conf))
  }

  /** @param between what is done when all is copied and has not got its name */
  private def publishWith(local: String, uri: String, conf: Configuration)(between: => Unit): Unit =
    try {
      val to = pathOf(uri)
      WholeFile.at(to, conf) { (fs, part) =>
        fs.copyFromLocalFile(false, true, new Path(new File(local).toURI), part)
        between
      }
    } catch {
      case e: CremaException => throw e
      case NonFatal(e) =>
        val message = s"$uri cannot be written: ${cause(e)}; mend that or name another place, and run again"
        throw new CremaException(message, e)
    }

  /** This JVM's temporary folder. It is removed with the JVM, and what killed JVMs left is removed by the next one. On
    * YARN it is inside the container's own folder, which YARN removes.
    */
  lazy val workFolder: File = WorkFolder.make(new File(System.getProperty("java.io.tmpdir")))

  private def sizeOf(file: File): Long = if (file.isDirectory) file.listFiles.map(sizeOf).sum else file.length
}
