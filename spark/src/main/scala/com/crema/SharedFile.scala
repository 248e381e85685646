package com.crema

import java.io.{BufferedOutputStream, File, FileInputStream, FileOutputStream, IOException}
import java.nio.file.{Files, StandardCopyOption}
import java.util.UUID

import org.apache.spark.SparkContext
import org.apache.spark.broadcast.Broadcast

/** A file of the driver that tasks read as a file of their own machine, as it was when it was shared. It travels as many small broadcasts, which
  * Spark passes on from executor to executor and keeps on disk where memory is short: no heap ever holds the whole. One broadcast of a model of 500 MB
  * took three times that of every heap.
  */
class SharedFile private (name: String, size: Long, pieces: Array[Broadcast[Array[Byte]]]) extends Serializable {
  private val key = UUID.randomUUID().toString

  /** In a task: its path here, made once in each JVM. @throws CremaException when it cannot be written */
  def fetch(): String = SharedFile.synchronized {
    val file = new File(Storage.workFolder, s"$key-$name")
    if (!file.exists()) {
      val part = new File(file.getPath + ".part")
      try {
        val out = new BufferedOutputStream(new FileOutputStream(part))
        try pieces.foreach(p => out.write(p.value)) finally out.close()
        Files.move(part.toPath, file.toPath, StandardCopyOption.ATOMIC_MOVE)
      } catch { case e: IOException => throw new CremaException(s"$name ($size bytes) cannot be copied to ${Storage.workFolder}: ${Storage.cause(e)}; make room there, or set java.io.tmpdir", e) }
      finally Files.deleteIfExists(part.toPath)
    }
    file.getPath
  }

  def destroy(): Unit = pieces.foreach(_.destroy())
}

object SharedFile {
  private val PieceBytes = 4 << 20

  /** @param name what the file ends in for those who read it: `.h5` has a meaning */
  def of(sc: SparkContext, file: File, name: String): SharedFile = {
    val in = new FileInputStream(file)
    try {
      var size = 0L
      val pieces = Iterator.continually(in.readNBytes(PieceBytes)).takeWhile(_.nonEmpty).map { bytes => size += bytes.length; sc.broadcast(bytes) }.toArray
      new SharedFile(name, size, pieces)
    } finally in.close()
  }
}
