package com.crema

import java.io.IOException
import java.nio.file.Files

import org.apache.hadoop.conf.Configuration
import org.scalatest.funsuite.AnyFunSuite

class UnfinishedSuite extends AnyFunSuite {
  private val folder = Files.createTempDirectory("unfinished")
  private val out = folder.resolve("out")

  private def run(fails: Boolean): Unit = Unfinished.removed(s"file:$out", new Configuration()) {
    if (!Files.exists(out)) Files.createDirectories(out.resolve("_temporary"))
    if (fails) throw new IOException("the disk is full")
  }

  test("a folder that is not written to its end is removed, and one that was there before is not") {
    assert(intercept[IOException](run(fails = true)).getMessage === "the disk is full")
    assert(!Files.exists(out))
    run(fails = false)
    assert(Files.exists(out.resolve("_temporary")))
    intercept[IOException](run(fails = true))
    assert(Files.exists(out.resolve("_temporary")), "an older folder")
  }
}
