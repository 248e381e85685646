package com.crema

import java.nio.file.Files

import org.apache.spark.{SparkConf, SparkException}
import org.scalatest.funsuite.AnyFunSuite

/** Which failures end an application for good, and which are worth another attempt. */
class JobErrorSuite extends AnyFunSuite {
  test("only what was given and is wrong is lasting") {
    def ofTask(what: String) = new SparkException("Job aborted due to stage failure: Task 0 in stage 0.0 failed 4 " +
      s"times, most recent failure: Lost task 0.3 in stage 0.0 (TID 3): $what\n\tat x")
    for (lasting <- Seq(
        new WrongInput("x"),
        new WrongArgument("x"),
        new Refusal("x"),
        ofTask("com.crema.WrongInput: x"),
        ofTask("com.crema.WrongArgument: x"),
        ofTask("com.crema.Refusal: x")
      ))
      assert(JobError.isLasting(lasting) && JobError.message(lasting) == "x", lasting)
    for (passing <- Seq(
        new CremaException("x"),
        new IllegalArgumentException("java.net.UnknownHostException: namenode"),
        new IllegalStateException("no executor has registered"),
        ofTask("com.crema.CremaException: x"),
        new java.io.IOException("Name node is in safe mode")
      ))
      assert(!JobError.isLasting(passing), passing)
  }

  test("a full disk of Spark's own is named, with what to do") {
    val settings = new SparkConf(false).set("spark.local.dir", "/scratch")
    val full = JobError.lastWord(new java.io.IOException("No space left on device"), settings)
    assert(full.contains("spark.local.dir (/scratch)") && full.contains("--conf spark.local.dir="), full)
    val other = "/models/m: No space left on device"
    assert(JobError.lastWord(new CremaException(other), settings) == other)
  }

  test("a plan that is killed says so, and is no mistake of the user's; one that finds a mistake is") {
    val folder = Files.createTempDirectory("job-error-suite-")
    val solver = folder.resolve("solver.prototxt")
    assert(new ProcessBuilder("mkfifo", solver.toString).start().waitFor() == 0) // the plan waits for the solver's text
    val killer = new Thread(() => {
      def isPlan(p: ProcessHandle) = p.info.commandLine.orElse("").contains("crema plan")
      def plans = ProcessHandle.current.children.filter(isPlan(_)).toArray.map(_.asInstanceOf[ProcessHandle])
      while (plans.isEmpty) Thread.sleep(20)
      plans.foreach(_.destroyForcibly())
    })
    killer.setDaemon(true)
    killer.start()
    def plan = Planner.plan(solver.toString, 1, 1, Nil, train = true, test = false)
    val killed = intercept[CremaException](plan)
    assert(killed.getMessage.startsWith("`crema plan` was killed by signal 9 (SIGKILL): somebody killed it"))
    assert(!JobError.isLasting(killed))
    Files.delete(solver)
    Files.writeString(solver, "no_such_field: 1")
    val wrong = intercept[WrongArgument](plan)
    assert(wrong.getMessage.contains("no_such_field") && JobError.isLasting(wrong), wrong)
  }
}
