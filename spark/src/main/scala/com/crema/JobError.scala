package com.crema

import org.apache.spark.{SparkConf, SparkException}

/** Why a Spark job failed, in one message: our own exception's, without the stack traces that Spark puts around it. */
object JobError {
  private val own = "com\\.crema\\.(CremaException|WrongInput|WrongArgument|Refusal): ".r

  def message(e: Throwable): String = {
    val text = Option(e.getMessage).getOrElse(e.toString)
    own.findFirstMatchIn(text) match {
      case None => plain(text)
      case Some(found) =>
        val lines = text.substring(found.end).split("\n")
        lines.takeWhile(l => !l.startsWith("\tat ") && !l.startsWith("Driver stacktrace")).mkString("\n").trim
    }
  }

  private val lost = "(?s).*Job aborted due to stage failure: .*?Lost task [^:]*: (.*)".r
  private val caused = "Caused by: (.*)".r
  private val exception = "^[\\w.$]+(?:Exception|Error): "

  /** Spark's text without what it puts around the exception, and the cause of that exception. */
  private def plain(text: String): String = text match {
    case lost(what) =>
      val lines = what.split("\n")
      val why = lines.reverse.collectFirst { case caused(text) => text.trim.replaceFirst(exception, "") }
      (lines.head.trim.replaceFirst(exception, "") +: why.toSeq).distinct.mkString(": ")
    case other => other
  }

  /** The driver's last word. Of a full disk of its own Spark says neither which nor what to do. */
  def lastWord(e: Throwable, settings: SparkConf): String = Option(e.getMessage).getOrElse(e.toString) match {
    case full if full.trim == "No space left on device" =>
      val temporary = settings.get("spark.local.dir", System.getProperty("java.io.tmpdir"))
      val folder = sys.env.getOrElse("SPARK_LOCAL_DIRS", temporary)
      s"$full: a folder is full in which Spark keeps files of its own, spark.local.dir ($folder) or, on YARN, a node " +
        "manager's local-dirs; free some of it, or name another: --conf spark.local.dir=FOLDER"
    case message => message
  }

  def isOurs(e: Throwable): Boolean = own.findFirstMatchIn(String.valueOf(e.getMessage)).isDefined

  /** Whether another attempt would fail in the same way. Exceptions of the driver have types that say so; a task's
    * exception reaches the driver as text, which begins with the name of its class.
    */
  def isLasting(e: Throwable): Boolean = e match {
    case _: Lasting => true
    case _: org.apache.spark.sql.AnalysisException | _: org.apache.hadoop.mapred.InvalidInputException => true
    case s: SparkException =>
      Option(s.getMessage).flatMap(own.findFirstMatchIn(_)).exists(_.group(1) != "CremaException")
    case _ => false
  }

  /** Runs body; a Spark job that fails in it throws a CremaException, or a WrongInput, with `message`. */
  def explained[A](body: => A): A =
    try body
    catch {
      case e: SparkException if isLasting(e) => throw new WrongInput(message(e), e)
      case e: SparkException => throw new CremaException(message(e), e)
    }
}
