package com.crema

import java.io.{File, IOException, InputStream}
import java.net.{JarURLConnection, URL}
import java.nio.file.{FileAlreadyExistsException, Files, LinkOption, Path, Paths, StandardCopyOption}
import java.nio.file.attribute.PosixFilePermissions
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicLong
import java.util.zip.CRC32

import scala.util.control.NonFatal

/** The executable that this jar carries, unpacked once per content and user.
  *
  * It lies at `<folder>/crema-<uid>-<CRC-32>-<bytes>/crema`: written to a temporary name and renamed into place, so two
  * JVMs may unpack at once. CRC-32 and size come from the jar's own directory, so that a JVM that finds the file reads
  * neither jar nor 10 MB through a slow, cold digest; a file with other bytes, as a crash may leave, is replaced.
  * Against other users of a shared /tmp: folder and file must be ours, and nobody else's to write. Folders are tried in
  * turn and the file is really started in each: a noexec mount is passed over.
  */
object NativeBinary {
  private val Resource = "/native/linux-x86_64/crema"
  private val StartSeconds = 20L

  /** The executable as it is in the jar. */
  private[crema] case class Packed(bytes: Long, crc: Long, open: () => InputStream) {
    def name: String = f"crema-$uid-$crc%08x-$bytes"
  }

  /** The path of a file that runs, unpacked on first use in this JVM. */
  lazy val path: String = {
    val start = System.nanoTime()
    try unpack(packedAt(getClass.getResource(Resource)), candidates)
    finally unpacking.set(System.nanoTime() - start)
  }
  private val unpacking = new AtomicLong

  /** Seconds that unpacking took, told once: to the first that asks after it. */
  def unpackSeconds(): Double = unpacking.getAndSet(0) / 1e9

  private def candidates: Seq[File] =
    Seq(sys.env.get("CREMA_UNPACK_DIR"), sys.props.get("java.io.tmpdir"), sys.props.get("user.dir"),
      sys.props.get("user.home")).flatten.distinct.map(new File(_))

  /** @param resource in a jar or a folder; null when there is none */
  private[crema] def packedAt(resource: URL): Packed = resource match {
    case null =>
      throw new CremaException(s"this jar carries no executable ($Resource); build the engine first " +
        "(cmake --preset release && cmake --build build/release), then the jar")
    case url => url.openConnection() match {
        case jar: JarURLConnection =>
          jar.setUseCaches(false)
          val file = jar.getJarFile
          try Packed(jar.getJarEntry.getSize, jar.getJarEntry.getCrc, () => url.openStream())
          finally file.close()
        case _ => packed(() => url.openStream()) // compiled classes in a folder, as tests have them
      }
  }

  private def packed(open: () => InputStream): Packed = {
    val in = open()
    val bytes =
      try in.readAllBytes()
      finally in.close()
    Packed(bytes.length.toLong, crcOf(bytes), open)
  }

  private def crcOf(bytes: Array[Byte]): Long = { val crc = new CRC32; crc.update(bytes); crc.getValue }

  private[crema] def unpack(packed: Packed, folders: Seq[File]): String = {
    val refused = new StringBuilder
    for (folder <- folders) {
      try {
        return place(packed, folder.toPath).toString
      } catch {
        case NonFatal(e) => refused.append(s"\n  $folder: ${e.getMessage}")
      }
    }
    throw new CremaException(
      "the executable in the jar can be started from none of these folders; " +
        s"name one that allows it with CREMA_UNPACK_DIR:$refused")
  }

  private lazy val uid: Int = Files.getAttribute(Paths.get("/proc/self"), "unix:uid").asInstanceOf[Int]

  /** @throws IOException when another user owns it or may write to it */
  private def mustBeOurs(path: Path): Unit = {
    val owner = Files.getAttribute(path, "unix:uid", LinkOption.NOFOLLOW_LINKS).asInstanceOf[Int]
    val mode = Files.getAttribute(path, "unix:mode", LinkOption.NOFOLLOW_LINKS).asInstanceOf[Int]
    if (owner != uid || (mode & 0x12) != 0) throw new IOException(
      f"$path belongs to user $owner with mode ${mode & 0xfff}%o, not to user $uid alone; remove it")
  }

  private def whole(file: Path, packed: Packed): Boolean =
    Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS) && {
      mustBeOurs(file)
      Files.size(file) == packed.bytes && crcOf(Files.readAllBytes(file)) == packed.crc
    }

  private def place(packed: Packed, folder: Path): Path = {
    val home = folder.resolve(packed.name)
    val file = home.resolve("crema")
    Files.createDirectories(folder)
    try Files.createDirectory(home, onlyOurs)
    catch { case _: FileAlreadyExistsException => }
    mustBeOurs(home)
    // It was started when it was unpacked. A folder mounted noexec since then shows in its rights: the kernel counts
    // that in.
    if (whole(file, packed) && Files.isExecutable(file)) return file
    val temporary = Files.createTempFile(home, "crema", ".part", onlyOurs)
    try {
      val in = packed.open()
      try Files.copy(in, temporary, StandardCopyOption.REPLACE_EXISTING)
      finally in.close()
      Files.setPosixFilePermissions(temporary, mode)
      Files.move(temporary, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING)
    } finally Files.deleteIfExists(temporary)
    start(file)
    file
  }

  private def mode = PosixFilePermissions.fromString("rwx------")
  private def onlyOurs = PosixFilePermissions.asFileAttribute(mode)

  /** A process that another thread forks meanwhile holds our just written file open for a moment, and the kernel
    * refuses to start it (ETXTBSY): that passes, so it is tried again.
    */
  @annotation.tailrec
  private def begin(file: Path, attemptsLeft: Int): Process =
    (try Right(new ProcessBuilder(file.toString, "--version").redirectErrorStream(true).start())
    catch { case e: IOException if attemptsLeft > 0 && e.getMessage.contains("error=26") => Left(e) }) match {
      case Right(process) => process
      case Left(_) => Thread.sleep(50); begin(file, attemptsLeft - 1)
    }

  private def start(file: Path): Unit = {
    val process = begin(file, 100)
    try {
      if (!process.waitFor(StartSeconds, TimeUnit.SECONDS)) throw new IOException("it did not answer --version")
      val said = new String(process.getInputStream.readAllBytes()).trim
      if (process.exitValue != 0) throw new IOException(s"it ends with ${process.exitValue}: $said")
    } finally process.destroyForcibly()
  }
}
