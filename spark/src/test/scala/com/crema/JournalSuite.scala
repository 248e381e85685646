package com.crema

import java.net.URI
import java.nio.file.{Files, Paths}

import com.crema.wire.Wire.Event
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{Path, RawLocalFileSystem}
import org.scalatest.funsuite.AnyFunSuite

/** A folder of this machine under another scheme, as a shared file system is to those who use it. */
class SharedFolder extends RawLocalFileSystem {
  override def getUri: URI = URI.create("shared:///")
  override def getScheme: String = "shared"
}

class JournalSuite extends AnyFunSuite {
  private val conf = new Configuration()
  conf.setClass("fs.shared.impl", classOf[SharedFolder], classOf[org.apache.hadoop.fs.FileSystem])
  private val folder = Files.createTempDirectory("journal")
  private val at = s"shared:$folder"
  private def journal = new Journal(new Path(s"$at/staging/journal"), conf)
  private def snapshot(n: Int) = Event.Snapshot.newBuilder.setIteration(n).setModel(s"/written/m_iter_$n.caffemodel").setState(s"/written/m_iter_$n.solverstate").build()
  private def write(n: Int, text: String = "x"): Unit = for (kind <- Seq("caffemodel", "solverstate")) Files.writeString(Paths.get(s"$folder/m_iter_$n.$kind"), s"$text$n")
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
    val e = intercept[Refusal](second.snapshot).getMessage
    assert(e.contains("had trained 20 iterations") && e.contains("are gone or were changed since") && e.contains("-snapshot and -weights"), e)
  }

  test("snapshots on a local disk cannot be found by another machine") {
    val j = new Journal(new Path(s"$at/staging/local"), conf)
    write(10)
    j.noteSnapshot(snapshot(10), folder.toString)
    val e = intercept[Refusal](new Journal(new Path(s"$at/staging/local"), conf).read().snapshot).getMessage
    assert(e.contains("lie on a disk of the machine that wrote them; name -model on a shared file system"), e)
  }

  test("a trained model and an output that was begun") {
    val j = new Journal(new Path(s"$at/staging/model"), conf)
    Files.writeString(folder.resolve("m.model"), "m")
    j.noteModel(s"$at/m.model")
    j.noteOutput(s"$at/rows")
    val next = new Journal(new Path(s"$at/staging/model"), conf).read()
    assert(next.model === Some(s"$at/m.model") && next.output === Some(s"$at/rows"))
    Files.writeString(folder.resolve("m.model"), "other")
    assert(next.model === None)
  }
}
