package com.crema

import org.apache.spark.SparkException

/** What a failed Spark job has to say to people: our own sentence, without Spark's frames and stack around it. */
object Story {
  private val own = "com.crema.CremaException: "

  def of(e: Throwable): String = {
    val text = Option(e.getMessage).getOrElse(e.toString)
    if (!text.contains(own)) text
    else text.substring(text.indexOf(own) + own.length).split("\n").takeWhile(line => !line.startsWith("\tat ") && !line.startsWith("Driver stacktrace")).mkString("\n").trim
  }

  /** Runs body; a job that fails inside throws a CremaException with its story. */
  def telling[A](body: => A): A = try body catch { case e: SparkException => throw new CremaException(of(e), e) }
}
