package com.crema

import java.nio.file.{Files, Paths}
import java.util.concurrent.atomic.AtomicLong

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}
import org.scalatest.funsuite.AnyFunSuite

/** A file system whose folders were changed just now, whenever one asks, as S3A has it. */
class FoldersOfNow extends SharedFolder {
  override def getFileStatus(path: Path): FileStatus = {
    val s = super.getFileStatus(path)
    if (!s.isDirectory) s else new FileStatus(0, true, 1, 1, FoldersOfNow.now.incrementAndGet() * 1000, s.getPath)
  }
}
object FoldersOfNow { val now = new AtomicLong() }

class StorageSuite extends AnyFunSuite {
  private val conf = new Configuration()
  conf.setClass("fs.shared.impl", classOf[FoldersOfNow], classOf[FileSystem])
  conf.setBoolean("fs.shared.impl.disable.cache", true)

  test("a folder is copied once, and anew when a file in it is another one") {
    val folder = Files.createTempDirectory("storage-suite-")
    val (model, weights) = (folder.resolve("saved_model.pb"), folder.resolve("variables/variables.index"))
    Files.createDirectory(weights.getParent)
    Files.writeString(model, "a graph")
    Files.writeString(weights, "some weights")
    val copy = Storage.fetch(s"shared:$folder", conf)
    assert(Storage.fetch(s"shared:$folder", conf) == copy)
    Files.writeString(weights, "other weights")
    val other = Storage.fetch(s"shared:$folder", conf)
    assert(other != copy && Files.readString(Paths.get(other, "variables/variables.index")) == "other weights")
  }

  test("a file is copied once, and anew when it is another one") {
    val file = Files.createTempFile("storage-suite-", ".bin")
    Files.writeString(file, "one")
    val copy = Storage.fetch(s"shared:$file", conf)
    assert(Storage.fetch(s"shared:$file", conf) == copy)
    Files.writeString(file, "another")
    assert(Files.readString(Paths.get(Storage.fetch(s"shared:$file", conf))) == "another")
  }
}
