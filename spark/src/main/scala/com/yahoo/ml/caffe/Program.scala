package com.yahoo.ml.caffe

import scala.util.control.NonFatal

import caffe.Caffe.SolverParameter
import com.crema._
import com.crema.wire.Wire.Job
import org.apache.spark.{SparkConf, SparkContext}
import org.apache.spark.crema.Edges

/** The main program of CaffeOnSpark's command line. */
private[caffe] object Program {
  def main(args: Array[String]): Unit =
    if (Flags.asksForHelp(args)) println(Flags.usage)
    else {
      val settings = new SparkConf().setIfMissing("spark.app.name", "CaffeOnSpark")
        .set("spark.scheduler.minRegisteredResourcesRatio", "1.0")
        // With an executor its rows may be lost, and the stage of all workers is tried again. Four such losses, which
        // is what Spark allows, are no mistake of the job's.
        .setIfMissing("spark.stage.maxConsecutiveAttempts", "100")
      val attempt = YarnAttempt.of(settings)
      try go(args, settings, attempt)
      catch {
        case NonFatal(e) if attempt.isDefined => throw attempt.get.ended(e)
        case NonFatal(_) if Edges.endingSoon => // by a signal; what fails then is a consequence of it
        case NonFatal(e) =>
          System.err.println(s"crema: error: ${JobError.lastWord(e, settings)}")
          sys.exit(1)
      }
    }

  /** Everything that can be checked without executors is checked before Spark asks for them. */
  private def go(args: Array[String], settings: SparkConf, attempt: Option[YarnAttempt]): Unit = {
    val began = System.nanoTime()
    val conf = Config.ahead(settings, args)
    ahead()
    val journal = attempt.flatMap(_.journal)
    val left = Earlier.of(attempt.map(_.number), journal, conf)
    Checks.ahead(conf)
    Checks.output(conf, left.output)
    for (j <- journal if conf.isTraining) j.noteSeed(conf.seedIfUnset)
    val judging = (System.nanoTime() - began) / 1e9
    val sc = SparkContext.getOrCreate(settings)
    YarnAttempt.began(sc)
    val budget = Budget.ofApplication(sc)
    val unpacking = NativeBinary.unpackSeconds()
    budget.lap("Spark", "plan and checks" -> math.max(0.0, judging - unpacking), "unpacking" -> unpacking)
    val runs = new Runs(sc)
    runs.budget = Some(budget)
    runs.journal = journal
    try runs.run(conf, left)
    finally sc.stop()
  }

  /** Unpacks the executable and loads the large generated classes while Spark starts, which leaves cores idle. */
  private def ahead(): Unit = {
    def load(): Unit =
      try { NativeBinary.path; SolverParameter.getDefaultInstance; Job.getDefaultInstance }
      catch { case NonFatal(_) => /* whoever needs it says so */ }
    val thread = new Thread(() => load(), "crema-ahead")
    thread.setDaemon(true)
    thread.start()
  }
}
