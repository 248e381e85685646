package com.crema

import java.io.{File, FileOutputStream, InputStream, IOException}
import java.nio.file.{Files, Path, Paths, StandardCopyOption}
import java.nio.file.attribute.PosixFilePermissions
import java.security.MessageDigest
import java.util.concurrent.TimeUnit

import scala.util.control.NonFatal

/** The executable that this jar carries, unpacked once per content.
  *
  * It lies at `<folder>/crema-<first 16 digits of its SHA-256>/crema`: written to a temporary name, checked, renamed into place, so two
  * JVMs may unpack at once. Folders are tried in turn and the file is really started in each: a noexec mount is passed over.
  */
object NativeBinary {
  private val Resource = "/native/linux-x86_64/crema"
  private val StartSeconds = 20L

  /** The path of a file that runs, unpacked on first use in this JVM. */
  lazy val path: String = unpack(() => getClass.getResourceAsStream(Resource), candidates)

  private def candidates: Seq[File] =
    Seq(sys.env.get("CREMA_UNPACK_DIR"), sys.props.get("java.io.tmpdir"), sys.props.get("user.dir"), sys.props.get("user.home"))
      .flatten.distinct.map(new File(_))

  /** @param open a fresh stream of the executable, null when the jar lacks it */
  private[crema] def unpack(open: () => InputStream, folders: Seq[File]): String = {
    val bytes = read(open)
    val digest = hex(MessageDigest.getInstance("SHA-256").digest(bytes))
    val refused = new StringBuilder
    for (folder <- folders) {
      try {
        val file = place(bytes, digest, folder.toPath)
        start(file)
        return file.toString
      } catch {
        case NonFatal(e) => refused.append(s"\n  $folder: ${e.getMessage}")
      }
    }
    throw new CremaException(
      s"the executable in the jar can be started from none of these folders; name one that allows it with CREMA_UNPACK_DIR:$refused")
  }

  private def read(open: () => InputStream): Array[Byte] = {
    val in = open()
    if (in == null) throw new CremaException(s"this jar carries no executable ($Resource); build the engine first (cmake --preset release && cmake --build build/release), then the jar")
    try in.readAllBytes() finally in.close()
  }

  private def hex(bytes: Array[Byte]): String = bytes.map("%02x".format(_)).mkString

  private def place(bytes: Array[Byte], digest: String, folder: Path): Path = {
    val home = folder.resolve("crema-" + digest.take(16))
    val file = home.resolve("crema")
    if (Files.isRegularFile(file) && hex(MessageDigest.getInstance("SHA-256").digest(Files.readAllBytes(file))) == digest) return file
    Files.createDirectories(home)
    val temporary = Files.createTempFile(home, "crema", ".part", PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")))
    try {
      val out = new FileOutputStream(temporary.toFile)
      try { out.write(bytes); out.getFD.sync() } finally out.close()
      Files.move(temporary, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING)
    } finally Files.deleteIfExists(temporary)
    file
  }

  /** A process that another thread forks meanwhile holds our just written file open for a moment, and the kernel refuses to start it
    * (ETXTBSY): that passes, so it is tried again.
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
