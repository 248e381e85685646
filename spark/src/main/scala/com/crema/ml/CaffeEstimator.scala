package com.crema.ml

import java.io.File
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.Files

import caffe.Caffe.SolverParameter
import com.crema.{Planner, Storage}
import com.google.protobuf.TextFormat
import com.yahoo.ml.caffe.{CaffeOnSpark, Config}
import org.apache.hadoop.fs.FileUtil
import org.apache.spark.ml.Estimator
import org.apache.spark.ml.param.ParamMap
import org.apache.spark.ml.util.{DefaultParamsReadable, DefaultParamsWritable, Identifiable}
import org.apache.spark.sql.functions.col
import org.apache.spark.sql.types._
import org.apache.spark.sql.{DataFrame, Dataset}

/** Trains a Caffe net on a data frame's columns.
  *
  * Rows are taken in the order of the frame's partitions (of its files, when it reads files and no more), so the same frame, solver, ranks and
  * seed give the same model on any number of executors. With `validationIndicatorCol` the rows where it is true test the net every
  * test_interval steps; what they gave is in `CaffeModel.validation`.
  */
class CaffeEstimator(override val uid: String) extends Estimator[CaffeModel] with CaffeTrainParams with DefaultParamsWritable {
  def this() = this(Identifiable.randomUID("caffe"))

  def setSolver(path: String): this.type = set(solver, path)
  def setInputCol(name: String): this.type = set(inputCol, name)
  def setLabelCol(name: String): this.type = set(labelCol, name)
  def setEncoded(on: Boolean): this.type = set(encoded, on)
  def setResize(on: Boolean): this.type = set(resize, on)
  def setOutputBlobs(names: Array[String]): this.type = set(outputBlobs, names)
  def setOutputCols(names: Array[String]): this.type = set(outputCols, names)
  def setValidationIndicatorCol(name: String): this.type = set(validationIndicatorCol, name)
  def setRanks(n: Int): this.type = set(ranks, n)
  def setMaxIter(n: Int): this.type = set(maxIter, n)
  def setSeed(n: Long): this.type = set(seed, n)
  def setWeights(uri: String): this.type = set(weights, uri)
  def setSnapshots(uri: String): this.type = set(snapshots, uri)

  /** @throws IllegalArgumentException with what is wrong with columns, solver or net; nothing was started */
  override def fit(dataset: Dataset[_]): CaffeModel = {
    val frame = dataset.toDF()
    transformSchema(frame.schema)
    val folder = Files.createTempDirectory("crema-fit-").toFile
    try train(frame, folder) finally FileUtil.fullyDelete(folder)
  }

  private def train(frame: DataFrame, folder: File): CaffeModel = {
    val sc = frame.sparkSession.sparkContext
    val (description, netText) = described(frame.schema, folder)
    val conf = new Config(sc)
    conf.protoFile = description
    conf.isTraining = true
    conf.connection = Config.CONNECTION_SOCKET
    conf.clusterSize = $(ranks)
    conf.resize = $(resize)
    conf.modelPath = "file:" + new File(folder, "model").getPath
    if (isSet(snapshots)) conf.snapshotFolder = $(snapshots)
    if (isSet(weights)) conf.snapshotModelFile = $(weights)
    val columns = Seq(FrameNet.inputOf(frame, $(inputCol)).as(FrameNet.InputColumn), FrameNet.labelOf(frame, $(labelCol)).as(FrameNet.LabelColumn))
    def source(rows: DataFrame, isTrain: Boolean) = {
      val s = new FrameSource(conf, if (isTrain) conf.train_data_layer_id else conf.test_data_layer_id, isTrain, rows)
      s.init()
      s
    }
    val caffe = new CaffeOnSpark(sc)
    val validation = if (isDefined(validationIndicatorCol) && $(validationIndicatorCol).nonEmpty) {
      val held = col($(validationIndicatorCol))
      Some(caffe.trainWithValidation(source(frame.where(!held).select(columns: _*), isTrain = true), source(frame.where(held).select(columns: _*), isTrain = false)))
    } else { caffe.train(source(frame.select(columns: _*), isTrain = true)); None }
    val model = new CaffeModel(uid, netText, Files.readAllBytes(new File(Storage.localPath(conf.modelPath)).toPath)).setParent(this)
    model.validation = validation
    copyValues(model)
  }

  /** Solver and net for this frame as files, and the net's text. */
  private def described(schema: StructType, folder: File): (String, String) = {
    if (!isSet(solver)) throw new IllegalArgumentException("no solver is given; name its prototxt with setSolver")
    val seedIfUnset = if (isSet(seed)) ($(seed) & Int.MaxValue).toInt else new java.security.SecureRandom().nextInt(Int.MaxValue)
    val plan = Planner.plan($(solver), $(ranks), seedIfUnset, Nil, train = true, test = false)
    val solved = SolverParameter.parseFrom(plan.getSolver).toBuilder
    if (!solved.hasNetParam) throw new IllegalArgumentException(s"solver ${$(solver)} names train_net or test_net; give one `net` with both phases")
    val net = FrameNet.rewrite(solved.getNetParam, FrameNet.inputType(schema, $(inputCol), $(encoded)))
    solved.clearNetParam().clearNet().setNet(new File(folder, "net.prototxt").getPath)
    if (isSet(maxIter)) solved.setMaxIter($(maxIter))
    if (isSet(seed)) solved.setRandomSeed(seedIfUnset)
    if (!isSet(snapshots)) solved.setSnapshot(0).setSnapshotAfterTrain(false)
    write(folder, "net.prototxt", TextFormat.printer().printToString(net))
    write(folder, "solver.prototxt", TextFormat.printer().printToString(solved.build()))
    (new File(folder, "solver.prototxt").getPath, TextFormat.printer().printToString(net))
  }

  private def write(folder: File, name: String, text: String): Unit = Files.write(new File(folder, name).toPath, text.getBytes(UTF_8))

  override def transformSchema(schema: StructType): StructType = {
    FrameNet.inputType(schema, $(inputCol), $(encoded))
    FrameNet.checkLabel(schema, $(labelCol))
    if (isDefined(validationIndicatorCol) && $(validationIndicatorCol).nonEmpty)
      if (!schema.exists(f => f.name == $(validationIndicatorCol) && f.dataType == BooleanType))
        throw new IllegalArgumentException(s"validationIndicatorCol '${$(validationIndicatorCol)}' must be a boolean column of the frame, which has ${schema.fieldNames.mkString(", ")}")
    CaffeModel.withColumns(schema, if (isSet(outputBlobs)) $(outputBlobs).toSeq else Nil, if (isSet(outputCols)) $(outputCols).toSeq else Nil)
  }

  override def copy(extra: ParamMap): CaffeEstimator = defaultCopy(extra)
}

object CaffeEstimator extends DefaultParamsReadable[CaffeEstimator]
