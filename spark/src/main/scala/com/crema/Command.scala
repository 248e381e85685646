package com.crema

import java.io.File
import java.nio.file.Files
import java.util.concurrent.TimeUnit

/** A short run of the executable to its end. */
object Command {
  /** The exit code for what was given and is wrong (cli/commands.cc). */
  val Invalid = 2

  case class Result(command: String, code: Int, out: Array[Byte], errors: String) {
    /** Whether a failed one said why: one that was killed does not. */
    def hasReason: Boolean = errors.trim.nonEmpty && code < 128
    /** The executable's own sentence when there is one, else how it ended. */
    def explanation: String =
      if (hasReason) errors.trim.stripPrefix("crema: error: ")
      else s"`crema $command` ${Child.ending(code)}${if (errors.trim.isEmpty) "" else s"; it said: ${errors.trim}"}"
  }

  /** @throws CremaException when it has not ended after `seconds`; it is then gone */
  def run(seconds: Long, arguments: String*): Result = {
    val (out, errors) = (File.createTempFile("crema-", ".out"), File.createTempFile("crema-", ".err"))
    try {
      val builder = new ProcessBuilder(NativeBinary.path +: arguments: _*)
      val process = builder.redirectOutput(out).redirectError(errors).start()
      try {
        process.getOutputStream.close()
        if (!process.waitFor(seconds, TimeUnit.SECONDS))
          throw new CremaException(s"`crema ${arguments.mkString(" ")}` has not ended after $seconds s")
      } finally process.destroyForcibly()
      val said = new String(Files.readAllBytes(errors.toPath))
      Result(arguments.head, process.exitValue, Files.readAllBytes(out.toPath), said)
    } finally { out.delete(); errors.delete() }
  }
}
