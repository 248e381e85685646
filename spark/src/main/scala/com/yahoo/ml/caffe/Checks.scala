package com.yahoo.ml.caffe

import java.io.{File, IOException}
import java.nio.file.Files

import caffe.Caffe.SolverParameter
import com.crema.{Cluster, Refusal, Storage, WrongArgument}
import com.crema.wire.Wire.Plan
import org.apache.spark.SparkConf
import org.slf4j.LoggerFactory

import scala.util.control.NonFatal

/** Checks on the driver before any work is done. Messages that users of CaffeOnSpark know are kept as they were. */
private[caffe] object Checks {
  private val log = LoggerFactory.getLogger(getClass)

  /** Before Spark asks for executors: checks solver, net and blobs, the other flags, whether input files exist and
    * whether output places are free.
    */
  def ahead(conf: Config): Unit = {
    if (!(conf.isTraining || conf.isTest || conf.isFeature))
      throw new WrongArgument(s"nothing to do: give -train, -test or -features (-help lists the flags)")
    val plan = conf.plan()
    sourcesAreThere(plan, conf)
    if (conf.isFeature) format(conf.outputFormat)
    if (conf.isTraining) {
      beforeTraining(conf)
      memory(plan, conf.settings)
      room(conf, plan)
    } else modelIsThere(conf)
  }

  /** Checks that the output is free. @param ours the folder that an earlier attempt of this application was writing */
  def output(conf: Config, ours: Option[String] = None): Unit = {
    if (conf.isFeature && !ours.contains(conf.at(conf.outputPath))) outputIsFree(conf)
    if (conf.isTest) resultPlaceIsNoFolder(conf)
  }

  def modelIsThere(conf: Config): Unit = {
    if (conf.modelPath.isEmpty) throw new WrongArgument("no model is given to score with; name it with -model")
    if (!Storage.exists(conf.input(conf.modelPath, "-model"), conf.hadoop)) throw new WrongArgument(
      s"there is no model at ${conf.modelPath}${other(conf, conf.modelPath)}; train one first, or correct -model")
  }

  /** The resolved URI in parentheses, where it differs from what the user wrote. */
  private def other(conf: Config, written: String): String =
    if (Storage.isLocal(conf.at(written)) || conf.at(written) == written) "" else s" (${conf.at(written)})"

  def beforeTraining(conf: Config): Unit = {
    Cluster.checkVersion()
    if (conf.modelPath.isEmpty) throw new WrongArgument("no place for the trained model is given; name it with -model")
    if (conf.snapshotStateFile.nonEmpty && conf.snapshotModelFile.isEmpty) {
      log.error("to resume training, please provide input model file")
      throw new Refusal("input model file must be provided for incremental training")
    }
    for ((flag, uri) <- Seq("weights" -> conf.snapshotModelFile, "snapshot" -> conf.snapshotStateFile))
      if (uri.nonEmpty && !Storage.exists(conf.input(uri, s"-$flag"), conf.hadoop))
        throw new WrongArgument(s"there is no file at -$flag $uri${other(conf, uri)}")
    Cluster.whyNoGrowth(conf.settings, conf.ranks).foreach(refuseGrowth)
    if (conf.settings.getBoolean("spark.speculation", false))
      throw new WrongArgument("spark.speculation would start workers twice; set --conf spark.speculation=false")
    folderOf(conf.modelPath, conf.at(conf.modelPath))
    val snapshots = Seq(conf.snapshotFolder).filter(_.nonEmpty)
    val places = (s"-model ${conf.modelPath}" -> conf.at(conf.modelPath)) +:
      snapshots.map(f => s"the snapshots' folder $f" -> Storage.inFolder(conf.at(f), "snapshot"))
    for ((name, place) <- places; found <- Storage.refusal(place, conf.hadoop)) {
      val text = s"$name cannot be written: ${found.why}; mend that or name another place (nothing was started)"
      throw (if (found.lasting) new WrongArgument(text) else new IllegalArgumentException(text))
    }
    if (conf.connection == Config.CONNECTION_RDMA && conf.isConnectionAsked)
      System.err.println("crema: InfiniBand is not in this version: the workers talk over Ethernet " +
        "(give -connection ethernet to silence this)")
  }

  /** On YARN and Kubernetes a container is killed when it holds more than heap and overhead. The JVM may fill its heap
    * and needs some of the overhead itself; the worker process must fit into the rest.
    *
    * @param rows that a worker keeps, once they are counted
    */
  def memory(plan: Plan, c: SparkConf, rows: Long = 0): Unit =
    if (plan.hasMemoryBytes && Seq("yarn", "k8s").exists(c.get("spark.master", "").startsWith(_))) {
      val heap = c.getSizeAsMb("spark.executor.memory", "1g")
      val share = c.getDouble("spark.executor.memoryOverheadFactor", 0.1)
      val overhead =
        if (c.contains("spark.executor.memoryOverhead")) c.getSizeAsMb("spark.executor.memoryOverhead")
        else math.max(384L, (heap * share).toLong)
      val needed = ((plan.getMemoryBytes + rows * plan.getBytesPerRow) >> 20) + 1 + JvmOverheadMb
      if (needed > overhead)
        throw new WrongArgument(s"a worker of net ${plan.getNetName} needs about ${needed - JvmOverheadMb} MiB " +
          s"beside its executor, and the executor itself some $JvmOverheadMb; the containers leave $overhead MiB for " +
          "both and would be killed: give --conf spark.executor.memoryOverhead=" +
          s"${(needed + 127) / 128 * 128}m (no worker was started)")
    }

  /** MB that an executor's JVM holds beside its heap: code, threads, buffers. */
  private val JvmOverheadMb = 160L

  /** Settings of dynamic allocation that CaffeOnSpark refuses always, where a run could not grow. */
  def refuseGrowth(why: String): Unit = throw new WrongArgument(
    "spark.dynamicAllocation.maxExecutors and spark.dynamicAllocation.minExecutors must be identical, as this run " +
      s"cannot grow: $why")

  private def folderOf(model: String, place: String): Unit = if (Storage.isLocal(place)) {
    val file = new File(Storage.localPath(place)).getAbsoluteFile
    try Files.createDirectories(file.getParentFile.toPath)
    catch {
      case e: IOException => throw new IllegalArgumentException(
          s"the folder of -model $model cannot be made: ${Storage.cause(e)}; mend that or name another place", e)
    }
    if (file.isDirectory) throw new WrongArgument(s"-model $model is a folder; name a file in it")
  }

  /** Local databases, where the tasks have this machine's disk; elsewhere the workers look. */
  private def sourcesAreThere(plan: Plan, conf: Config): Unit =
    if (conf.settings.get("spark.master", "").startsWith("local"))
      for {
        source <- (if (conf.isTraining) Seq(plan.getTrain) else Nil) ++
          (if (conf.isTest || conf.isFeature) Seq(plan.getTest) else Nil)
        if source.getType == "Data" && Storage.isLocal(conf.at(source.getSource)) &&
          !Storage.exists(conf.at(source.getSource), conf.hadoop)
      } throw new WrongArgument(s"there is no ${source.getBackend} at ${source.getSource}, the source of layer " +
        s"'${source.getLayer}'; correct it in the net (nothing was started)")

  /** Checks that the model fits on the disk of -model, if that is local. */
  def room(conf: Config, plan: Plan): Unit = if (Storage.isLocal(conf.at(conf.modelPath))) {
    val folder = new File(Storage.localPath(conf.at(conf.modelPath))).getAbsoluteFile.getParentFile
    val (needed, free) = (4 * plan.getParameters, folder.getUsableSpace)
    if (free < needed) throw new IllegalArgumentException(
      s"-model ${conf.modelPath} cannot be written: the model has $needed bytes, and $free are free there; " +
        "make room or name another place (nothing was started)")
  }

  /** @throws IllegalArgumentException for a name that Spark knows no format by */
  def format(name: String): Unit =
    try {
      val settings = org.apache.spark.sql.internal.SQLConf.get
      org.apache.spark.sql.execution.datasources.DataSource.lookupDataSource(name, settings)
    } catch {
      case NonFatal(_) | _: LinkageError =>
        throw new WrongArgument(s"-outputFormat $name: Spark finds no such format; give json, parquet, orc, csv or " +
          "avro, or put its jar on the job (nothing was started)")
    }

  private def outputIsFree(conf: Config): Unit =
    if (Storage.exists(conf.at(conf.outputPath), conf.hadoop))
      throw new WrongArgument(
        s"-output ${conf.outputPath} exists already; remove it or name another place (nothing was started)")

  /** -test replaces an old result file, as in CaffeOnSpark, but not a folder. */
  private def resultPlaceIsNoFolder(conf: Config): Unit =
    if (Storage.isFolder(conf.at(conf.outputPath), conf.hadoop))
      throw new WrongArgument(
        s"-output ${conf.outputPath} is a folder; -test writes one file: name another place (nothing was started)")

  /** The plan's solver. Without validation its tests are removed, as there is no test source: the workers then build no
    * TEST net.
    */
  def solverFor(plan: Plan, validation: Boolean): com.google.protobuf.ByteString =
    if (validation) plan.getSolver
    else {
      val solver = SolverParameter.parseFrom(plan.getSolver).toBuilder.setTestInterval(0)
      solver.clearTestIter().clearTestNet().clearTestNetParam().clearTestState().build().toByteString
    }
}
