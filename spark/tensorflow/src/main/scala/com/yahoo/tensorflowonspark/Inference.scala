package com.yahoo.tensorflowonspark

import scala.annotation.tailrec
import scala.util.Try
import scala.util.control.NonFatal

import com.crema.{JobError, WrongArgument}
import org.apache.spark.SparkContext
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.types.StructType

/** Scores TFRecords by a SavedModel: TFRecords in, lines of JSON out.
  * {{{spark-submit --class com.yahoo.tensorflowonspark.Inference ... crema-tensorflow-<line>.jar
  *   --export_dir FOLDER --input PATHS --output FOLDER --input_mapping JSON --output_mapping JSON}}}
  */
object Inference {
  private val Usage =
    """usage: Inference --export_dir FOLDER --input PATHS --output FOLDER --input_mapping JSON --output_mapping JSON
      |  --export_dir      folder of the SavedModel
      |  --input           TFRecords: files, folders or globs, with commas between
      |  --output          folder for lines of JSON, which must not be there yet
      |  --input_mapping   {"column": "tensor"}; a tensor is a key of the signature, an operation, or operation:0
      |  --output_mapping  {"tensor": "column"}
      |  --schema_hint     types of some columns, struct<name:type,...>; the others are inferred
      |  --tag             tags of the graph, with commas between (serve)
      |  --signature       signature of the SavedModel (serving_default, or the only one)
      |  --batch_size      rows in a batch (128)
      |  --pass_through    input columns that the output has too, with commas between; * for all
      |  --binary_outputs  output columns of strings that are no text, with commas between: base64 in JSON
      |  --verbose         shows the first rows of the input and their types""".stripMargin

  private val Needed = Seq("export_dir", "input", "output", "input_mapping", "output_mapping")
  private val Optional = Seq("schema_hint", "tag", "signature", "batch_size", "pass_through", "binary_outputs")

  def main(args: Array[String]): Unit =
    if (args.contains("--help")) println(Usage)
    else if (!done(args)) sys.exit(1)

  private def done(args: Array[String]): Boolean =
    try {
      val flags = parse(args.toList)
      val (model, hint) = (modelOf(flags), flags.get("schema_hint").fold(new StructType())(SimpleTypeParser.parse))
      val spark = SparkSession.builder().appName("Inference").getOrCreate()
      try run(flags, model, hint)(spark.sparkContext)
      finally spark.stop()
      true
    } catch {
      case NonFatal(e) =>
        System.err.println(s"crema: error: ${JobError.message(e)}")
        false
    }

  private def run(flags: Map[String, String], model: TFModel, hint: StructType)(implicit sc: SparkContext): Unit = {
    val frame = DFUtil.loadTFRecords(flags("input"), hint)
    if (flags.contains("verbose")) {
      frame.show()
      frame.printSchema()
    }
    model.transform(frame).write.json(flags("output"))
  }

  private def modelOf(flags: Map[String, String]): TFModel = {
    def names(flag: String) = flags.get(flag).toArray.flatMap(_.split(",")).map(_.trim).filter(_.nonEmpty)
    def mapping(flag: String) = MappingParam.parse(flags(flag), s"--$flag")
    val model = new TFModel().setModel(flags("export_dir")).setPassThrough(names("pass_through"))
      .setInputMapping(mapping("input_mapping")).setOutputMapping(mapping("output_mapping"))
      .setBinaryOutputs(names("binary_outputs"))
    flags.get("tag").foreach(model.setTag)
    flags.get("signature").foreach(model.setSignatureDefKey)
    flags.get("batch_size").foreach { text =>
      model.setBatchSize(Try(text.toInt).toOption.filter(_ > 0).getOrElse(
          throw new WrongArgument(s"--batch_size takes a number above 0, not $text")))
    }
    model
  }

  private val WithValue = "--([a-z_]+)=(.*)".r
  private val Flag = "--([a-z_]+)".r

  /** @throws WrongArgument with the usage text */
  private[tensorflowonspark] def parse(args: List[String]): Map[String, String] = {
    @tailrec def next(left: List[String], found: Map[String, String]): Map[String, String] = left match {
      case Nil => found
      case Flag("verbose") :: rest => next(rest, found + ("verbose" -> ""))
      case WithValue(name, value) :: rest if (Needed ++ Optional).contains(name) => next(rest, found + (name -> value))
      case Flag(name) :: value :: rest if (Needed ++ Optional).contains(name) => next(rest, found + (name -> value))
      case Flag(name) :: Nil if (Needed ++ Optional).contains(name) => throw wrong(s"--$name needs a value")
      case other :: _ => throw wrong(s"'$other' is no flag of this program")
    }
    val found = next(args, Map.empty)
    for (missing <- Needed.find(!found.contains(_))) throw wrong(s"--$missing is missing")
    found
  }

  private def wrong(why: String) = new WrongArgument(s"$why\n$Usage")
}
