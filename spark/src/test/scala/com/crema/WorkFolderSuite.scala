package com.crema

import java.io.File
import java.nio.file.Files
import java.util.concurrent.TimeUnit

import org.apache.hadoop.fs.FileUtil
import org.scalatest.funsuite.AnyFunSuite

class WorkFolderSuite extends AnyFunSuite {
  private val gone = new ProcessBuilder("true").start()

  test("folders of processes that are gone are removed, others stay") {
    val root = Files.createTempDirectory("work-folder-suite-")
    def left(name: String, lock: Boolean): File = {
      val folder = Files.createDirectory(root.resolve(name))
      Files.write(folder.resolve("a.mdb"), Array[Byte](1))
      if (lock) Files.createFile(folder.resolve(".lock"))
      folder.toFile
    }
    gone.waitFor(10, TimeUnit.SECONDS)
    val before = left(s"crema-work-${ProcessHandle.current.pid}-1", lock = true) // as in containers
    val (dead, unlocked, held, other) = (left(s"crema-work-${gone.pid}-1", lock = true),
      left("crema-work-123", lock = false), left("crema-work-77-2", lock = true), left("elsewhere", lock = true))
    val holder = new ProcessBuilder(
      "python3",
      "-c",
      "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.lockf(f, fcntl.LOCK_EX); " +
        "print('held', flush=True); sys.stdin.read()",
      s"$held/.lock"
    ).start()
    try {
      assert(holder.getInputStream.read() == 'h')
      val mine = WorkFolder.make(root.toFile)
      assert(mine.getName.startsWith(s"crema-work-${ProcessHandle.current.pid}-") && new File(mine, ".lock").exists())
      assert(!dead.exists() && !before.exists() && unlocked.exists() && held.exists() && other.exists())
      holder.getOutputStream.close()
      assert(holder.waitFor(10, TimeUnit.SECONDS))
      WorkFolder.clear(root.toFile)
      assert(!held.exists() && mine.exists())
    } finally { holder.destroyForcibly(); FileUtil.fullyDelete(root.toFile) }
  }
}
