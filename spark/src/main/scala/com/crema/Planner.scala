package com.crema

import java.util.concurrent.TimeUnit

import com.crema.wire.Wire.Plan

/** Asks the executable about a solver: one parser decides, on the driver, before anything starts. */
object Planner {
  private val Seconds = 60L

  /** @throws IllegalArgumentException with the executable's own story when solver, net or features are wrong */
  def plan(solver: String, ranks: Int, features: Seq[String], train: Boolean, test: Boolean): Plan = {
    val command = Seq(NativeBinary.path, "plan", "-solver", solver, "-ranks", ranks.toString, "-wire") ++
      (if (features.nonEmpty) Seq("-features", features.mkString(",")) else Nil) ++ (if (train) Seq("-train") else Nil) ++ (if (test) Seq("-test") else Nil)
    val errors = java.io.File.createTempFile("crema-plan", ".log")
    try {
      val process = new ProcessBuilder(command: _*).redirectError(errors).start()
      process.getOutputStream.close()
      val bytes = process.getInputStream.readAllBytes()
      if (!process.waitFor(Seconds, TimeUnit.SECONDS)) { process.destroyForcibly(); throw new CremaException(s"`crema plan` did not end within $Seconds s") }
      if (process.exitValue != 0)
        throw new IllegalArgumentException(new String(java.nio.file.Files.readAllBytes(errors.toPath)).trim.stripPrefix("crema: error: "))
      Plan.parseDelimitedFrom(new java.io.ByteArrayInputStream(bytes))
    } finally errors.delete()
  }
}
