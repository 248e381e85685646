package com.crema

import java.io.{EOFException, File, InputStream, ObjectInputStream, ObjectOutputStream}
import java.lang.ref.Cleaner
import java.nio.file.Files

import org.apache.spark.SparkContext

/** A trained model in a file on this JVM's disk, deleted when the object is collected: a model of any size costs no
  * heap. Serialisation writes the file's bytes into the stream.
  */
final class ModelFile private (@transient private var file: File) extends Serializable {
  def path: File = file
  def bytes: Array[Byte] = Files.readAllBytes(file.toPath)

  /** As a shared file, made once for each application. */
  @transient private var sent: (String, SharedFile) = _
  def shared(sc: SparkContext): SharedFile = synchronized {
    if (sent == null || sent._1 != sc.applicationId)
      sent = (sc.applicationId, SharedFile.of(sc, file, "transform.caffemodel"))
    sent._2
  }

  private def writeObject(out: ObjectOutputStream): Unit = {
    out.writeLong(file.length)
    Files.copy(file.toPath, out)
  }

  private def readObject(in: ObjectInputStream): Unit = {
    val length = in.readLong()
    file = ModelFile.keep(new ModelFile.Part(in, length), this, Some(length))
  }
}

object ModelFile {
  private val cleaner = Cleaner.create()

  /** A copy of what the stream holds. @throws java.io.IOException */
  def of(in: InputStream): ModelFile = {
    val made = new ModelFile(null)
    made.file = keep(in, made)
    made
  }
  def of(file: File): ModelFile = {
    val in = Files.newInputStream(file.toPath)
    try of(in)
    finally in.close()
  }

  private def keep(in: InputStream, owner: ModelFile, announced: Option[Long] = None): File = {
    val file = new File(Storage.workFolder, s"model-${java.util.UUID.randomUUID()}.caffemodel")
    WholeFile.local(file) { part =>
      val copied = Files.copy(in, part.toPath)
      for (length <- announced if copied != length) throw new EOFException(
        s"a trained model of $length bytes ended after $copied; it was cut where it was kept or on its way")
    }
    cleaner.register(owner, () => file.delete())
    file
  }

  /** The next `left` bytes of a stream. */
  private class Part(in: InputStream, private var left: Long) extends InputStream {
    override def read(): Int = if (left <= 0) -1 else { left -= 1; in.read() }
    override def read(to: Array[Byte], at: Int, most: Int): Int =
      if (left <= 0) -1
      else {
        val n = in.read(to, at, math.min(most.toLong, left).toInt)
        if (n > 0) left -= n
        n
      }
  }
}
