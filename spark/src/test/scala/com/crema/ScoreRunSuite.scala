package com.crema

import java.io.File
import java.nio.file.Files

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}
import org.scalatest.funsuite.AnyFunSuite

/** A shared file system that is empty. */
class EmptyFolder extends SharedFolder {
  override def exists(path: Path): Boolean = false
  override def getFileStatus(path: Path): FileStatus = throw new java.io.FileNotFoundException(path.toString)
}

class ScoreRunSuite extends AnyFunSuite {
  test("ranges cover every record once and start at batches, whatever the number of tasks") {
    for (records <- Seq(0L, 1L, 99L, 100L, 101L, 10000L); batch <- Seq(1, 7, 100); tasks <- Seq(1, 2, 3, 8, 1000)) {
      val ranges = ScoreRun.split(records, batch, tasks)
      assert(ranges.map { case (a, b) => b - a }.sum === records)
      assert(ranges.forall { case (a, b) => a % batch == 0 && a < b })
      assert(ranges.map(_._2).dropRight(1) === ranges.map(_._1).drop(1))
      assert(ranges.headOption.forall(_._1 == 0) && ranges.size <= tasks)
    }
  }

  test("local paths, file URIs and others") {
    assert(
      Storage.isLocal("/a/b") && Storage.isLocal("a b") && Storage.isLocal("file:/a") && Storage.isLocal("file:///a"))
    assert(!Storage.isLocal("hdfs://h/a") && !Storage.isLocal("wasb:///a"))
    assert(Storage.localPath("file:/a/b") === "/a/b" && Storage.localPath("a/b") === "a/b")
    for ((uri, path) <- Seq("file:few" -> "few", "file:../data/x" -> "../data/x", "file:///a/b" -> "/a/b",
        "file:////a/b" -> "/a/b", "file://host/a" -> "/a", "file:/a b%20c" -> "/a b%20c"))
      assert(Storage.isLocal(uri) && Storage.localPath(uri) === path, uri)
  }

  test("a path without a scheme is the default file system's; file: is this machine's, " +
    "relative to the working folder") {
    val here = new File("x").getAbsolutePath
    val local = new Configuration()
    val shared = new Configuration()
    shared.setClass("fs.shared.impl", classOf[SharedFolder], classOf[org.apache.hadoop.fs.FileSystem])
    shared.set("fs.defaultFS", "shared:///")
    val home = new SharedFolder { initialize(getUri, shared) }.getWorkingDirectory.toUri.getPath
    for ((written, onLocal, onShared) <- Seq(
        ("x", s"file:$here", s"shared:$home/x"),
        ("/a/x", "file:/a/x", "shared:/a/x"),
        ("file:x", s"file:$here", s"file:$here"),
        ("file:///a/x", "file:/a/x", "file:/a/x"),
        ("hdfs://h:1/x", "hdfs://h:1/x", "hdfs://h:1/x"),
        ("wasb:///x", "wasb:///x", "wasb:///x")
      )) {
      assert(Storage.resolve(written, local) === onLocal)
      assert(Storage.resolve(written, shared).replace("shared:///", "shared:/") === onShared)
    }
    val folder = Files.createTempDirectory("local-only")
    val hidden = new Configuration(shared)
    hidden.setClass("fs.shared.impl", classOf[EmptyFolder], classOf[org.apache.hadoop.fs.FileSystem])
    hidden.setBoolean("fs.shared.impl.disable.cache", true)
    val e = intercept[IllegalArgumentException](Storage.resolveInput(folder.toString, "source", hidden)).getMessage
    assert(e.contains(s"which source $folder means, as fs.defaultFS is shared:///") &&
        e.endsWith(s"write file:$folder if that is meant"), e)
    assert(Storage.resolveInput(s"file:$folder", "source", hidden) === s"file:$folder")
  }

  test("a line of progress") {
    assert(ScoreProgress.line(15000, Some(60000), 500) === "scoring: 15000 rows of 60000, 1:30 left  500 rows/s")
    assert(ScoreProgress.line(7, None, 3.5) === "scoring: 7 rows  4 rows/s")
  }
}
