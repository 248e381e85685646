package com.crema

import java.io.File
import java.nio.file.Files
import java.util.concurrent.TimeUnit

/** A short run of the executable to its end. */
object Command {
  case class Result(code: Int, out: Array[Byte], errors: String) {
    /** The executable's own sentence. */
    def story: String = errors.trim.stripPrefix("crema: error: ")
  }

  /** @throws CremaException when it has not ended after `seconds`; it is then gone */
  def run(seconds: Long, arguments: String*): Result = {
    val (out, errors) = (File.createTempFile("crema-", ".out"), File.createTempFile("crema-", ".err"))
    try {
      val process = new ProcessBuilder(NativeBinary.path +: arguments: _*).redirectOutput(out).redirectError(errors).start()
      try {
        process.getOutputStream.close()
        if (!process.waitFor(seconds, TimeUnit.SECONDS)) throw new CremaException(s"`crema ${arguments.mkString(" ")}` has not ended after $seconds s")
      } finally process.destroyForcibly()
      Result(process.exitValue, Files.readAllBytes(out.toPath), new String(Files.readAllBytes(errors.toPath)))
    } finally { out.delete(); errors.delete() }
  }
}
