package com.crema

import java.io.{
  ByteArrayInputStream, ByteArrayOutputStream, EOFException, File, IOException, ObjectInputStream, ObjectOutputStream
}
import java.nio.file.attribute.FileTime
import java.nio.file.{Files, Path}
import java.time.{Duration, Instant}

import scala.collection.JavaConverters._

import jdk.jfr.Recording
import jdk.jfr.consumer.RecordingFile
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{Path => HadoopPath}
import org.scalatest.funsuite.AnyFunSuite

/** A file system that renames over no existing file, as blob stores do, and, while `denied` is set, renames nothing, as
  * HDFS does when a quota is used up.
  */
class NeverOver extends SharedFolder {
  override def rename(from: HadoopPath, to: HadoopPath): Boolean =
    !NeverOver.denied && !exists(to) && super.rename(from, to)
}
object NeverOver { @volatile var denied = false }

class WholeFileSuite extends AnyFunSuite {
  private val folder = Files.createTempDirectory("whole-file-suite-")
  private val conf = new Configuration()
  conf.setClass("fs.shared.impl", classOf[NeverOver], classOf[org.apache.hadoop.fs.FileSystem])
  conf.setBoolean("fs.shared.impl.disable.cache", true)
  private val (source, place) = (folder.resolve("source"), folder.resolve("model"))
  private def publish(text: String, uri: String): Unit = {
    Files.writeString(source, text)
    Storage.publish(source.toString, uri, conf)
  }
  private def parts: Seq[Path] = {
    val there = folder.toFile.listFiles.toSeq
    there.filter(f => f.getName.contains("part") && !f.getName.endsWith(".crc")).map(_.toPath)
  }

  for (uri <- Seq(s"shared:$place", s"file:$place")) test(s"an old file is replaced at ${uri.takeWhile(_ != ':')}:") {
    for (text <- Seq("old", "new")) { publish(text, uri); assert(Files.readString(place) == text && parts.isEmpty) }
  }

  for (uri <- Seq(s"shared:$folder", s"file:$folder"))
    test(s"an old pair is there until a new one is whole at ${uri.takeWhile(_ != ':')}:") {
      val names = Seq("pair.caffemodel", "pair.solverstate")
      def there = names.map(n => Files.readString(folder.resolve(n)))
      def published(missing: String, text: String): Unit = {
        val files = names.map { n =>
          val from = folder.resolve(s"$missing-new-$n")
          if (n != missing) Files.writeString(from, text)
          from.toString -> s"$uri/$n"
        }
        Storage.publishPair(files, conf)
      }
      published("none", "old")
      assert(there == Seq("old", "old"))
      for (missing <- names) {
        intercept[CremaException](published(missing, "new"))
        assert(there == Seq("old", "old") && parts.isEmpty, missing)
      }
      published("none", "new")
      assert(there == Seq("new", "new") && parts.isEmpty)
    }

  /** The paths that are flushed meanwhile, without what is random in them. */
  private def flushed(body: => Unit): Seq[String] = {
    val (recording, dump) = (new Recording, Files.createTempFile("flushed-", ".jfr"))
    try {
      recording.enable("jdk.FileForce").withoutThreshold()
      recording.start()
      body
      recording.stop()
      recording.dump(dump)
      RecordingFile.readAllEvents(dump).asScala.map(_.getString("path")).filter(_.startsWith(folder.toString))
        .map(_.replaceAll("[-0-9a-f]{36}", "*")).toSeq
    } finally { recording.close(); Files.delete(dump) }
  }

  test("on a local disk a file is flushed before it gets its name, and the folder behind that") {
    assert(flushed(publish("whole", s"file:$place")) == Seq(s"$folder/_model.*.part", s"$folder"))
    val written = flushed(WholeFile.at(new HadoopPath(s"file:$place"), conf)((fs, part) => fs.create(part).close()))
    assert(written == Seq(s"$folder/_model.*.part", s"$folder/._model.*.part.crc", s"$folder"))
    Files.delete(place)
  }

  for (uri <- Seq(s"shared:$place", s"file:$place"))
    test(s"what a killed process left is removed after an hour at ${uri.takeWhile(_ != ':')}:") {
      def left(name: String, minutes: Long): Path = {
        val part = Files.writeString(folder.resolve(s"_$name.${java.util.UUID.randomUUID()}.part"), "half")
        Files.setLastModifiedTime(part, FileTime.from(Instant.now().minus(Duration.ofMinutes(minutes))))
      }
      val old = left("model", 61)
      val others = Set(left("model", 59), left("model.h5", 61), left("other_model", 61))
      publish("new", uri)
      assert(!Files.exists(old) && parts.toSet == others && Files.readString(place) == "new")
      others.foreach(Files.delete)
    }

  test("where a rename is refused the whole new file stays, and the story names it") {
    publish("old", s"shared:$place")
    NeverOver.denied = true
    val e =
      try intercept[CremaException](publish("new", s"shared:$place")).getMessage
      finally NeverOver.denied = false
    assert(parts.map(Files.readString(_)) == Seq("new") &&
        e.contains(s"the whole new file is shared:${parts.head}: mend that and rename it"), e)
    parts.foreach(Files.delete)
  }

  test("what cannot be written leaves the old file, and no piece of the new one") {
    publish("old", s"shared:$place")
    intercept[IOException](WholeFile.at(new HadoopPath(s"shared:$place"), conf) { (fs, part) =>
      fs.create(part).close()
      throw new IOException("No space left on device")
    })
    intercept[IOException](WholeFile.local(place.toFile) { part =>
      Files.writeString(part.toPath, "n")
      throw new IOException("No space left on device")
    })
    assert(Files.readString(place) == "old" && parts.isEmpty)
  }

  test("a trained model that is cut on its way is refused, and leaves nothing on the disk") {
    Files.write(source, Array.fill[Byte](5000)(7))
    val out = new ByteArrayOutputStream
    val objects = new ObjectOutputStream(out)
    objects.writeObject(ModelFile.of(source.toFile))
    objects.close()
    def read(bytes: Array[Byte]) =
      new ObjectInputStream(new ByteArrayInputStream(bytes)).readObject().asInstanceOf[ModelFile]
    assert(read(out.toByteArray).bytes.length == 5000)
    def kept: Set[File] = Storage.workFolder.listFiles.toSet
    val before = kept
    // Between its blocks Java's stream only ends.
    val refused = (2000 until 4500).map(cut => intercept[IOException](read(out.toByteArray.take(cut))))
    def said(e: IOException) = String.valueOf(e.getMessage)
    val words = "a trained model of 5000 bytes ended after "
    assert(refused.exists(e => e.isInstanceOf[EOFException] && said(e).startsWith(words)))
    assert(kept.diff(before).isEmpty)
  }
}
