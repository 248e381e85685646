package com.yahoo.tensorflowonspark

import com.crema.tensorflow._
import com.crema.{HadoopSettings, Storage, WrongArgument}
import org.apache.spark.TaskContext
import org.apache.spark.ml.Model
import org.apache.spark.ml.param.ParamMap
import org.apache.spark.ml.util._
import org.apache.spark.sql.functions.col
import org.apache.spark.sql.types._
import org.apache.spark.sql.{DataFrame, Dataset, Encoders, Row, SparkSession}

/** A SavedModel over a frame's columns, by TensorFlow Java in the executors. The output has the columns of
  * `passThrough`, then those of `outputMapping` in the order of the tensors' names; rows keep their order. A tensor of
  * n rows becomes a column of its own type (Element), of rank above 1 nested arrays.
  *
  * No method has a type of TensorFlow's in its signature: Spark looks at all of them, also where TensorFlow is missing.
  */
class TFModel(override val uid: String) extends Model[TFModel] with TFParams with DefaultParamsWritable {
  def this() = this(Identifiable.randomUID("tfmodel"))

  /** Lazy as any transformation.
    *
    * @throws IllegalArgumentException when columns, tensors and the SavedModel do not fit
    */
  override def transform(dataset: Dataset[_]): DataFrame = {
    val frame = dataset.toDF()
    val plan = planned(frame.schema, frame.sparkSession)
    val names = plan.inputs.map(_._1.name) ++ kept(frame.schema).map(_.name)
    val picked =
      frame.select(names.zipWithIndex.map { case (n, i) => col(s"`${n.replace("`", "``")}`").as(s"c$i") }: _*)
    picked.mapPartitions((rows: Iterator[Row]) => plan.score(rows, TaskContext.get()))(
      Encoders.row(withOutputs(frame.schema, plan)))
  }

  override def transformSchema(schema: StructType): StructType =
    withOutputs(schema, planned(schema, SparkSession.builder().getOrCreate()))

  override def copy(extra: ParamMap): TFModel = defaultCopy(extra)

  private def withOutputs(schema: StructType, plan: Plan): StructType =
    StructType(kept(schema) ++ plan.outputs.map(o => StructField(o.name, o.column, nullable = false)))

  private def kept(schema: StructType): Seq[StructField] =
    if ($(passThrough).toSeq == Seq("*")) schema
    else $(passThrough).toSeq.map(name => field(schema, name, "passThrough"))

  private def field(schema: StructType, name: String, param: String): StructField =
    schema.find(_.name == name).getOrElse(throw new WrongArgument(
        s"$param names column '$name', which the data frame does not have; it has ${schema.fieldNames.mkString(", ")}"))

  /** Reads saved_model.pb on the driver, and nothing else of the model. */
  private def planned(schema: StructType, spark: SparkSession): Plan = TensorFlowJava.required {
    val conf = spark.sessionState.newHadoopConf()
    if ($(model).isEmpty) throw new WrongArgument("model is not set; name the folder of a SavedModel (setModel)")
    val uri = Storage.resolveInput($(model), "model", conf)
    val tags = $(tag).split(",").map(_.trim).filter(_.nonEmpty).toSet
    val file = SavedModelFile.read(uri, tags, get(signatureDefKey), conf)
    val inputs = sorted($(inputMapping), "inputMapping", "column to tensor").map { case (column, tensor) =>
      val input = InputColumn(column, field(schema, column, "inputMapping").dataType)
      (input, TFModel.fitting(input, file.input(tensor)))
    }
    val asked = sorted($(outputMapping), "outputMapping", "tensor to column")
    val outputs = asked.map { case (tensor, column) => output(file.output(tensor), column) }
    file.checkAllFed(inputs.map(_._2), outputs.map(_.spec))
    checkNames(kept(schema).map(_.name), outputs)
    Plan(uri, tags, inputs, outputs, $(batchSize), HadoopSettings.of(conf))
  }

  private def sorted(mapping: Map[String, String], name: String, form: String): Seq[(String, String)] = {
    if (mapping.isEmpty) throw new WrongArgument(s"$name is empty; set it to a map of $form")
    mapping.toSeq.sorted
  }

  private def output(spec: TensorSpec, column: String): OutputColumn = {
    val binary = $(binaryOutputs).contains(column)
    if (binary && !spec.element.isText) throw new WrongArgument(
      s"binaryOutputs names column '$column', whose tensor '${spec.asked}' is ${spec.element.name}; only strings can " +
        "be binary")
    if (spec.shape.isEmpty) throw new WrongArgument(
      s"the SavedModel does not say what rank tensor '${spec.asked}' has, of which column '$column' takes its type; " +
        "export it with a known one (tf.ensure_shape)")
    if (spec.shape.get.isEmpty) throw new WrongArgument(
      s"tensor '${spec.asked}' for column '$column' has one value for a whole batch, none for rows")
    OutputColumn(column, spec, if (binary) BinaryType else spec.element.column)
  }

  private def checkNames(kept: Seq[String], outputs: Seq[OutputColumn]): Unit = {
    val made = kept ++ outputs.map(_.name)
    for (twice <- made.diff(made.distinct).headOption) throw new WrongArgument(
      s"there would be two columns '$twice'; name it otherwise in outputMapping or passThrough")
    for (unknown <- $(binaryOutputs) if !outputs.exists(_.name == unknown)) throw new WrongArgument(
      s"binaryOutputs names column '$unknown', which outputMapping does not have")
  }
}

object TFModel extends DefaultParamsReadable[TFModel] {
  override def load(path: String): TFModel = super.load(path)

  /** @throws WrongArgument when no value of the column fits the tensor */
  private def fitting(input: InputColumn, spec: TensorSpec): TensorSpec = {
    val leaf = Element.leaf(input.kind).getOrElse(throw new WrongArgument(
        s"column '${input.name}' is ${input.kind.simpleString}, which no tensor takes; cast it to a number, a " +
          "string, binary, or an array of them"))
    if (!Element.takes(spec.element, leaf)) throw new WrongArgument(
      s"column '${input.name}' is ${input.kind.simpleString} and tensor $spec takes ${spec.element.name}; cast the " +
        "column first")
    spec
  }
}
