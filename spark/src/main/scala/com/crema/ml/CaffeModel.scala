package com.crema.ml

import java.io.{ByteArrayInputStream, File, InputStream}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.Files

import scala.collection.JavaConverters._

import caffe.Caffe.NetParameter
import com.crema._
import com.crema.wire.Wire.{Job, Plan}
import com.google.protobuf.TextFormat
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.ml.Model
import org.apache.spark.ml.linalg.SQLDataTypes
import org.apache.spark.ml.param.ParamMap
import org.apache.spark.ml.util._
import org.apache.spark.sql.functions.col
import org.apache.spark.sql.types._
import org.apache.spark.sql.{DataFrame, Dataset, Encoders, Row}

/** A trained Caffe net over a frame's columns.
  *
  * @param netText the net, with CoSData layers, as prototxt
  * @param trained the weights as a .caffemodel
  */
class CaffeModel private[ml] (override val uid: String, private[ml] var netText: String,
    private[ml] var trained: ModelFile)
    extends Model[CaffeModel] with CaffeParams with DefaultParamsWritable {
  def this(uid: String) = this(uid, "", null) // for reading

  /** The tests during training: one row for each, one array<float> column for each output of the TEST net. Not saved
    * with the model.
    */
  @transient var validation: Option[DataFrame] = None

  /** The weights, a .caffemodel that any Caffe reads. */
  def modelBytes: Array[Byte] = trained.bytes

  private def net: NetParameter = { val b = NetParameter.newBuilder; TextFormat.merge(netText, b); b.build() }

  /** Adds a column for each blob. Lazy as any transformation; a row whose image cannot be decoded has nulls in them.
    *
    * @throws IllegalArgumentException when columns or blobs do not fit
    */
  override def transform(dataset: Dataset[_]): DataFrame = {
    val frame = dataset.toDF()
    val (job, blobs) = CaffeParams.inItsWords(planned(frame))
    val schema = CaffeModel.withColumns(frame.schema, blobs, columnNames(blobs), $(outputVectors))
    val sc = frame.sparkSession.sparkContext
    val spec = ScoreRun.Spec(job.toByteArray, trained.shared(sc), 1, 1, HadoopSettings.of(sc.hadoopConfiguration))
    val inputs = Seq(FrameNet.inputOf(frame, $(inputCol)).as(FrameNet.InputColumn),
      FrameNet.labelOf(frame, $(labelCol)).as(FrameNet.LabelColumn))
    val width = frame.columns.length
    val (isEncoded, vectors, input) = ($(encoded), $(outputVectors), $(inputCol))
    val top = net.getLayerList.asScala.find(FrameNet.isData).get.getCosDataParam.getTop(0)
    val tops = net.getLayerList.asScala.find(FrameNet.isData).get.getTopCount
    val shape = (top.getChannels, top.getHeight, top.getWidth)
    val nulls = NullRows.counter(sc)
    val all = frame.select(frame.columns.toSeq.map(c => col(s"`$c`")) ++ inputs: _*)
    all.mapPartitions { rows =>
      if (rows.isEmpty) Iterator.empty
      else new ScoredFrame(spec, rows, width, input, isEncoded, shape, tops, blobs.size, vectors, nulls)
    }(Encoders.row(schema))
  }

  /** What error messages call the weights. */
  @transient private var origin = "the model"
  /** Whether it was checked that the weights fit the net, which is done once. */
  @transient private var checked = false
  private def unchecked: Option[Weights] = if (checked) None else Some(Weights(trained.path.getPath, origin))

  /** @throws IllegalArgumentException when the weights, which were read from `place`, are damaged or of another net */
  private[ml] def checkRead(place: String): Unit = {
    origin = place
    lastPlan = planOf(net, Nil, unchecked)
  }

  /** What the executable said of the net: its blobs are the same for every type of input column. */
  @transient private var lastPlan: Plan = _

  private def planOf(fitted: NetParameter, asked: Seq[String], weights: Option[Weights]): Plan = {
    val folder = Files.createTempDirectory("crema-model-").toFile
    try Planner.plan(CaffeModel.solverOf(fitted, folder), 1, 1, asked, train = false, test = true, weights)
    finally org.apache.hadoop.fs.FileUtil.fullyDelete(folder)
  }

  /** The job for a scoring process, and the names of the blobs that it returns. */
  private def planned(frame: DataFrame): (Job, Seq[String]) = {
    val input = FrameNet.inputType(frame.schema, $(inputCol), $(encoded))
    FrameNet.checkSize(frame.schema, $(inputCol), net)
    val asked = if (isSet(outputBlobs)) $(outputBlobs).toSeq else Nil
    val plan = planOf(FrameNet.rewrite(net, input), asked, unchecked)
    if (!checked) Planner.untrainedWarning(plan, origin).foreach(text => System.err.println(s"crema: $text"))
    checked = true
    lastPlan = plan
    val hasLabel = frame.columns.contains($(labelCol))
    val blobs = if (asked.nonEmpty) asked else defaults(plan)
    for (b <- blobs if plan.getNeedLabelList.contains(b) && !hasLabel)
      throw new WrongArgument(s"blob '$b' depends on the label, and the frame has no column '${$(labelCol)}'; " +
        "add it (setLabelCol), or leave the blob out of outputBlobs")
    val job = Job.newBuilder.setSolver(plan.getSolver).setNetOrigin("CaffeModel").setWeightsName(origin)
      .setThreads(Cluster.threadsPerTask(frame.sparkSession.sparkContext))
      .setResize($(resize)).addAllBlobs(blobs.asJava)
    (job.build(), blobs)
  }

  /** The blobs when none are named. */
  private def defaults(plan: Plan): Seq[String] = {
    if (plan.getOutputsWithoutLabelCount == 0) throw new WrongArgument(
      s"net '${net.getName}' has no output that needs no label; name blobs with setOutputBlobs")
    plan.getOutputsWithoutLabelList.asScala.toList // tasks take it along, which a view of the message cannot be
  }

  private def columnNames(blobs: Seq[String]): Seq[String] = if (isSet(outputCols)) $(outputCols).toSeq else blobs

  override def transformSchema(schema: StructType): StructType = {
    FrameNet.inputType(schema, $(inputCol), $(encoded))
    FrameNet.checkSize(schema, $(inputCol), net)
    def known = { if (lastPlan == null) lastPlan = CaffeParams.inItsWords(planOf(net, Nil, None)); lastPlan }
    val blobs = if (isSet(outputBlobs)) $(outputBlobs).toSeq else defaults(known)
    CaffeModel.withColumns(schema, blobs, columnNames(blobs), $(outputVectors))
  }

  override def copy(extra: ParamMap): CaffeModel = {
    val other = copyValues(new CaffeModel(uid, netText, trained), extra).setParent(parent)
    other.validation = validation
    other
  }

  override def write: MLWriter = {
    val params = super.write
    new MLWriter {
      override protected def saveImpl(path: String): Unit = {
        params.save(path)
        val text = new ByteArrayInputStream(netText.getBytes(UTF_8))
        CaffeModel.store(path, "net.prototxt", text, sc.hadoopConfiguration)
        CaffeModel.store(path, "weights.caffemodel", Files.newInputStream(trained.path.toPath), sc.hadoopConfiguration)
      }
    }
  }
}

object CaffeModel extends MLReadable[CaffeModel] {
  private object Params extends DefaultParamsReadable[CaffeModel]

  override def read: MLReader[CaffeModel] = {
    val params = Params.read
    new MLReader[CaffeModel] {
      override def load(path: String): CaffeModel = {
        val model = params.load(path)
        model.netText = new String(fetch(path, "net.prototxt", sc.hadoopConfiguration)(_.readAllBytes()), UTF_8)
        model.trained = fetch(path, "weights.caffemodel", sc.hadoopConfiguration)(ModelFile.of)
        model.checkRead(file(path, "weights.caffemodel").toString)
        model
      }
    }
  }

  /** A solver that only scores the net; both are files in `folder`. */
  private[ml] def solverOf(net: NetParameter, folder: File): String = {
    val netFile = new File(folder, "net.prototxt")
    Files.write(netFile.toPath, TextFormat.printer().printToString(net).getBytes(UTF_8))
    val solver = s"""net: "$netFile" base_lr: 0 lr_policy: "fixed" max_iter: 1 random_seed: 1 solver_mode: CPU\n"""
    Files.write(new File(folder, "solver.prototxt").toPath, solver.getBytes(UTF_8)).toString
  }

  private def file(path: String, name: String) = new Path(new Path(path, "data"), name)

  private def store(path: String, name: String, in: InputStream, conf: Configuration): Unit =
    try {
      WholeFile.at(file(path, name), conf) { (fs, part) =>
        val out = fs.create(part, false)
        try in.transferTo(out)
        finally out.close()
      }
    } finally in.close()

  private def fetch[A](path: String, name: String, conf: Configuration)(read: InputStream => A): A = {
    val from = file(path, name)
    val in =
      try from.getFileSystem(conf).open(from)
      catch {
        case e: java.io.FileNotFoundException =>
          throw new WrongArgument(s"$path is no CaffeModel: it has no data/$name", e)
      }
    try read(in)
    finally in.close()
  }

  /** @throws IllegalArgumentException when a column is there already, or names and blobs differ in number */
  private[ml] def withColumns(schema: StructType, blobs: Seq[String], names: Seq[String],
      vectors: Boolean): StructType = {
    if (names.nonEmpty && blobs.nonEmpty && names.size != blobs.size)
      throw new WrongArgument(s"${names.size} outputCols for ${blobs.size} outputBlobs; give as many")
    for (n <- names if schema.fieldNames.contains(n))
      throw new WrongArgument(s"the frame has a column '$n' already; choose other names with setOutputCols")
    val kind = if (vectors) SQLDataTypes.VectorType else ArrayType(FloatType, containsNull = false)
    StructType(schema ++ names.map(StructField(_, kind, nullable = true)))
  }
}
