package com.crema

import org.apache.spark.SparkException

/** What a failed Spark job has to say to people: our own sentence, without Spark's frames and stack around it. */
object Story {
  private val own = "com\\.crema\\.(CremaException|WrongInput|WrongArgument|Refusal): ".r

  def of(e: Throwable): String = {
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

  /** Spark's text without the frames around what happened, and why. */
  private def plain(text: String): String = text match {
    case lost(what) =>
      val lines = what.split("\n")
      val why = lines.reverse.collectFirst { case caused(text) => text.trim.replaceFirst(exception, "") }
      (lines.head.trim.replaceFirst(exception, "") +: why.toSeq).distinct.mkString(": ")
    case other => other
  }

  def isOurs(e: Throwable): Boolean = own.findFirstMatchIn(String.valueOf(e.getMessage)).isDefined

  /** Whether trying again changes nothing. Spark and Hadoop say so of what they cannot find; of a task's exception its
    * text tells.
    */
  def lasting(e: Throwable): Boolean = e match {
    case _: Lasting => true
    case _: org.apache.spark.sql.AnalysisException | _: org.apache.hadoop.mapred.InvalidInputException => true
    case s: SparkException =>
      Option(s.getMessage).flatMap(own.findFirstMatchIn(_)).exists(_.group(1) != "CremaException")
    case _ => false
  }

  /** Runs body; a job that fails inside throws a CremaException with its story. */
  def telling[A](body: => A): A =
    try body
    catch {
      case e: SparkException if lasting(e) => throw new WrongInput(of(e), e)
      case e: SparkException => throw new CremaException(of(e), e)
    }
}
