package com.crema

import org.apache.spark.SparkException

/** What a failed Spark job has to say to people: our own sentence, without Spark's frames and stack around it. */
object Story {
  private val own = "com.crema.CremaException: "

  def of(e: Throwable): String = {
    val text = Option(e.getMessage).getOrElse(e.toString)
    if (!text.contains(own)) plain(text)
    else text.substring(text.indexOf(own) + own.length).split("\n").takeWhile(line => !line.startsWith("\tat ") && !line.startsWith("Driver stacktrace")).mkString("\n").trim
  }

  private val lost = "(?s).*Job aborted due to stage failure: .*?Lost task [^:]*: (.*)".r
  private val exception = "^[\\w.$]+(?:Exception|Error): "

  /** Spark's text without the frames around what happened. */
  private def plain(text: String): String = text match {
    case lost(what) => what.split("\n").head.trim.replaceFirst(exception, "")
    case other => other
  }

  /** Runs body; a job that fails inside throws a CremaException with its story. */
  def telling[A](body: => A): A = try body catch { case e: SparkException => throw new CremaException(of(e), e) }
}
