package com.yahoo.ml.caffe

import caffe.Caffe.{NetParameter, SolverParameter}
import com.crema.{Cluster, Planner, Storage, Weights, WrongArgument}
import com.crema.wire.Wire.Plan
import org.apache.commons.cli.CommandLine
import org.apache.hadoop.conf.Configuration
import org.apache.spark.{SparkConf, SparkContext}
import org.apache.spark.crema.Edges
import org.slf4j.LoggerFactory

/** The settings of a run, from CaffeOnSpark's flags or set one by one.
  *
  * Setters check only what can be checked for one setting alone; `plan` asks the executable about solver and net.
  */
class Config(@transient sc: SparkContext) extends Serializable {
  @transient private lazy val logger = LoggerFactory.getLogger(classOf[Config])

  /** The application's settings; null on executors. */
  @transient private[caffe] var settings: SparkConf = if (sc == null) null else sc.getConf
  @transient private[caffe] var hadoop: Configuration = if (sc == null) null else sc.hadoopConfiguration

  /** Drawn once for each Config, as every call of `plan` must describe the same run. */
  private[caffe] var seedIfUnset: Int = new java.security.SecureRandom().nextInt(Int.MaxValue)
  private var seedTold = false
  private var known: Array[Byte] = _ // the solver, for executors
  private var trainMode, testMode, featureMode = false
  var protoFile: String = ""
  var label: String = "label"
  var modelPath: String = ""
  var outputPath: String = "output"
  var outputFormat: String = "json"
  var devices: Int = 1
  var isRddPersistent: Boolean = false
  var snapshotStateFile: String = ""
  var snapshotModelFile: String = ""
  /** "auto": resume from the newest snapshot of this job, if there is one. */
  var resume: String = ""
  /** Where snapshots go, any URI of a folder; "": beside the model. */
  var snapshotFolder: String = ""
  var resize: Boolean = false
  private var link = Config.CONNECTION_RDMA
  private[caffe] var isConnectionAsked = false
  var transform_thread_per_device: Int = 1
  private var featureBlobs: Array[String] = Array.empty
  private var size: Int = Config.resolveClusterSize(settings, 1)
  private var partitions: Option[Int] = None
  var imageRoot: String = _
  var labelFile: String = _
  var captionFile: String = ""
  var captionLength: Int = 20
  var vocabSize: Int = -1
  var imageCaptionDFDir: String = ""
  var vocabDir: String = ""
  var embeddingDFDir: String = ""

  /** @throws IllegalArgumentException for an unknown flag, a missing argument or a bad number, with the usage text */
  def this(sc: SparkContext, args: Array[String]) = {
    this(sc)
    read(Flags.parse(args))
  }

  private def read(line: CommandLine): Unit = {
    def text(name: String, default: String): String = line.getOptionValue(name, default)
    val conf = text("conf", "")
    protoFile = Storage.plain(conf)
    isTraining = line.hasOption("train")
    label = text("label", "")
    if (line.hasOption("test")) isTest = true
    if (line.hasOption("features")) features = text("features", "").split(",").map(_.trim).filter(_.nonEmpty)
    modelPath = text("model", "")
    outputPath = text("output", "output")
    outputFormat = text("outputFormat", "json")
    devices = Flags.int(line, "devices", 1)
    isRddPersistent = line.hasOption("persistent")
    snapshotStateFile = text("snapshot", "")
    snapshotModelFile = text("weights", "")
    resume = text("resume", "")
    resize = line.hasOption("resize")
    if (line.hasOption("connection")) connection = Config.kindOf(text("connection", ""))
    clusterSize = Flags.int(line, "clusterSize", 1)
    if (line.hasOption("lmdb_partitions")) lmdb_partitions = Flags.int(line, "lmdb_partitions", 1)
    imageRoot = line.getOptionValue("imageRoot")
    labelFile = line.getOptionValue("labelFile")
    captionFile = text("captionFile", "")
    captionLength = Flags.int(line, "captionLength", 20)
    vocabSize = Flags.int(line, "vocabSize", -1)
    imageCaptionDFDir = text("imageCaptionDFDir", "")
    vocabDir = text("vocabDir", "")
    embeddingDFDir = text("embeddingDFDir", "")
    if (devices < 1) throw new WrongArgument(s"-devices must be at least 1, not $devices")
    if (size < 1) throw new WrongArgument(s"-clusterSize must be at least 1, not $size")
  }

  /** InfiniBand by default, as in CaffeOnSpark; the workers use Ethernet either way. */
  def connection: Int = link
  def connection_=(kind: Int): Unit = { link = kind; isConnectionAsked = true }

  def isTraining: Boolean = trainMode
  def isTraining_=(on: Boolean): Unit = trainMode = on

  def isTest: Boolean = testMode
  def isTest_=(on: Boolean): Unit = {
    if (on && featureMode) {
      logger.warn("both -test and -features are found, we will do test only (as it is latest), disabling feature mode.")
      featureMode = false
    }
    testMode = on
  }

  def isFeature: Boolean = featureMode
  def isFeature_=(on: Boolean): Unit = {
    if (on && testMode) {
      logger.warn("both -test and -features are found, we will do features only (as it is latest), " +
        "disabling test mode.")
      testMode = false
    }
    featureMode = on
  }

  /** The blobs to extract, the label last unless it is among them. */
  def features: Array[String] =
    if (label.isEmpty || featureBlobs.contains(label)) featureBlobs else featureBlobs :+ label
  def features_=(blobs: Array[String]): Unit = { featureBlobs = blobs; isFeature = blobs.nonEmpty }

  /** The value that is set here; Spark's settings may override it (Cluster.clusterSize). */
  def clusterSize: Int = size
  def clusterSize_=(n: Int): Unit = size = Config.resolveClusterSize(settings, n)
  /** Sets the number of logical ranks directly, for callers whose ranks are not tied to executors. */
  def setRanks(n: Int): Unit = { size = n; devices = 1 }

  def lmdb_partitions: Int = partitions.getOrElse(clusterSize)
  def lmdb_partitions_=(n: Int): Unit = partitions = Some(n)

  /** Logical ranks: each computes its own batches. The model depends on their number, not on the number of executors.
    */
  def ranks: Int = clusterSize * devices

  /** What a URI that the user wrote means (Storage.resolve). On executors it is returned as it is, already resolved by
    * the driver.
    */
  private[caffe] def at(written: String): String =
    if (written.isEmpty || hadoop == null) written else Storage.resolve(written, hadoop)

  /** The same for something that must exist. @throws IllegalArgumentException when it does not, and a local file of
    * that name does
    */
  private[caffe] def input(written: String, what: => String): String =
    if (written.isEmpty || hadoop == null) written else Storage.resolveInput(written, what, hadoop)

  /** Asks the executable about solver and nets, at each call. */
  def plan(): Plan = planned(None)
  /** The same, and checks that a model fits the TEST net. */
  private[caffe] def planned(weights: Option[Weights]): Plan = {
    if (protoFile.isEmpty) throw new WrongArgument("no solver prototxt is given; name it with -conf")
    val (blobs, labels) = if (isFeature) (featureBlobs.toSeq, label) else (Nil, "")
    Planner.plan(protoFile, ranks, seedIfUnset, blobs, isTraining, isTest, weights, labels)
  }

  /** The message about a drawn seed, once for each run that trains. */
  private[caffe] def seedDrawn(plan: Plan): Option[String] =
    if (!plan.hasDrawnSeed || seedTold) None
    else {
      seedTold = true
      Some(s"random_seed is not set in $protoFile: ${plan.getDrawnSeed} was drawn; write it there to repeat this run")
    }

  /** The solver as the executable reads it: nets inlined, in the newest format, random_seed set. */
  def solverParameter: SolverParameter = {
    if (settings != null) known = plan().getSolver.toByteArray
    if (known == null) throw new IllegalStateException(
      "the solver was not read on the driver before this Config was sent to an executor")
    SolverParameter.parseFrom(known)
  }

  /** The net of `solverParameter`, all phases. */
  def netParam: NetParameter = netParam(isTrain = true)
  private[caffe] def netParam(isTrain: Boolean): NetParameter = {
    val s = solverParameter
    if (s.hasNetParam) s.getNetParam
    else if (isTrain || s.getTestNetParamCount == 0) s.getTrainNetParam
    else s.getTestNetParam(0)
  }

  /** Index of the data layer in `netParam`. @throws IllegalArgumentException when the net has none for this phase */
  def train_data_layer_id: Int = dataLayer(plan().hasTrain, plan().getTrain.getIndex, "TRAIN")
  def test_data_layer_id: Int = dataLayer(plan().hasTest, plan().getTest.getIndex, "TEST")
  private def dataLayer(has: Boolean, index: => Int, phase: String): Int =
    if (has) index else throw new WrongArgument(s"the net of $protoFile has no data layer in phase $phase")

  override def toString: String =
    s"conf $protoFile, train $isTraining, test $isTest, features ${features.mkString(",")}, model $modelPath, " +
      s"output $outputPath ($outputFormat), clusterSize $clusterSize, devices $devices, " +
      s"weights $snapshotModelFile, snapshot $snapshotStateFile"
}

object Config {
  val CONNECTION_NONE = 0
  val CONNECTION_RDMA = 1
  val CONNECTION_SOCKET = 2

  private def kindOf(connection: String): Int = connection.toLowerCase(java.util.Locale.ROOT) match {
    case "ethernet" => CONNECTION_SOCKET
    case "infiniband" => CONNECTION_RDMA
    case _ => throw new WrongArgument(s"-connection must be ethernet or infiniband, not '$connection'")
  }

  /** The same before there is a SparkContext, from the settings that it will have. */
  private[caffe] def ahead(settings: SparkConf, args: Array[String]): Config = {
    val conf = new Config(null)
    conf.settings = settings
    conf.hadoop = Edges.hadoop(settings)
    conf.read(Flags.parse(args))
    conf
  }

  private def resolveClusterSize(c: SparkConf, flag: Int): Int = if (c == null) flag else Cluster.clusterSize(c, flag)
}
