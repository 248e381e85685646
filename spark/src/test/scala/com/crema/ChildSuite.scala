package com.crema

import java.util.concurrent.TimeUnit

import com.crema.wire.Wire.{Job, RemoteFile}
import com.google.protobuf.ByteString
import org.apache.spark.{SparkConf, SparkContext, TaskContext}
import org.scalatest.funsuite.AnyFunSuite

/** A real coordinator as the child: it listens and waits for workers that never come. */
class ChildSuite extends AnyFunSuite {
  private def job(timeout: Double) = Job.newBuilder.setRanks(2).setWorkers(2).setHost("127.0.0.1")
    .setToken(ByteString.copyFrom(new Array[Byte](32))).setJoinTimeout(timeout).setStepTimeout(timeout).build()

  private def ended(pid: Long, seconds: Int): Boolean =
    (0 until seconds * 20).exists { _ =>
      val gone = !ProcessHandle.of(pid).filter(_.isAlive).isPresent
      if (!gone) Thread.sleep(50)
      gone
    }

  test("events come, and the story of a failure with the last log lines") {
    val child = new Child("coordinator", job(1))
    try {
      assert(child.next().get.getListening.getAddress.startsWith("127.0.0.1:"))
      val failed = Iterator.continually(child.next()).find(e => e.forall(_.hasFailed)).flatten.get.getFailed
      assert(failed.getStory.contains("2 workers wanted, 0 here"))
      val e = intercept[CremaException](child.finish(Some(failed)))
      for (part <- Seq("2 workers wanted", "exit code 1", s"pid ${child.pid}"))
        assert(e.getMessage.contains(part), e.getMessage)
    } finally child.close()
  }

  test("a child that says nothing within the time it has is killed") {
    val child = new Child("coordinator", job(60))
    try {
      assert(child.next(20.0).get.hasListening && child.alive)
      assert(child.next(1.0) === None) // it waits for workers, a minute
      assert(child.ending(5).startsWith("was killed by signal 9"))
    } finally child.close()
  }

  test("a killed child is told from one that failed") {
    val child = new Child("coordinator", job(60))
    child.next()
    ProcessHandle.of(child.pid).get.destroyForcibly()
    assert(child.next() === None)
    assert(intercept[CremaException](child.finish(None)).getMessage.contains("was killed by signal 9"))
    child.close()
  }

  test("a child that works for one task is waited for as long as it lives, and ended when it is stopped") {
    val file = RemoteFile.newBuilder.setSize(1 << 20).setDescription("hdfs://n/db")
    val child = new Child("index", Job.newBuilder.setTestFile(file).build(), Some(2.0))
    try {
      assert(child.next().get.hasNeed) // it waits for these bytes, for minutes, and says that it does
      @volatile var lived = false
      val stop = new Thread(() => {
        Thread.sleep(6000)
        lived = child.alive
        new ProcessBuilder("kill", "-STOP", child.pid.toString).start().waitFor()
      })
      stop.start()
      assert(child.next() === None)
      stop.join()
      assert(lived)
      val e = intercept[CremaException](child.finish(None)).getMessage
      assert(
        e.contains(s"`crema index` (pid ${child.pid}, host ") && e.contains("has been silent for 2 s and was killed"),
        e)
    } finally child.close()
  }

  test("closing ends the child; closing its stdin alone does as well") {
    val child = new Child("coordinator", job(60))
    child.next()
    child.close()
    assert(ended(child.pid, 5))
    val process = new ProcessBuilder(NativeBinary.path, "coordinator", "-job", "-").start()
    job(60).writeDelimitedTo(process.getOutputStream)
    process.getOutputStream.flush()
    process.getInputStream.read()
    process.getOutputStream.close()
    assert(process.waitFor(5, TimeUnit.SECONDS))
  }

  test("cancelling a task ends its child, though the task's thread waits for it") {
    val settings = new SparkConf().setMaster("local[1]").setAppName("cancel").set("spark.ui.enabled", "false")
    val sc = new SparkContext(settings)
    val place = java.nio.file.Files.createTempFile("pid", "").toFile
    try {
      val bytes = job(60).toByteArray
      val path = place.getPath
      val run = new Thread(() =>
        try {
          sc.setJobGroup("g", "", interruptOnCancel = false)
          sc.parallelize(Seq(1), 1).foreach { _ =>
            val child = new Child("coordinator", Job.parseFrom(bytes))
            child.endWith(TaskContext.get())
            child.next()
            java.nio.file.Files.write(java.nio.file.Paths.get(path), child.pid.toString.getBytes)
            child.next() // waits for workers that never come
          }
        } catch { case _: org.apache.spark.SparkException => })
      run.start()
      assert((0 until 400).exists { _ => Thread.sleep(50); place.length > 0 })
      val pid = new String(java.nio.file.Files.readAllBytes(place.toPath)).toLong
      sc.cancelJobGroup("g")
      assert(ended(pid, 5))
      run.join(5000)
    } finally { sc.stop(); place.delete() }
  }

  /** How a worker fails that comes late, or to a port that is closed. */
  private def failure(address: String): String = {
    val late = job(60).toBuilder.setCoordinator(address).setCoordinatorListens(true)
    val child = new Child("worker", late.setAttempt(2).setWorker(1).build())
    try {
      val began = System.nanoTime()
      val failed = Iterator.continually(child.next()).find(e => e.forall(_.hasFailed)).flatten.get.getFailed
      // 1 s; the rest is for a busy machine.
      assert((System.nanoTime() - began) / 1e9 < 20, "a fraction of the 60 s that a worker waits for others")
      failed.getStory
    } finally child.close()
  }

  test("the coordinator answers a task that is tried again after the run until the driver closes it") {
    val coordinator = new Child("coordinator", job(1).toBuilder.setCoordinatorListens(true).build())
    try {
      val address = coordinator.next().get.getListening.getAddress
      while (coordinator.next().isDefined) {} // nobody has joined within a second
      val story = failure(address)
      assert(story.contains("the run was over before attempt 2 of worker 1 could join it"), story)
      assert(coordinator.alive)
    } finally coordinator.close()
    assert(ended(coordinator.pid, 10))
  }

  test("a task that cannot reach the coordinator fails with the remedy") {
    val socket = new java.net.ServerSocket(0, 1, java.net.InetAddress.getLoopbackAddress)
    val closed = socket.getLocalPort
    socket.close()
    val story = failure(s"127.0.0.1:$closed")
    assert(story.contains("is a firewall between the two machines"), story)
    assert(!story.contains("the run was over"), story)
  }

  test("a job that is no job is refused in words") {
    val alone = Job.newBuilder.setToken(ByteString.copyFrom(new Array[Byte](32))).setCoordinator("127.0.0.1:1")
    val child = new Child("worker", alone.setSolver(ByteString.copyFromUtf8("x")).setJoinTimeout(2).build())
    try {
      val e = intercept[CremaException] { while (child.next().isDefined) {}; child.finish(None) }
      assert(e.getMessage.contains("crema: error:"), e.getMessage)
    } finally child.close()
  }
}
