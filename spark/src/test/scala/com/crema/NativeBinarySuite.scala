package com.crema

import java.io.File
import java.net.URL
import java.nio.file.Files
import java.nio.file.attribute.PosixFilePermissions
import java.util.jar.JarOutputStream
import java.util.zip.ZipEntry

import org.scalatest.BeforeAndAfterEach
import org.scalatest.funsuite.AnyFunSuite

class NativeBinarySuite extends AnyFunSuite with BeforeAndAfterEach {
  private var folder: File = _
  override def beforeEach(): Unit = folder = Files.createTempDirectory("unpack").toFile
  override def afterEach(): Unit = org.apache.hadoop.fs.FileUtil.fullyDelete(folder)

  /** A script in a jar, as the executable is in ours. */
  private def script(text: String): NativeBinary.Packed = {
    val jar = Files.createTempFile(folder.toPath, "packed", ".jar")
    val out = new JarOutputStream(Files.newOutputStream(jar))
    out.putNextEntry(new ZipEntry("native/script"))
    out.write(s"#!/bin/sh\n$text\n".getBytes)
    out.close()
    NativeBinary.packedAt(new URL(s"jar:${jar.toUri}!/native/script"))
  }
  private def good = script("echo crema 1")

  test("the jar's own executable unpacks and runs") {
    val process = new ProcessBuilder(NativeBinary.path, "--version").start()
    assert(new String(process.getInputStream.readAllBytes()).startsWith("crema "))
  }

  test("a second unpack uses the first file; a damaged one is replaced") {
    val path = NativeBinary.unpack(good, Seq(folder))
    val written = new File(path).lastModified
    assert(NativeBinary.unpack(good, Seq(folder)) === path)
    assert(new File(path).lastModified === written)
    Files.write(new File(path).toPath, "#!/bin/sh\necho other 1\n".getBytes) // as long as it should be
    assert(NativeBinary.unpack(good, Seq(folder)) === path)
    assert(new String(Files.readAllBytes(new File(path).toPath)).contains("echo crema"))
    assert(new File(path).getParentFile.listFiles.length === 1, "no temporary file stays")
  }

  test("what a JVM that was killed while it unpacked has left is removed an hour later") {
    val one = good
    val home = new File(NativeBinary.unpack(one, Seq(folder))).getParentFile
    val (old, recent) = (new File(home, "crema1.part"), new File(home, "crema2.part"))
    for (file <- Seq(old, recent)) Files.write(file.toPath, Array[Byte](1))
    assert(old.setLastModified(System.currentTimeMillis() - 2 * WholeFile.Abandoned))
    NativeBinary.unpack(one, Seq(folder))
    assert(home.list.toSet === Set("crema", "crema2.part"))
  }

  test("many at once end with one whole file") {
    val one = good
    val paths = java.util.stream.IntStream.range(0, 8).parallel()
      .mapToObj[String](_ => NativeBinary.unpack(one, Seq(folder))).toArray.toSeq
    assert(paths.toSet.size === 1)
  }

  test("a folder where nothing may start is passed over; where none is left, all are named") {
    val readOnly = new File(folder, "a-file")
    Files.write(readOnly.toPath, Array[Byte](1))
    val second = new File(folder, "second")
    assert(NativeBinary.unpack(good, Seq(readOnly, second)).startsWith(second.getPath))
    val e = intercept[CremaException](NativeBinary.unpack(script("exit 3"), Seq(readOnly, second)))
    assert(e.getMessage.contains(readOnly.getPath) && e.getMessage.contains("ends with 3") &&
        e.getMessage.contains("CREMA_UNPACK_DIR"), e.getMessage)
  }

  test("a noexec mount is passed over") {
    val mount = new File(folder, "noexec")
    mount.mkdirs()
    val mounted =
      new ProcessBuilder("mount", "-t", "tmpfs", "-o", "noexec,size=1m", "tmpfs", mount.getPath).start().waitFor() == 0
    if (!mounted) cancel("CANCELED: no right to mount here")
    try {
      val second = new File(folder, "second")
      assert(NativeBinary.unpack(good, Seq(mount, second)).startsWith(second.getPath))
    } finally new ProcessBuilder("umount", mount.getPath).start().waitFor()
  }

  test("a folder that others may write to is passed over") {
    val (shared, second) = (new File(folder, "shared"), new File(folder, "second"))
    val home = new File(NativeBinary.unpack(good, Seq(shared))).getParentFile.toPath
    Files.setPosixFilePermissions(home, PosixFilePermissions.fromString("rwxrwxrwx"))
    assert(NativeBinary.unpack(good, Seq(shared, second)).startsWith(second.getPath))
    val e = intercept[CremaException](NativeBinary.unpack(good, Seq(shared)))
    assert(e.getMessage.contains("remove it"), e.getMessage)
  }

  test("a jar without the executable says so") {
    assert(intercept[CremaException](NativeBinary.packedAt(null)).getMessage.contains("carries no executable"))
  }
}
