package com.crema

import java.util.Properties

import scala.collection.JavaConverters._
import scala.util.control.NonFatal

import com.crema.wire.Wire.Event
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

/** What an application has done, for its next attempt: in a file of its own, replaced whole at each entry.
  *
  * A file that was written is known again by place, length and time, so nobody else's is taken for it. Entries: `seed`, `snapshot.N` (model and state of
  * iteration N), `model` (training is over), `output` (the folder that is being written).
  */
class Journal(file: Path, conf: Configuration) {
  private val log = org.slf4j.LoggerFactory.getLogger(getClass)
  private val entries = new Properties

  /** What the attempts before have written. @throws CremaException when it is there and cannot be read */
  def read(): Journal = synchronized {
    val fs = file.getFileSystem(conf)
    try if (fs.exists(file)) { val in = fs.open(file); try entries.load(in) finally in.close() }
    catch { case NonFatal(e) => throw new CremaException(s"what the attempt before did cannot be read from $file: ${Storage.cause(e)}", e) }
    this
  }

  private def put(key: String, value: String): Unit = {
    entries.setProperty(key, value)
    val part = new Path(file.getParent, s"${file.getName}.part")
    val fs = file.getFileSystem(conf)
    val out = fs.create(part, true)
    try entries.store(out, null) finally out.close()
    fs.delete(file, false)
    fs.rename(part, file)
  }

  /** An entry that cannot be written costs the next attempt work, not this one its run. */
  private def note(key: String, value: => String): Unit = synchronized {
    try put(key, value) catch { case NonFatal(e) => log.warn(s"$file: $key is not noted for another attempt: ${Storage.cause(e)}") }
  }

  def seed: Option[Int] = Option(entries.getProperty("seed")).map(_.toInt)
  def noteSeed(seed: Int): Unit = note("seed", seed.toString)

  private def seen(uri: String): String = if (Storage.isLocal(uri)) s"local $uri" else {
    val path = new Path(uri)
    val status = path.getFileSystem(conf).getFileStatus(path)
    s"${status.getLen} ${status.getModificationTime} $uri"
  }
  private def place(entry: String): String = entry.substring(entry.lastIndexOf(' ') + 1)
  private def whole(entry: String): Boolean = try seen(place(entry)) == entry catch { case _: java.io.FileNotFoundException => false }

  /** Both files of a snapshot are published; `folder` is where. */
  def noteSnapshot(s: Event.Snapshot, folder: String): Unit = {
    def uri(written: String) = Storage.inFolder(folder, new java.io.File(written).getName)
    note(s"snapshot.${s.getIteration}", s"${seen(uri(s.getModel))}\n${seen(uri(s.getState))}")
  }
  def noteModel(uri: String): Unit = note("model", seen(uri))
  def noteOutput(uri: String): Unit = note("output", uri)

  /** The trained model, still as it was written. */
  def model: Option[String] = Option(entries.getProperty("model")).filter(e => !e.startsWith("local ") && whole(e)).map(place)
  def output: Option[String] = Option(entries.getProperty("output"))

  /** The newest snapshot that is still as it was written: iteration, model, state. None: none was written. @throws Refusal when all have gone or changed */
  def snapshot: Option[(Long, String, String)] = {
    val all = entries.stringPropertyNames.asScala.toSeq.filter(_.startsWith("snapshot.")).map(k => k.stripPrefix("snapshot.").toLong -> entries.getProperty(k).split("\n")).sortBy(-_._1)
    val found = all.collectFirst { case (n, Array(model, state)) if Seq(model, state).forall(f => !f.startsWith("local ") && whole(f)) => (n, place(model), place(state)) }
    if (found.isEmpty && all.nonEmpty) {
      val (n, files) = all.head
      val why = if (files.head.startsWith("local ")) "lie on a disk of the machine that wrote them; name -model on a shared file system" else "are gone or were changed since"
      throw new Refusal(s"the attempt before this one had trained ${n} iterations, and its snapshots (${place(files.head)}) $why. Training does not begin again by itself: resume with -snapshot and -weights, or submit the job anew")
    }
    found
  }
}
