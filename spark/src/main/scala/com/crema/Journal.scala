package com.crema

import java.io.{File, FileNotFoundException}
import java.nio.charset.StandardCharsets.UTF_8

import scala.collection.mutable
import scala.util.control.NonFatal

import com.crema.wire.Wire.Event
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}

/** What one attempt of a YARN application leaves for the next: a folder with a file for each entry, so that writing an
  * entry cannot damage another.
  *
  * Entries: `seed`, `snapshot.N` (model and state of iteration N), `model` (training is over), `output` (the folder
  * that is being written). A file is recorded as a line `LENGTH TIME SUM PLACE`, with the file system's own sum of its
  * bytes, or - where it keeps none. It is recognised only if its length, its place and its time or its sum still hold,
  * so that another run's file is never taken for it, and one that a process which was stopped publishes a second time
  * is. A folder that was being written has no length or time: it is recognised by its place, which was free when the
  * attempt began.
  */
class Journal(folder: Path, conf: Configuration) {
  private val log = org.slf4j.LoggerFactory.getLogger(getClass)
  private val entries = mutable.Map[String, String]()

  /** What the attempts before have written. @throws CremaException when it is there and cannot be read */
  def read(): Journal = synchronized {
    val fs = folder.getFileSystem(conf)
    try if (fs.exists(folder)) for (file <- fs.listStatus(folder).map(_.getPath) if !file.getName.startsWith("_")) {
        val in = fs.open(file)
        try entries(file.getName) = new String(in.readAllBytes(), UTF_8)
        finally in.close()
      }
    catch {
      case NonFatal(e) =>
        throw new CremaException(s"what the attempt before did cannot be read from $folder: ${Storage.cause(e)}", e)
    }
    this
  }

  /** An entry that cannot be written is logged only: it may cost the next attempt some work, but must not end this run.
    */
  private def note(key: String, value: => String): Unit = synchronized {
    try {
      val text = value
      if (!entries.get(key).contains(text)) WholeFile.at(new Path(folder, key), conf) { (fs, part) =>
        val out = fs.create(part, true)
        try out.write(text.getBytes(UTF_8))
        finally out.close()
      }
      entries(key) = text
    } catch { case NonFatal(e) => log.warn(s"$folder: $key is not noted for another attempt: ${Storage.cause(e)}") }
  }

  def seed: Option[Int] = entries.get("seed").map(_.toInt)
  def noteSeed(seed: Int): Unit = note("seed", seed.toString)

  /** A file as it was written. */
  private case class Seen(length: Long, time: Long, sum: String, place: String) {
    override def toString: String = s"$length $time $sum $place"
    def isThere: Boolean = length >= 0 && {
      try {
        val now = seen(place)
        now.length == length && (now.time == time || sum != Unknown && now.sum == sum)
      } catch { case _: FileNotFoundException => false }
    }
  }
  private val Unknown = "-"
  private def seen(uri: String): Seen = {
    val path = Storage.pathOf(uri)
    val fs = path.getFileSystem(conf)
    val status = fs.getFileStatus(path)
    Seen(status.getLen, status.getModificationTime, sumOf(fs, path), uri)
  }
  // HDFS has one of its blocks' checksums, which costs no reading; others have none, or not of every file.
  private def sumOf(fs: FileSystem, path: Path): String =
    try Option(fs.getFileChecksum(path)).fold(Unknown)(s =>
        s.getAlgorithmName + ":" + s.getBytes.map(b => f"$b%02x").mkString)
    catch {
      case e: FileNotFoundException => throw e
      case NonFatal(_) => Unknown
    }
  private def parsed(line: String): Seen = {
    val Array(length, time, sum, place) = line.split(" ", 4)
    Seen(length.toLong, time.toLong, sum, place)
  }

  /** Records that both files of a snapshot are published in `folder`. A local folder is that of another machine, where
    * their length and time cannot be seen from here.
    */
  def noteSnapshot(s: Event.Snapshot, folder: String): Unit = {
    def found(written: String) = {
      val uri = Storage.inFolder(folder, new File(written).getName)
      if (Storage.isLocal(uri)) Seen(-1, -1, Unknown, uri) else seen(uri)
    }
    note(s"snapshot.${s.getIteration}", s"${found(s.getModel)}\n${found(s.getState)}")
  }
  def noteModel(uri: String): Unit = note("model", seen(uri).toString)
  def noteOutput(uri: String): Unit = note("output", uri)

  def output: Option[String] = entries.get("output")

  /** The trained model; None when training was not over. @throws Refusal when the file has changed or is gone */
  def model: Option[String] = entries.get("model").map(parsed).map { m =>
    if (!m.isThere) refuse("had trained the model", m, "is", "score what is there without -train")
    m.place
  }

  /** Iteration, model and state of the newest snapshot whose files are unchanged; None when none was written. @throws
    * Refusal when all have changed or are gone
    */
  def snapshot: Option[(Long, String, String)] = {
    val all = entries.toSeq.collect {
      case (key, text) if key.startsWith("snapshot.") =>
        key.stripPrefix("snapshot.").toLong -> text.split("\n").map(parsed)
    }.sortBy(-_._1)
    val found = all.collectFirst {
      case (n, Array(model, state)) if model.isThere && state.isThere => (n, model.place, state.place)
    }
    if (found.isEmpty) {
      for ((n, files) <- all.headOption)
        refuse(s"had trained $n iterations", files.head, "and its state are", "resume with -snapshot and -weights")
    }
    found
  }

  private def refuse(did: String, file: Seen, are: String, remedy: String): Nothing = {
    val why =
      if (Storage.isLocal(file.place))
        "on the disk of another machine, or changed since; name -model on a shared file system"
      else "gone or changed since"
    throw new Refusal(s"the attempt before this one $did, and ${file.place} $are $why. Training does not begin again " +
      s"by itself: $remedy, or submit the job anew")
  }
}
