package com.yahoo.ml.caffe

import java.io.File
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.Files

import scala.collection.JavaConverters._
import scala.util.control.NonFatal

import caffe.Caffe.SolverParameter
import caffe.Caffe.SolverParameter.SnapshotFormat
import com.crema._
import com.crema.wire.Wire.{Job, Plan}
import org.apache.hadoop.fs.Path
import org.apache.spark.SparkContext
import org.apache.spark.crema.Placement
import org.apache.spark.mllib.linalg.Vectors
import org.apache.spark.sql.{DataFrame, Row, SaveMode, SparkSession}
import org.apache.spark.sql.expressions.UserDefinedFunction
import org.apache.spark.sql.functions.udf
import org.apache.spark.sql.types._
import org.apache.spark.storage.StorageLevel
import org.apache.spark.util.LongAccumulator

/** Implements CaffeOnSpark's methods. */
private[caffe] class Runs(@transient val sc: SparkContext) extends Serializable {
  @transient private lazy val spark = SparkSession.builder().config(sc.getConf).getOrCreate()
  @transient private lazy val console = new Console
  /** The budget of the run that spark-submit was called for; any other run gets one of its own. */
  @transient private[caffe] var budget: Option[Budget] = None
  @transient private[caffe] var journal: Option[Journal] = None

  def train[T1, T2](source: DataSource[T1, T2]): Unit = trainWith(source, None)

  def trainWithValidation[T1, T2](source: DataSource[T1, T2], validation: DataSource[T1, T2]): DataFrame = {
    if (validation == null) throw new Refusal("No validation data is given")
    val tests = trainWith(source, Some(validation))
      .filter(t => t.getNet == 0 && t.getIteration > 0 && t.getIteration < source.conf.plan().getMaxIter)
    val names = source.conf.plan().getOutputsList.asScala.toSeq
    val rows = tests.map { t =>
      val values = t.getOutputList.asScala.map(o => o.getName -> o.getValueList.asScala.map(_.floatValue).toSeq).toMap
      Row(names.map(values): _*)
    }
    spark.createDataFrame(sc.parallelize(rows, 1), StructType(names.map(floats)))
  }

  private def trainWith(source: DataSource[_, _], validation: Option[DataSource[_, _]]) = {
    if (source == null) throw new Refusal("No training data is given")
    val conf = source.conf
    val (time, judged) = (budget.getOrElse(new Budget(None)), budget.isDefined)
    budget = None
    if (!judged) Checks.beforeTraining(conf)
    val plan = conf.plan()
    if (!judged) { Checks.memory(plan, sc.getConf); Checks.room(conf, plan) }
    conf.seedDrawn(plan).foreach(console.say)
    nameAsFormat(conf)
    val spec = specOf(conf, plan, source, validation)
    if (Cluster.grows(sc.getConf) && !spec.anyWorkerReads)
      Checks.refuseGrowth(
        "rows of sources that are no database are sent to the executors that are there at the beginning")
    // The first RDD of an application makes Spark load its JSON mapper, 0.4 s; here that overlaps with the start of
    // executors.
    sc.parallelize(Seq.empty[Int], 1)
    time.lap("plan and checks", "unpacking" -> NativeBinary.unpackSeconds())
    val workers = Cluster.workers(sc, conf.ranks)
    time.executorsSince(Placement.lastExecutor(sc))
    val size = if (plan.hasParameters) s" ${plan.getParameters} parameters;" else "" // the records give the shapes
    val places = Cluster.places(sc, conf.ranks, workers)
    val more = if (places > workers) s", and up to $places as executors come" else ""
    console.say(s"net ${plan.getNetName}:$size ${conf.ranks} rank(s) of batch " +
      s"${source.batchSize()} on $workers worker(s)$more")
    TrainRun.run(sc, spec, workers, places, console, time, kept = Checks.memory(plan, sc.getConf, _),
      published = s => journal.foreach(_.noteSnapshot(s, spec.snapshotFolder)))
  }

  /** A model's name ends in .h5 exactly when the solver says `snapshot_format: HDF5`, so that scoring finds it. */
  private def nameAsFormat(conf: Config): Unit = {
    val hdf5 = conf.solverParameter.getSnapshotFormat == SnapshotFormat.HDF5
    val name =
      if (hdf5 && !conf.modelPath.endsWith(".h5")) conf.modelPath + ".h5"
      else if (!hdf5) conf.modelPath.stripSuffix(".h5")
      else conf.modelPath
    if (name != conf.modelPath)
      console.say(s"the model will be $name, as snapshot_format is ${if (hdf5) "HDF5" else "BINARYPROTO"}")
    conf.modelPath = name
  }

  private def specOf(conf: Config, plan: Plan, source: DataSource[_, _],
      validation: Option[DataSource[_, _]]): TrainSpec = {
    val model = conf.at(conf.modelPath)
    val (local, folder) = (Storage.isLocal(model), conf.at(conf.snapshotFolder))
    val file = Storage.plain(model)
    val parent =
      if (folder.nonEmpty) folder else if (local) new File(file).getParent else new Path(model).getParent.toString
    val name = new File(plan.getSnapshotPrefix).getName
    val found = resumeFrom(conf, parent, name, plan.getMaxIter)
    val job = Job.newBuilder.setSolver(Checks.solverFor(plan, validation.isDefined)).setNetOrigin(plan.getNetOrigin)
      .setFoundSnapshot(found).setDrawnSeed(plan.hasDrawnSeed)
      .setRanks(conf.ranks).setThreads(Cluster.threadsPerTask(sc)).setResize(conf.resize).setLog(true)
    TrainSpec(
      job = job.build().toByteArray,
      train = source.records(sc),
      test = validation.map(_.records(sc)),
      trainBatch = source.batchSize(),
      testBatch = validation.fold(1)(_.batchSize()),
      ranks = conf.ranks,
      persistent = conf.isRddPersistent,
      weights = conf.at(conf.snapshotModelFile),
      snapshot = conf.at(conf.snapshotStateFile),
      model = file,
      snapshotFolder = parent,
      snapshotName = name,
      hadoop = HadoopSettings.of(sc.hadoopConfiguration),
      localMode = Cluster.isLocal(sc)
    )
  }

  /** -resume auto: the newest snapshot in the folder where this job's snapshots go. The workers refuse that of another
    * job.
    *
    * @return whether there is one
    */
  private def resumeFrom(conf: Config, folder: String, name: String, maxIter: Long): Boolean = {
    if (!Set("", "none", "auto")(conf.resume))
      throw new WrongArgument(s"-resume must be auto or none, not '${conf.resume}'")
    if (conf.resume == "auto" && conf.snapshotStateFile.isEmpty)
      Snapshots.newest(folder, name, sc.hadoopConfiguration, console.say) match {
        case Some(Snapshots.Found(iteration, model, state)) =>
          console.say(s"training goes on from the snapshot of iteration $iteration, $state")
          if (iteration >= maxIter)
            console.say(
              s"there is nothing left to train: the solver's max_iter is $maxIter, and the model is that of " +
                "the snapshot. A run that is to begin anew needs another -model, or -resume none")
          conf.snapshotModelFile = Storage.named(model)
          conf.snapshotStateFile = Storage.named(state)
          true
        case None =>
          console.say(s"there is no snapshot ${Storage.inFolder(folder, name)}_iter_N.solverstate yet")
          false
      }
    else false
  }

  def features[T1, T2](source: DataSource[T1, T2]): DataFrame = {
    val blobs = source.conf.features.toSeq
    val schema = StructType(StructField("SampleID", StringType, nullable = false) +: blobs.map(floats))
    val skipped = sc.longAccumulator("records that could not be decoded")
    scoring(source) { progress =>
      val rows = score(source, blobs, skipped, progress).map(r => Row(r.id +: r.values.map(_.toSeq): _*))
      val frame = spark.createDataFrame(rows, schema).persist(StorageLevel.DISK_ONLY)
      JobError.explained(frame.count()) // so that a failure is thrown here and not by a later action of the user's
      reportSkipped(skipped)
      frame
    }
  }

  def test[T1, T2](source: DataSource[T1, T2]): Map[String, Seq[Double]] = {
    val blobs = source.conf.plan().getOutputsList.asScala.toSeq
    val batch = source.batchSize()
    // Sums are taken per batch and added in the order of the records, so that the last digit does not depend on which
    // task finished first or on the number of tasks.
    val skipped = sc.longAccumulator("records that could not be decoded")
    val parts = scoring(source) { progress =>
      val sums = score(source, blobs, skipped, progress).mapPartitions(_.grouped(batch).map { rows =>
        (rows.map(_.values.map(_.map(_.toDouble).toSeq)).reduce(added), rows.size.toLong)
      })
      JobError.explained(sums.collect())
    }
    reportSkipped(skipped)
    if (parts.isEmpty) throw new WrongArgument("the TEST source holds no records to test with")
    val (sums, count) = (parts.map(_._1).reduceLeft(added), parts.map(_._2).sum)
    blobs.zip(sums.map(_.map(_ / count))).toMap
  }

  private def added(a: Seq[Seq[Double]], b: Seq[Seq[Double]]): Seq[Seq[Double]] = a.zip(b).map { case (x, y) =>
    x.zip(y).map { case (u, v) => u + v }
  }

  private def reportSkipped(skipped: LongAccumulator): Unit =
    if (skipped.value > 0)
      console.say(s"${skipped.value} record(s) could not be decoded and were passed over; " +
        "the executors' logs name the first ones")

  /** Shows on the console how many rows are scored, while `body` runs. */
  private def scoring[A](source: DataSource[_, _])(body: ScoreProgress => A): A = {
    if (source == null) throw new Refusal("No data is given")
    Checks.modelIsThere(source.conf)
    val progress = new ScoreProgress(sc, console, ScoreRun.known(sc, source.records(sc)))
    try body(progress)
    finally progress.close()
  }

  private def score(source: DataSource[_, _], blobs: Seq[String], skipped: LongAccumulator, progress: ScoreProgress) = {
    val conf = source.conf
    val local = Storage.fetch(conf.at(conf.modelPath), sc.hadoopConfiguration)
    val plan = conf.planned(Some(Weights(local, conf.modelPath)))
    Planner.untrainedWarning(plan, conf.modelPath).foreach(console.say)
    val records = source.records(sc)
    console.say(s"scoring ${records.description} with ${conf.modelPath}: ${blobs.mkString(", ")}")
    val model = SharedFile.of(sc, new File(local), new Path(conf.at(conf.modelPath)).getName)
    val job = Job.newBuilder.setSolver(plan.getSolver).setNetOrigin(plan.getNetOrigin).setWeightsName(conf.modelPath)
      .setThreads(Cluster.threadsPerTask(sc)).setResize(conf.resize).addAllBlobs(blobs.asJava).build().toByteArray
    val tasks = math.max(conf.lmdb_partitions, Cluster.workers(sc, conf.ranks))
    val hadoop = HadoopSettings.of(sc.hadoopConfiguration)
    val spec = ScoreRun.Spec(job, model, source.batchSize(), tasks, hadoop, Some(progress.scored))
    ScoreRun.rows(sc, spec, records, skipped, progress.total)
  }

  /** Runs all that a command line asks for. */
  def run(conf: Config, left: Earlier): Unit = {
    if (conf.isTraining && !left.isTrained) {
      val plan = conf.plan()
      val source = DataSource.getSource(conf, isTraining = true)
      if (plan.getTestInterval != 0 && plan.getTestIter != 0)
        trainWithValidation(source.asInstanceOf[DataSource[Any, Any]],
          DataSource.getSource(conf, isTraining = false).asInstanceOf[DataSource[Any, Any]])
      else train(source)
      System.err.println(s"crema: the model is at ${conf.modelPath}")
      journal.foreach(_.noteModel(conf.at(conf.modelPath)))
    }
    val output = conf.at(conf.outputPath)
    if (conf.isFeature) {
      val frame = features(DataSource.getSource(conf, isTraining = false))
      journal.foreach(_.noteOutput(output))
      val mode = if (left.output.contains(output)) SaveMode.Overwrite else SaveMode.ErrorIfExists
      Unfinished.removed(output, sc.hadoopConfiguration) {
        JobError.explained(frame.write.mode(mode).format(conf.outputFormat).save(output))
      }
      System.err.println(s"crema: ${frame.count()} rows of ${conf.features.mkString(", ")} are at " +
        s"${conf.outputPath} (${conf.outputFormat})")
    } else if (conf.isTest) {
      val means = test(DataSource.getSource(conf, isTraining = false))
      val lines = means.map { case (name, values) => s"$name: ${values.mkString(",")}" }.mkString("", "\n", "\n")
      val local = Files.createTempFile("crema-test", ".txt")
      try {
        Files.write(local, lines.getBytes(UTF_8))
        Storage.publish(local.toString, output, sc.hadoopConfiguration)
      } finally Files.deleteIfExists(local)
      System.err.print(lines)
    }
  }

  private def floats(name: String) = StructField(name, ArrayType(FloatType, containsNull = false), nullable = false)
}

private[caffe] object Runs {
  val floatarray2double: UserDefinedFunction = udf((values: Seq[Float]) => values.head.toDouble)
  val floatarray2doublevector: UserDefinedFunction =
    udf((values: Seq[Float]) => Vectors.dense(values.map(_.toDouble).toArray))
}
