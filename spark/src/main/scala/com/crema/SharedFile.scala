package com.crema

import java.io.{BufferedOutputStream, File, FileInputStream, FileOutputStream, IOException}
import java.lang.ref.WeakReference
import java.security.MessageDigest

import scala.collection.mutable

import org.apache.spark.{SparkContext, TaskContext}
import org.apache.spark.broadcast.Broadcast

/** A file of the driver that tasks read as a local file, with the contents it had when it was shared. It travels as
  * many small broadcasts, which Spark passes on between executors and keeps on disk where memory is short, so that no
  * heap ever holds the whole: one broadcast of a model of 500 MB took three times that of every heap. Spark frees the
  * broadcasts when nothing refers to them any more; not earlier, as lost partitions of a scored frame may be computed
  * again.
  *
  * @param key identifies content and name
  */
class SharedFile private (val key: String, name: String, size: Long, pieces: Array[Broadcast[Array[Byte]]])
    extends Serializable {
  /** In a task: the path of the local copy, which stays until the task ends. All tasks of a JVM share one copy. @throws
    * CremaException when it cannot be written
    */
  def fetch(context: TaskContext): String = SharedFile.copies.of(key, context) { file =>
    try WholeFile.local(file) { part =>
        val out = new BufferedOutputStream(new FileOutputStream(part))
        try pieces.foreach(p => out.write(p.value))
        finally out.close()
      }
    catch {
      case e: IOException =>
        throw new CremaException(s"$name ($size bytes) cannot be copied to ${Storage.workFolder}: " +
            s"${Storage.cause(e)}; make room there, or set java.io.tmpdir", e)
    }
  }
}

object SharedFile {
  private val PieceBytes = 4 << 20

  /** The shared files of this driver that something still refers to, by application and key. */
  private val known = mutable.Map[(String, String), WeakReference[SharedFile]]()

  /** Shares a file; the same content under the same name is shared once. @param name its ending is kept, as `.h5` has a
    * meaning
    */
  def of(sc: SparkContext, file: File, name: String): SharedFile = synchronized {
    val key = s"${digest(file)}-$name"
    for (gone <- known.collect { case (k, held) if held.get == null => k }.toSeq) known.remove(gone)
    known.get((sc.applicationId, key)).flatMap(held => Option(held.get)).getOrElse {
      val made = send(sc, file, key, name)
      known((sc.applicationId, key)) = new WeakReference(made)
      made
    }
  }

  private def pieces[A](file: File)(body: Iterator[Array[Byte]] => A): A = {
    val in = new FileInputStream(file)
    try body(Iterator.continually(in.readNBytes(PieceBytes)).takeWhile(_.nonEmpty))
    finally in.close()
  }

  private def digest(file: File): String = {
    val sha = MessageDigest.getInstance("SHA-256")
    pieces(file)(_.foreach(bytes => sha.update(bytes)))
    sha.digest().map(b => f"$b%02x").mkString
  }

  private def send(sc: SparkContext, file: File, key: String, name: String): SharedFile = pieces(file) { all =>
    var size = 0L
    val sent = all.map { bytes => size += bytes.length; sc.broadcast(bytes) }.toArray
    new SharedFile(key, name, size, sent)
  }

  private lazy val copies = new Copies(Storage.workFolder)
}

/** This machine's copies of shared files. Copies in use stay, and of the others the `Kept` used last: a session that
  * scores with one model after another does not fill the disk, and one that alternates between a few does not copy them
  * again.
  */
private[crema] class Copies(folder: => File) {
  private val users = mutable.LinkedHashMap[String, Int]() // the one used last is last

  /** @param make writes the file, when it is not there */
  def of(key: String, context: TaskContext)(make: File => Unit): String = synchronized {
    val file = new File(folder, key)
    if (!file.exists()) make(file)
    use(key, 1)
    context.addTaskCompletionListener[Unit](_ => release(key))
    file.getPath
  }

  private def use(key: String, tasks: Int): Unit = { val n = users.remove(key).getOrElse(0); users(key) = n + tasks }

  private def release(key: String): Unit = synchronized {
    use(key, -1)
    for (unused <- users.toSeq.collect { case (k, 0) => k }.dropRight(Copies.Kept)) {
      users.remove(unused)
      new File(folder, unused).delete()
    }
  }
}

private[crema] object Copies { val Kept = 2 }
