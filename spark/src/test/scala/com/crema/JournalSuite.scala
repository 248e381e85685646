package com.crema

import java.net.URI
import java.nio.file.{Files, Paths}

import com.crema.wire.Wire.Event
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileChecksum, MD5MD5CRC32FileChecksum, Path, RawLocalFileSystem}
import org.apache.hadoop.io.MD5Hash
import org.scalatest.funsuite.AnyFunSuite

/** A folder of this machine under another scheme: to its users it looks like a shared file system. */
class SharedFolder extends RawLocalFileSystem {
  override def getUri: URI = URI.create("shared:///")
  override def getScheme: String = "shared"
}

/** One that keeps sums of files, as HDFS does. */
class SummingFolder extends SharedFolder {
  override def getFileChecksum(path: Path): FileChecksum = {
    val in = open(path)
    try new MD5MD5CRC32FileChecksum(0, 0, MD5Hash.digest(in))
    finally in.close()
  }
}

/** Stands for a process that ends just before it renames a file, so that nothing is cleaned up. */
class EndsAtRename extends SharedFolder {
  override def rename(from: Path, to: Path): Boolean =
    if (EndsAtRename.now) throw EndsAtRename.Killed else super.rename(from, to)
}
object EndsAtRename {
  object Killed extends scala.util.control.ControlThrowable
  @volatile var now = false
}

class JournalSuite extends AnyFunSuite {
  private val conf = new Configuration()
  conf.setClass("fs.shared.impl", classOf[SharedFolder], classOf[org.apache.hadoop.fs.FileSystem])
  private val folder = Files.createTempDirectory("journal")
  private val at = s"shared:$folder"
  private def journal = new Journal(new Path(s"$at/staging/journal"), conf)
  private def snapshot(n: Int) = Event.Snapshot.newBuilder.setIteration(n)
    .setModel(s"/written/m_iter_$n.caffemodel").setState(s"/written/m_iter_$n.solverstate").build()
  private def write(n: Int, text: String = "x"): Unit =
    for (kind <- Seq("caffemodel", "solverstate")) Files.writeString(Paths.get(s"$folder/m_iter_$n.$kind"), s"$text$n")
  Files.createDirectory(folder.resolve("staging"))

  test("the newest snapshot that is as it was written, of this application's own; refused when all are gone") {
    write(40) // an older run's, in the same folder
    assert(journal.read().snapshot === None)
    val first = journal
    first.noteSeed(7)
    for (n <- Seq(10, 20)) { write(n); first.noteSnapshot(snapshot(n), at) }
    val second = journal.read()
    assert(second.seed === Some(7) && second.model === None && second.output === None)
    assert(second.snapshot === Some((20L, s"$at/m_iter_20.caffemodel", s"$at/m_iter_20.solverstate")))
    write(20, "somebody else's ")
    assert(second.snapshot.map(_._1) === Some(10L))
    Files.delete(folder.resolve("m_iter_10.solverstate"))
    val e = intercept[Refusal](journal.read().snapshot).getMessage
    assert(e.contains("had trained 20 iterations") && e.contains("are gone or changed since") &&
        e.contains("-snapshot and -weights"), e)
  }

  test("a snapshot that is published again with the same bytes is the same one, where files have sums") {
    for ((kind, sums) <- Seq(classOf[SummingFolder] -> true, classOf[SharedFolder] -> false)) {
      val own = new Configuration(conf)
      own.setClass("fs.shared.impl", kind, classOf[org.apache.hadoop.fs.FileSystem])
      own.setBoolean("fs.shared.impl.disable.cache", true)
      val to = new Path(s"$at/staging/again-$sums")
      for (n <- Seq(10, 20)) { write(n); new Journal(to, own).noteSnapshot(snapshot(n), at) }
      for (kind <- Seq("caffemodel", "solverstate"))
        Files.setLastModifiedTime(folder.resolve(s"m_iter_20.$kind"), java.nio.file.attribute.FileTime.fromMillis(1))
      assert(new Journal(to, own).read().snapshot.map(_._1) === Some(if (sums) 20L else 10L))
      Files.writeString(folder.resolve("m_iter_20.solverstate"), "y20")
      assert(new Journal(to, own).read().snapshot.map(_._1) === Some(10L))
    }
  }

  test("snapshots on a local disk cannot be found by another machine") {
    val j = new Journal(new Path(s"$at/staging/local"), conf)
    write(10)
    j.noteSnapshot(snapshot(10), folder.toString)
    val e = intercept[Refusal](new Journal(new Path(s"$at/staging/local"), conf).read().snapshot).getMessage
    assert(e.contains("on the disk of another machine, or changed since; name -model on a shared file system"), e)
  }

  test("a trained model and an output that was begun") {
    val j = new Journal(new Path(s"$at/staging/model"), conf)
    Files.writeString(folder.resolve("m.model"), "m")
    j.noteModel(s"$at/m.model")
    j.noteOutput(s"$at/rows")
    val next = new Journal(new Path(s"$at/staging/model"), conf).read()
    assert(next.model === Some(s"$at/m.model") && next.output === Some(s"$at/rows"))
    Files.writeString(folder.resolve("m.model"), "other")
    val e = intercept[Refusal](next.model).getMessage
    assert(e.contains(s"had trained the model, and $at/m.model is gone or changed since") &&
        e.contains("score what is there without -train"), e)
    Files.delete(folder.resolve("m.model"))
    intercept[Refusal](next.model)
  }

  test("blanks in paths; a model on a local disk that this machine has, too") {
    val (home, to) = (Files.createDirectories(folder.resolve("my  models")), new Path(s"$at/staging/blanks"))
    for (name <- Seq("m", "m_iter_10.caffemodel", "m_iter_10.solverstate")) Files.writeString(home.resolve(name), name)
    val j = new Journal(to, conf)
    j.noteSnapshot(snapshot(10), s"shared:$home")
    j.noteModel(s"shared:$home/m")
    val next = new Journal(to, conf).read()
    assert(next.model === Some(s"shared:$home/m") && next.snapshot === Some((10L, s"shared:$home/m_iter_10.caffemodel",
        s"shared:$home/m_iter_10.solverstate")))
    j.noteModel(s"file:$home/m")
    assert(new Journal(to, conf).read().model === Some(s"file:$home/m"))
  }

  test("a master that is killed while it notes something has noted all that was before") {
    val killed = new Configuration(conf)
    killed.setClass("fs.shared.impl", classOf[EndsAtRename], classOf[org.apache.hadoop.fs.FileSystem])
    killed.setBoolean("fs.shared.impl.disable.cache", true)
    val to = new Path(s"$at/staging/killed")
    val j = new Journal(to, killed)
    write(10)
    write(20)
    j.noteSeed(7)
    j.noteSnapshot(snapshot(10), at)
    EndsAtRename.now = true
    try intercept[scala.util.control.ControlThrowable](j.noteSnapshot(snapshot(20), at))
    finally EndsAtRename.now = false
    val next = new Journal(to, killed).read()
    assert(next.seed === Some(7) && next.snapshot.map(_._1) === Some(10L))
  }
}
