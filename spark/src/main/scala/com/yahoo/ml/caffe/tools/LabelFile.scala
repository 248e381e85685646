package com.yahoo.ml.caffe.tools

import com.crema.{HadoopSettings, WrongArgument}
import com.yahoo.ml.caffe.Config
import org.apache.hadoop.fs.Path
import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD
import org.slf4j.LoggerFactory

import scala.util.control.NonFatal

/** The lines of -labelFile with the images that they name under -imageRoot. Words are separated by blanks; empty lines
  * are ignored. A line that cannot be used is skipped, logged where it is met and counted in `skipped`. Costs one more
  * pass over the text, for the line numbers.
  */
private[tools] class LabelFile(@transient sc: SparkContext, conf: Config, form: String, words: Int)
    extends Serializable {
  private val (root, file) = (conf.imageRoot, conf.labelFile)
  val skipped: Skipped = Skipped(sc, s"lines skipped of $file")

  /** Calls `make` with the words of each line and the bytes of the file that the first word names. */
  def map[T: scala.reflect.ClassTag](make: (Array[String], Array[Byte]) => T): RDD[T] = {
    val (hadoop, bad) = (HadoopSettings.of(sc.hadoopConfiguration), skipped)
    sc.textFile(file).zipWithIndex().mapPartitions { lines =>
      val log = LoggerFactory.getLogger(classOf[LabelFile])
      lazy val settings = hadoop.configuration
      def used(line: String, number: Long): Option[T] =
        try {
          val found = line.trim.split("\\s+")
          if (found.length != words) throw new WrongArgument(s"'$line' is not '$form'")
          Some(make(found, Tool.bytes(new Path(s"$root/${found(0)}"), settings)))
        } catch {
          case NonFatal(e) =>
            val reason = s"$file, line ${number + 1}: ${Tool.cause(e)}"
            log.warn(reason)
            bad.add((number, reason))
            None
        }
      lines.filter(_._1.trim.nonEmpty).flatMap { case (line, number) => used(line, number) }
    }
  }

  /** Reports skipped lines; to be called after an action on `map`'s rows. @throws com.crema.CremaException when no line
    * could be used
    */
  def report(): Unit = skipped.report("line(s)", file, sc.textFile(file).filter(_.trim.nonEmpty).count())
}

private[tools] object LabelFile {
  def usage(conf: Config): Option[String] =
    if (Tool.named(conf.imageRoot) && Tool.named(conf.labelFile)) None
    else Some("Both -imageRoot and -labelFile must be defined")

  /** A class index, as MemoryData's labels are. */
  def label(text: String): Int =
    try text.toInt
    catch { case _: NumberFormatException => throw new WrongArgument(s"the label '$text' is no whole number") }
}
