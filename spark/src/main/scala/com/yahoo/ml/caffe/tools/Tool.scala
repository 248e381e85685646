package com.yahoo.ml.caffe.tools

import java.io.{ByteArrayOutputStream, ObjectOutputStream}

import com.crema.{CremaException, Storage, WrongArgument}
import com.yahoo.ml.caffe.{Checks, Config, Flags}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.hadoop.io.IOUtils
import org.apache.spark.rdd.RDD
import org.apache.spark.util.LongAccumulator
import org.apache.spark.{SparkConf, SparkContext}

import scala.reflect.ClassTag
import scala.util.control.NonFatal

/** What the tools' main programs share: one Spark job from a command line, a one-line error message, exit code 1. */
private[caffe] object Tool {
  /** @param usage returns what must be given if that is missing; called before Spark starts */
  def main(name: String, args: Array[String], usage: Config => Option[String])(
      work: (SparkContext, Config) => Unit): Unit = {
    val done = if (Flags.asksForHelp(args)) {
      println(Flags.usage)
      true
    } else {
      try {
        Flags.parse(args)
        usage(new Config(null, args)).foreach(text => throw new WrongArgument(text))
        val sc = SparkContext.getOrCreate(new SparkConf().setIfMissing("spark.app.name", name))
        try work(sc, placed(new Config(sc, args)))
        finally sc.stop()
        true
      } catch {
        case NonFatal(e) =>
          System.err.println(s"crema: error: ${e.getMessage}")
          false
      }
    }
    if (!done) sys.exit(1)
  }

  /** Resolves file: paths, as Spark and Hadoop refuse file:relative; paths without a scheme are left to them, as in
    * CaffeOnSpark. -output may be a prefix that ends in `/`.
    */
  private def placed(conf: Config): Config = {
    def at(written: String) =
      if (written == null || !written.startsWith("file:")) written
      else conf.at(written) + (if (written.endsWith("/")) "/" else "")
    conf.imageRoot = at(conf.imageRoot)
    conf.labelFile = at(conf.labelFile)
    conf.captionFile = at(conf.captionFile)
    conf.outputPath = at(conf.outputPath)
    conf
  }

  def named(text: String): Boolean = text != null && text.nonEmpty

  def say(text: String): Unit = System.err.println(s"crema: $text")

  def outputIsFree(uri: String, sc: SparkContext): Unit = {
    val path = new Path(uri)
    if (path.getFileSystem(sc.hadoopConfiguration).exists(path))
      throw new WrongArgument(s"-output $uri exists already; remove it or name another place (nothing was started)")
  }

  def frameIsFree(conf: Config, sc: SparkContext): Unit = {
    Checks.format(conf.outputFormat)
    outputIsFree(conf.outputPath, sc)
  }

  /** Runs `write`, then prints how many rows were written and what `lines` skipped. When nothing could be used, the
    * output is removed.
    */
  def written(sc: SparkContext, uri: String, what: String, count: LongAccumulator, lines: Option[LabelFile])(
      write: => Unit): Unit = {
    write
    try lines.foreach(_.report())
    catch {
      case e: CremaException =>
        val p = new Path(uri)
        p.getFileSystem(sc.hadoopConfiguration).delete(p, true)
        throw e
    }
    say(s"${count.value} $what are at $uri")
  }

  /** Counts rows as they are written; a task that is tried again counts anew. */
  def counted[T: ClassTag](rows: RDD[T], count: LongAccumulator): RDD[T] = rows.map { row => count.add(1); row }

  /** The whole file. Plain paths are Hadoop's: they mean its default file system. @throws java.io.IOException */
  def bytes(path: Path, conf: Configuration): Array[Byte] = {
    val in = path.getFileSystem(conf).open(path)
    val out = new ByteArrayOutputStream
    try IOUtils.copyBytes(in, out, 1 << 16, false)
    finally in.close()
    out.toByteArray
  }

  def serialised(key: AnyRef): Array[Byte] = {
    val bytes = new ByteArrayOutputStream
    val out = new ObjectOutputStream(bytes)
    out.writeObject(key)
    out.close()
    bytes.toByteArray
  }

  /** Why a file could not be read, without the exception's class name. */
  def cause(e: Throwable): String = Option(e.getMessage).getOrElse(e.toString)

  /** The database of -imageRoot. */
  def lmdb(conf: Config, sc: SparkContext): String = {
    val uri = conf.input(conf.imageRoot, "-imageRoot")
    if (!Storage.exists(uri, sc.hadoopConfiguration))
      throw new CremaException(s"there is no LMDB at -imageRoot ${conf.imageRoot}; name the folder that holds data.mdb")
    uri
  }
}
