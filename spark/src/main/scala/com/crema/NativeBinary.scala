package com.crema

import java.io.{File, IOException, InputStream}
import java.net.{JarURLConnection, URL}
import java.nio.file.{FileAlreadyExistsException, Files, LinkOption, Path, Paths, StandardCopyOption}
import java.nio.file.attribute.PosixFilePermissions
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicLong
import java.util.zip.CRC32

import scala.util.control.NonFatal

/** The executable that this jar carries, unpacked once for each content and user.
  *
  * It is placed at `<folder>/crema-<uid>-<CRC-32>-<bytes>/crema` by writing to a temporary name and renaming, so two
  * JVMs may unpack at once. CRC-32 and size are read from the jar's directory, so that a JVM that finds the file in
  * place need not hash 10 MB; a file with other contents, as a crash may leave, is replaced. As /tmp may be shared with
  * other users, folder and file must belong to this user and be writable by no other. Folders are tried in turn by
  * starting the file in each, so that one mounted noexec is skipped.
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

  /** Seconds that unpacking took; 0 after the first call, so that it is counted once. */
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
    try removeAbandoned(home)
    catch { case _: IOException => /* only their space is lost */ }
    // It was started when it was unpacked; if the folder was mounted noexec since then, the kernel reports it as not
    // executable.
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

  /** What a JVM that was killed while it unpacked has left. */
  private def removeAbandoned(home: Path): Unit = {
    val parts = Files.newDirectoryStream(home, "crema*.part")
    try parts.forEach { part =>
        val age = System.currentTimeMillis() - Files.getLastModifiedTime(part, LinkOption.NOFOLLOW_LINKS).toMillis
        if (age > WholeFile.Abandoned) Files.deleteIfExists(part)
      }
    finally parts.close()
  }

  private def mode = PosixFilePermissions.fromString("rwx------")
  private def onlyOurs = PosixFilePermissions.asFileAttribute(mode)

  /** A process that another thread is just forking inherits the descriptor through which the file was written, and the
    * kernel refuses to start a file that is open for writing (ETXTBSY). That ends with the fork, so starting is tried
    * again.
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
