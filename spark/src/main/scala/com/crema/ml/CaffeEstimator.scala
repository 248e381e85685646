package com.crema.ml

import java.io.File
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.Files

import caffe.Caffe.SolverParameter
import com.crema.{ModelFile, Planner, Storage, WrongArgument}
import com.google.protobuf.TextFormat
import com.yahoo.ml.caffe.{CaffeOnSpark, Config, DataFrames}
import org.apache.hadoop.fs.FileUtil
import org.apache.spark.ml.Estimator
import org.apache.spark.ml.param.ParamMap
import org.apache.spark.ml.util.{DefaultParamsReadable, DefaultParamsWritable, Identifiable}
import org.apache.spark.sql.functions.{coalesce, col, lit}
import org.apache.spark.storage.StorageLevel
import org.apache.spark.sql.types._
import org.apache.spark.sql.{DataFrame, Dataset}

/** Trains a Caffe net on columns of a data frame.
  *
  * A frame that only reads files, and selects columns and rows, gives its rows in the order of the files. Any other
  * frame gives them in the order of its partitions, which a shuffle or a cache may change from run to run: write such a
  * frame to files first where the same model must come out again. The same rows in the same order, with the same
  * solver, ranks and seed, give the same model on any number of executors. Rows where `validationIndicatorCol` is true
  * do not train but test the net every test_interval steps, with the results in `CaffeModel.validation`; rows where it
  * is null train.
  */
class CaffeEstimator(override val uid: String) extends Estimator[CaffeModel] with CaffeTrainParams
    with DefaultParamsWritable {
  def this() = this(Identifiable.randomUID("caffe"))

  def setSolver(path: String): this.type = set(solver, path)
  def setValidationIndicatorCol(name: String): this.type = set(validationIndicatorCol, name)
  def setRanks(n: Int): this.type = set(ranks, n)
  def setMaxIter(n: Int): this.type = set(maxIter, n)
  def setSeed(n: Long): this.type = set(seed, n)
  def setWeights(uri: String): this.type = set(weights, uri)
  def setSnapshots(uri: String): this.type = set(snapshots, uri)

  /** @throws IllegalArgumentException before anything is started, when columns, solver or net are wrong */
  override def fit(dataset: Dataset[_]): CaffeModel = {
    val frame = dataset.toDF()
    transformSchema(frame.schema)
    val folder = Files.createTempDirectory("crema-fit-").toFile
    try CaffeParams.inItsWords(train(frame, folder))
    finally FileUtil.fullyDelete(folder)
  }

  private def train(frame: DataFrame, folder: File): CaffeModel = {
    val sc = frame.sparkSession.sparkContext
    val (description, netText) = described(frame.schema, folder)
    val conf = new Config(sc)
    conf.protoFile = description
    conf.isTraining = true
    conf.connection = Config.CONNECTION_SOCKET
    conf.setRanks($(ranks))
    conf.resize = $(resize)
    conf.modelPath = "file:" + new File(folder, "model").getPath
    // The rows are read twice, and a shuffle may give them in another order the second time; so a frame that is not
    // cached is kept on disk after the first reading.
    conf.isRddPersistent = frame.storageLevel == StorageLevel.NONE
    if (isSet(snapshots)) conf.snapshotFolder = $(snapshots)
    if (isSet(weights)) conf.snapshotModelFile = $(weights)
    // What `transform` would refuse is refused now.
    if (isSet(outputBlobs)) Planner.plan(description, $(ranks), 1, $(outputBlobs).toSeq, train = true, test = false)
    FrameNet.checkSize(frame.schema, $(inputCol), conf.netParam, Some(frame))
    val classes = FrameNet.hasClasses(conf.netParam)
    val columns = Seq(FrameNet.inputOf(frame, $(inputCol)).as(FrameNet.InputColumn),
      FrameNet.learntLabelOf(frame, $(labelCol)).as(FrameNet.LabelColumn))
    def source(rows: DataFrame, isTrain: Boolean) = {
      val layer = if (isTrain) conf.train_data_layer_id else conf.test_data_layer_id
      val s = new FrameSource(conf, layer, isTrain, rows, $(inputCol), $(labelCol), classes)
      s.init()
      s
    }
    val caffe = new CaffeOnSpark(sc)
    val validation = if (isDefined(validationIndicatorCol) && $(validationIndicatorCol).nonEmpty) {
      val held = coalesce(col($(validationIndicatorCol)), lit(false))
      Some(caffe.trainWithValidation(
          source(DataFrames.inFileOrder(frame.where(!held), columns), isTrain = true),
          source(DataFrames.inFileOrder(frame.where(held), columns), isTrain = false)))
    } else {
      caffe.train(source(DataFrames.inFileOrder(frame, columns), isTrain = true))
      None
    }
    val model = new CaffeModel(uid, netText, ModelFile.of(new File(Storage.localPath(conf.modelPath)))).setParent(this)
    model.validation = validation
    copyValues(model)
  }

  /** Solver and net for this frame as files, and the net's text. */
  private def described(schema: StructType, folder: File): (String, String) = {
    if (!isSet(solver)) throw new WrongArgument("no solver is given; name its prototxt with setSolver")
    val seedIfUnset =
      if (isSet(seed)) ($(seed) & Int.MaxValue).toInt else new java.security.SecureRandom().nextInt(Int.MaxValue)
    val plan = Planner.plan($(solver), $(ranks), seedIfUnset, Nil, train = true, test = false)
    if (plan.hasDrawnSeed) System.err.println(
      s"crema: random_seed is not set in ${$(solver)}: $seedIfUnset was drawn; " +
        s"setSeed(${seedIfUnset}L) repeats this run")
    val solved = SolverParameter.parseFrom(plan.getSolver).toBuilder
    if (!solved.hasNetParam)
      throw new WrongArgument(s"solver ${$(solver)} names train_net or test_net; give one `net` with both phases")
    val net = FrameNet.rewrite(solved.getNetParam, FrameNet.inputType(schema, $(inputCol), $(encoded)))
    solved.clearSnapshotFormat().clearNetParam().clearNet().setNet(new File(folder, "net.prototxt").getPath)
    if (isSet(maxIter)) solved.setMaxIter($(maxIter))
    if (isSet(seed)) solved.setRandomSeed(seedIfUnset)
    if (!isSet(snapshots)) solved.setSnapshot(0).setSnapshotAfterTrain(false)
    write(folder, "net.prototxt", TextFormat.printer().printToString(net))
    write(folder, "solver.prototxt", TextFormat.printer().printToString(solved.build()))
    (new File(folder, "solver.prototxt").getPath, TextFormat.printer().printToString(net))
  }

  private def write(folder: File, name: String, text: String): Unit =
    Files.write(new File(folder, name).toPath, text.getBytes(UTF_8))

  override def transformSchema(schema: StructType): StructType = {
    FrameNet.inputType(schema, $(inputCol), $(encoded))
    FrameNet.checkLabel(schema, $(labelCol))
    if (isDefined(validationIndicatorCol) && $(validationIndicatorCol).nonEmpty)
      if (!schema.exists(f => f.name == $(validationIndicatorCol) && f.dataType == BooleanType))
        throw new WrongArgument(s"validationIndicatorCol '${$(validationIndicatorCol)}' must be a boolean column " +
          s"of the frame, which has ${schema.fieldNames.mkString(", ")}")
    CaffeModel.withColumns(schema, if (isSet(outputBlobs)) $(outputBlobs).toSeq else Nil,
      if (isSet(outputCols)) $(outputCols).toSeq else Nil, $(outputVectors))
  }

  override def copy(extra: ParamMap): CaffeEstimator = defaultCopy(extra)
}

object CaffeEstimator extends DefaultParamsReadable[CaffeEstimator]
