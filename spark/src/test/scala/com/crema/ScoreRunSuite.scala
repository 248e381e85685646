package com.crema

import org.scalatest.funsuite.AnyFunSuite

class ScoreRunSuite extends AnyFunSuite {
  test("ranges cover every record once and start at batches, whatever the number of tasks") {
    for (records <- Seq(0L, 1L, 99L, 100L, 101L, 10000L); batch <- Seq(1, 7, 100); tasks <- Seq(1, 2, 3, 8, 1000)) {
      val ranges = ScoreRun.split(records, batch, tasks)
      assert(ranges.map { case (a, b) => b - a }.sum === records)
      assert(ranges.forall { case (a, b) => a % batch == 0 && a < b })
      assert(ranges.map(_._2).dropRight(1) === ranges.map(_._1).drop(1))
      assert(ranges.headOption.forall(_._1 == 0) && ranges.size <= tasks)
    }
  }

  test("local paths, file URIs and others") {
    assert(Storage.isLocal("/a/b") && Storage.isLocal("a b") && Storage.isLocal("file:/a") && Storage.isLocal("file:///a"))
    assert(!Storage.isLocal("hdfs://h/a") && !Storage.isLocal("wasb:///a"))
    assert(Storage.localPath("file:/a/b") === "/a/b" && Storage.localPath("a/b") === "a/b")
  }
}
