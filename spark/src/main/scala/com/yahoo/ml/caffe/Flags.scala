package com.yahoo.ml.caffe

import java.io.{PrintWriter, StringWriter}

import com.crema.WrongArgument
import org.apache.commons.cli.{
  CommandLine, DefaultParser, HelpFormatter, Option => Flag, Options, ParseException, UnrecognizedOptionException
}

/** The command line of CaffeOnSpark: names, arity and defaults of its 24 flags, and -resume. */
private[caffe] object Flags {
  private case class Spec(name: String, argument: String, text: String)

  private val all = Seq(
    Spec("conf", "path", "solver prototxt (ship it and its net with --files)"),
    Spec("train", null, "train"),
    Spec("test", null, "score the TEST net and write the mean of each output blob"),
    Spec("features", "blobs", "extract these blobs over the TEST source, separated by commas"),
    Spec("label", "blob", "one more blob for -features; default label"),
    Spec("outputFormat", "format", "DataFrame format of the output: json (default), parquet, ..."),
    Spec("model", "URI", "training: the final model; else: the model to score with"),
    Spec("output", "URI", "where features or test results go; default output"),
    Spec("devices", "n", "ranks per executor; default 1"),
    Spec("persistent", null, "read a source of rows once and keep it on disk, instead of reading it twice"),
    Spec("snapshot", "URI", ".solverstate to resume from (with -weights)"),
    Spec("resume", "auto", "resume from the newest whole snapshot where this job's snapshots are, if there is one"),
    Spec("weights", "URI", ".caffemodel to start from"),
    Spec("connection", "kind", "ethernet or infiniband; the workers talk over Ethernet either way"),
    Spec("resize", null, "resize images to the layer's height and width"),
    Spec("clusterSize", "n", "number of executors; default 1"),
    Spec("lmdb_partitions", "n", "tasks that score an LMDB; default clusterSize"),
    Spec("imageRoot", "URI", "tools: image folder or LMDB"),
    Spec("labelFile", "URI", "tools: label file"),
    Spec("captionFile", "URI", "COCO tool: caption file"),
    Spec("captionLength", "n", "COCO tool: embedding length; default 20"),
    Spec("vocabSize", "n", "COCO tool: words to keep; default -1, all"),
    Spec("imageCaptionDFDir", "name", "COCO tool: suffix on -output"),
    Spec("vocabDir", "name", "COCO tool: suffix on -output"),
    Spec("embeddingDFDir", "name", "COCO tool: suffix on -output")
  )

  def names: Seq[String] = all.map(_.name)

  private def described(s: Spec): Flag.Builder =
    Flag.builder(s.name).hasArg(s.argument != null).argName(s.argument).desc(s.text)

  private def options: Options = {
    val o = new Options
    all.foreach(s => o.addOption(described(s).longOpt(s.name).build()))
    o
  }

  def usage: String = {
    val text = new StringWriter
    val formatter = new HelpFormatter
    formatter.setLongOptPrefix("-")
    val plain = new Options
    all.foreach(s => plain.addOption(described(s).build()))
    val command = "spark-submit --class com.yahoo.ml.caffe.CaffeOnSpark <crema jar> <flags>"
    formatter.printHelp(new PrintWriter(text, true), 110, command, null, plain, 2, 2, null)
    text.toString
  }

  def asksForHelp(args: Array[String]): Boolean = args.exists(a => a == "-help" || a == "--help" || a == "-h")

  /** "; did you mean -x?" when a flag is a few letters away: two, or a third of them. */
  private[caffe] def meant(flag: String): String = {
    def small(text: String) = text.toLowerCase(java.util.Locale.ROOT)
    val word = flag.dropWhile(_ == '-')
    val (near, edits) = names.map(n => n -> distance(small(word), small(n))).minBy(_._2)
    if (edits <= (if (word.length < 4) 1 else math.max(2, near.length / 3))) s"; did you mean -$near?" else ""
  }

  /** Letters to insert, remove or replace. */
  private def distance(a: String, b: String): Int = b.foldLeft((0 to a.length).toList) { (row, c) =>
    row.zip(row.tail).zip(a).scanLeft(row.head + 1) { case (left, ((corner, above), d)) =>
      math.min(math.min(left, above) + 1, corner + (if (c == d) 0 else 1))
    }
  }.last

  private val Help = "(-help lists the flags)"

  /** @throws IllegalArgumentException that says which flag is wrong */
  def parse(args: Array[String]): CommandLine = {
    val line =
      try new DefaultParser(false).parse(options, args)
      catch {
        case e: UnrecognizedOptionException =>
          throw new WrongArgument(s"there is no flag ${e.getOption}${meant(e.getOption)} $Help", e)
        case e: ParseException => throw new WrongArgument(s"${e.getMessage} $Help", e)
      }
    if (!line.getArgList.isEmpty)
      throw new WrongArgument(s"'${line.getArgList.get(0)}' is no flag and belongs to none $Help")
    for ((name, given) <- line.getOptions.groupBy(_.getOpt); values = given.map(_.getValue).distinct;
      if values.length > 1)
      throw new WrongArgument(s"-$name is given as ${values.mkString(" and as ")}; keep one. Flags of spark-submit, " +
        s"such as --conf, stand before the jar $Help")
    line
  }

  def int(line: CommandLine, name: String, default: Int): Int = {
    val text = line.getOptionValue(name, default.toString)
    try text.toInt
    catch {
      case e: NumberFormatException => throw new WrongArgument(s"-$name needs a whole number, not '$text' $Help", e)
    }
  }
}
