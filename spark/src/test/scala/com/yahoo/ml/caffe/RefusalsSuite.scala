package com.yahoo.ml.caffe

import java.io.{ByteArrayOutputStream, File, IOException, PrintStream}
import java.nio.file.{Files, Path, Paths}
import java.util.Locale

import com.crema.{Console, CremaException, JobError, Storage, WrongArgument}
import com.crema.wire.Wire.Event
import org.apache.hadoop.fs.permission.FsPermission
import org.apache.hadoop.fs.{FSDataOutputStream, RawLocalFileSystem, Path => HadoopPath}
import org.apache.hadoop.util.Progressable
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

import scala.collection.JavaConverters._

/** Local files under a scheme of their own, on a disk that is slow, and full for files with certain names. */
class FullDisk extends RawLocalFileSystem {
  override def getUri: java.net.URI = java.net.URI.create("full:///")
  override def getScheme: String = "full"
  private def refuse(f: HadoopPath): Unit =
    if (FullDisk.full.nonEmpty && f.getName.contains(FullDisk.full)) throw new IOException("No space left on device")
    else if (f.getName.contains("solverstate") && FullDisk.busy.getAndDecrement() > 0) throw new IOException("busy")
    else Thread.sleep(FullDisk.delay)
  override def create(f: HadoopPath, overwrite: Boolean, buffer: Int, replication: Short, block: Long,
      progress: Progressable): FSDataOutputStream = {
    refuse(f); super.create(f, overwrite, buffer, replication, block, progress)
  }
  override def create(f: HadoopPath, permission: FsPermission, overwrite: Boolean, buffer: Int, replication: Short,
      block: Long, progress: Progressable): FSDataOutputStream = {
    refuse(f); super.create(f, permission, overwrite, buffer, replication, block, progress)
  }
}

object FullDisk {
  @volatile var (full, delay) = ("", 0L)
  val busy = new java.util.concurrent.atomic.AtomicInteger // how many states will be refused
}

/** What is refused before a run starts, and what is reported when a run cannot go on. */
class RefusalsSuite extends AnyFunSuite with BeforeAndAfterAll {
  private lazy val folder: Path = Files.createTempDirectory("refusals-suite-")
  private lazy val spark = TestRecords.spark("local[2]", "spark.hadoop.fs.full.impl" -> classOf[FullDisk].getName)
  private def sc = spark.sparkContext
  private lazy val records = new TestRecords(folder, 101, 1)

  override def afterAll(): Unit = {
    spark.stop()
    org.apache.hadoop.fs.FileUtil.fullyDelete(folder.toFile)
  }

  private def net(rename: (String, String)*): String = {
    def memory(batch: Int) =
      s"""type: "MemoryData" source_class: "com.yahoo.ml.caffe.LMDB" transform_param { scale: 0.00390625 }
      memory_data_param { source: "${records.lmdb}" batch_size: $batch channels: 1 height: 12 width: 12 }"""
    rename.foldLeft(TestRecords.net(memory(16), memory(20))) { case (text, (from, to)) =>
      text.replace(s"""name: "$from"""", s"""name: "$to"""")
    }
  }
  private def conf(name: String, text: String, model: String, more: String, flags: String*): Config =
    new Config(sc,
      Array("-conf", TestRecords.solver(folder.resolve(name), text, more), "-model", model,
        "-connection", "ethernet") ++ flags)
  private def train(c: Config): Unit =
    new CaffeOnSpark(sc).train(DataSource.getSource(c, isTraining = true).asInstanceOf[DataSource[Any, Any]])
  private def features(c: Config) =
    new CaffeOnSpark(sc).features(DataSource.getSource(c, isTraining = false).asInstanceOf[DataSource[Any, Any]])
  private def heard[A](work: => A, each: String => Unit = _ => ()): (A, String) = {
    val (said, before) = (new ByteArrayOutputStream, System.err)
    System.setErr(new PrintStream(said, true) { override def println(x: String): Unit = { each(x); super.println(x) } })
    try { val a = work; (a, said.toString) }
    finally System.setErr(before)
  }
  private lazy val trained: String = {
    val at = s"file:${folder.resolve("trained.model")}"
    train(conf("trained", net(), at, ""))
    at
  }

  test("weights that fit no layer are refused, for scoring and for fine-tuning; some that fit are told of") {
    val other = net("conv" -> "c", "ip" -> "i")
    val path = trained.stripPrefix("file:")
    val words = Seq(path, "fit no layer of net 'small'", "they are for conv, ip", "the net has c, i")
    val scoring = intercept[IllegalArgumentException](features(conf("other", other, trained, "", "-features", "ip")))
      .getMessage
    val tuned = conf("tuned", other, s"file:${folder.resolve("tuned.model")}", "", "-weights", trained)
    val tuning = intercept[CremaException](train(tuned)).getMessage
    for (said <- Seq(scoring, tuning); w <- words) assert(said.contains(w), said)
    assert(!tuning.contains("Job aborted"), tuning)
    val half = net("ip" -> "i")
    val (rows, said) = heard(features(conf("half", half, trained, "", "-features", "ip")).count())
    val told = s"$trained has no values for i: the random values of their fillers".r.findAllIn(said)
    assert(rows == 101 && told.size == 1, said)
    train(conf("half-tuned", half, s"file:${folder.resolve("half.model")}", "", "-weights", trained))
    assert(Files.size(folder.resolve("half.model")) > 0)
  }

  test("a SequenceFile of other classes, and what is none, is told of on the driver") {
    import org.apache.hadoop.io.{BytesWritable, IntWritable, Text}
    def refused(path: Path): String = {
      val text = net().replace("com.yahoo.ml.caffe.LMDB", "com.yahoo.ml.caffe.SeqImageDataSource")
        .replace(records.lmdb.toString, s"file:$path")
      var jobs = 0
      val listener = new org.apache.spark.scheduler.SparkListener {
        override def onJobStart(e: org.apache.spark.scheduler.SparkListenerJobStart): Unit = jobs += 1
      }
      sc.addSparkListener(listener)
      val run = conf("sequence", text, s"file:${folder.resolve("sequence.model")}", "")
      val said =
        try intercept[CremaException](train(run)).getMessage
        finally sc.removeSparkListener(listener)
      assert(jobs == 0)
      said
    }
    val texts = folder.resolve("texts")
    sc.parallelize(Seq(1, 2), 1).map(i => (new Text(s"$i"), new IntWritable(i))).saveAsSequenceFile(texts.toString)
    val said = refused(texts)
    val words = "has keys of org.apache.hadoop.io.Text and values of org.apache.hadoop.io.IntWritable; " +
      "keys and values of org.apache.hadoop.io.BytesWritable are read"
    assert(said.contains(words), said)
    val none = Files.write(folder.resolve("none.seq"), "no such file".getBytes)
    assert(refused(none).contains("none.seq cannot be read as a SequenceFile: "))
  }

  test("a place that cannot be written is refused before the start") {
    val places = Seq(
      ("foo:///m", "No FileSystem for scheme \"foo\"", true),
      ("hdfs://no.such.host.invalid:9/m", "no.such.host.invalid", false),
      (s"full:$folder/no/m", "No space left on device", false),
      (s"full:$folder", "it is a folder", true)
    )
    for ((place, why, lasting) <- places) {
      if (place.startsWith("full")) FullDisk.full = "_m."
      val refused = intercept[IllegalArgumentException](train(conf("placed", net(), place, "")))
      val e = refused.getMessage
      FullDisk.full = ""
      assert(JobError.isLasting(refused) == lasting, "what may be otherwise in a moment is tried again on YARN")
      assert(e.startsWith(s"-model $place cannot be written: ") && e.contains(why), e)
      assert(e.contains("nothing was started"), e)
    }
    val astray = conf("astray", net(), s"full:$folder/astray/m", "")
    astray.snapshotFolder = "hdfs://no.such.host.invalid:9/snapshots"
    assert(intercept[IllegalArgumentException](train(astray)).getMessage
        .startsWith("the snapshots' folder hdfs://no.such.host.invalid:9/snapshots cannot be written: "))
    assert(Storage.refusal(s"full:$folder/m", sc.hadoopConfiguration).isEmpty)
    FullDisk.delay = 3000
    val refusal = Storage.refusal(s"full:$folder/m", sc.hadoopConfiguration, 1)
    assert(refusal.map(f => f.why -> f.lasting) == Some("no answer within 1 s" -> false))
    FullDisk.delay = 0
    assert(!folder.toFile.list.exists(_.endsWith(".probe")) || {
      Thread.sleep(3000)
      !folder.toFile.list.exists(_.endsWith(".probe"))
    })
  }

  test("-resume auto refuses the snapshot of another job, before the first step, and takes that of its own") {
    val model = s"file:${Files.createDirectories(folder.resolve("own")).resolve("model")}"
    def job(name: String, more: String) = conf(name, net(), model, more, "-resume", "auto")
    heard(train(job("first", "")))
    val (e, _) = heard(intercept[CremaException](train(job("second", "clip_gradients: 1"))).getMessage)
    val words =
      "snap_iter_30.solverstate is of another job, which differs in its solver settings (no clip_gradients, here " +
        "clip_gradients: 1). Give this job another"
    assert(e.split("\n").head.contains(words), e)
    val (_, said) = heard(train(job("third", "display: 3")))
    assert(said.contains("training goes on from the snapshot of iteration 30"), said)
    val saved = folder.resolve("own/snap_iter_30.caffemodel")
    val bytes = Files.readAllBytes(saved)
    bytes(bytes.length / 2) = (bytes(bytes.length / 2) ^ 1).toByte
    Files.write(saved, bytes)
    val (damaged, _) = heard(intercept[CremaException](train(job("fourth", ""))).getMessage)
    assert(damaged.split("\n").head.contains(s"$saved is not the model that was saved with $folder/own/snap_iter_30."),
      damaged)
  }

  test("a database that is not there is refused on the driver with the layer's name") {
    val data = s"""type: "Data" data_param { source: "/no/such_lmdb" batch_size: 16 backend: LMDB }"""
    val c = conf("gone", TestRecords.net(data, data), "file:m", "")
    val (e, _) = heard(intercept[WrongArgument](train(c)).getMessage)
    assert(e.startsWith("there is no /no/such_lmdb, the source of layer 'data' (TRAIN) of ") && e.endsWith(
        "check the path"), e)
  }

  test("a seed that was drawn is told of by who trains, not by who scores") {
    def unseeded(name: String, flags: String*) = {
      val c = conf(name, net(), trained, "", flags: _*)
      val solver = Paths.get(c.protoFile)
      Files.writeString(solver, Files.readString(solver).replace("random_seed: 7", ""))
      c
    }
    val (rows, scoring) = heard(features(unseeded("unseeded", "-features", "ip")).count())
    assert(rows == 101 && !scoring.contains("random_seed"), scoring)
    val c = unseeded("unseeded-trained")
    c.modelPath = s"file:${folder.resolve("unseeded.model")}"
    val (_, training) = heard(train(c))
    assert("random_seed is not set in .*: \\d+ was drawn".r.findAllIn(training).size == 1, training)
  }

  test("a snapshot is shown when it is in its place; one that cannot be published ends the run with its own sentence") {
    FullDisk.delay = 300
    val home = Files.createDirectories(folder.resolve("published"))
    var (shown, there) = (0, 0)
    def follow(line: String): Unit = if (line.contains(": snapshot")) {
      shown += 1
      val files = Seq("caffemodel", "solverstate").map(end => new File(s"$home/snap_iter_${15 * shown}.$end"))
      if (files.forall(_.exists())) there += 1
    }
    heard(train(conf("slow", net(), s"full:$home/m", "snapshot: 15")), follow)
    assert((shown, there) == ((2, 2)))
    FullDisk.delay = 0
    home.toFile.listFiles.foreach(_.delete())
    shown = 0
    FullDisk.busy.set(2)
    val (_, heardOf) = heard(train(conf("busy", net(), s"full:$home/m", "snapshot: 15")), follow)
    assert(FullDisk.busy.get < 0 && (shown, there) == ((2, 4)) && !heardOf.contains("lost"), heardOf)
    FullDisk.full = "snap_iter_15.solverstate"
    // With two, the other worker may go on and end the run well.
    val full = conf("full", net(), s"full:$home/m2", "snapshot: 15", "-clusterSize", "1")
    val (e, said) =
      try heard(intercept[CremaException](train(full)).getMessage)
      finally FullDisk.full = ""
    assert(e.split("\n").head.contains("the snapshot of iteration 15 cannot be published: full:") &&
        e.split("\n").head.contains("No space left on device; "), e)
    assert(!e.contains("was lost") && !e.contains("Job aborted") && !said.contains("iteration 15: snapshot"), e + said)
    // The disk gets full later: the file that is written before the start to try the place has such a name, too.
    val late = new Thread(() => {
      while (!new File(s"$home/snap_iter_30.solverstate").exists()) Thread.sleep(5)
      FullDisk.full = "_m3."
    })
    home.toFile.listFiles.foreach(_.delete())
    late.setDaemon(true)
    late.start()
    val last =
      try intercept[CremaException](train(conf("last", net(), s"full:$home/m3", "snapshot: 30"))).getMessage
      finally FullDisk.full = ""
    val words = s"the model is trained and not saved: full:$home/m3 cannot be written: No space left on device"
    assert(last.contains(words), last)
  }

  test("flags: a wrong format, label or connection, help, and the flag that was meant") {
    assert(intercept[IllegalArgumentException](Checks.format("jsn")).getMessage.startsWith("-outputFormat jsn: "))
    Seq("json", "parquet", "orc", "csv").foreach(Checks.format)
    val wrong = conf("label", net(), trained, "", "-features", "ip", "-label", "lable")
    val e = intercept[IllegalArgumentException](wrong.plan()).getMessage
    assert(e.contains("no blob 'lable'") && e.contains("in -label lable") && !e.contains("_split_"), e)
    def refused(flags: String*) = intercept[IllegalArgumentException](new Config(null, flags.toArray)).getMessage
    val connection = refused("-connection", "ethernett")
    assert(connection.contains("-connection must be ethernet or infiniband, not 'ethernett'"), connection)
    assert(!new Config(null, Array[String]()).isConnectionAsked)
    assert(new Config(null, Array("-connection", "InfiniBand")).isConnectionAsked)
    val misspelt = Seq("-modle" -> "-model", "-clustersize" -> "-clusterSize", "-feature" -> "-features",
      "-lmdb-partitions" -> "-lmdb_partitions")
    for ((wrong, right) <- misspelt)
      assert(refused(wrong, "x").startsWith(s"there is no flag $wrong; did you mean $right?"))
    assert(refused("-frobnicate").startsWith("there is no flag -frobnicate (-help lists the flags)"))
    val shown = new ByteArrayOutputStream
    scala.Console.withOut(shown)(CaffeOnSpark.main(Array("-train", "-help")))
    assert(shown.toString.contains("-outputFormat <format>"), shown)
    val solver = Paths.get(TestRecords.solver(folder.resolve("aNet"), net()))
    val mistaken = new Config(sc)
    mistaken.protoFile = solver.resolveSibling("net.prototxt").toString
    assert(intercept[IllegalArgumentException](mistaken.plan()).getMessage
        .contains("net.prototxt is a net, and a solver is needed"))
  }

  test("what a file system says is told with its place, without Spark's words around it") {
    val nowhere = "hdfs://no.such.host.invalid:9/x"
    assert(intercept[CremaException](Storage.exists(nowhere, sc.hadoopConfiguration)).getMessage
        .startsWith(s"$nowhere cannot be reached: "))
    def ofTask(failure: => Exception) =
      intercept[CremaException](JobError.explained(sc.parallelize(Seq(1), 1).map[Int](_ => throw failure).collect()))
    val e = ofTask(new IOException("/x: No space left on device")).getMessage
    assert(e == "/x: No space left on device")
    val quota = new IOException("the quota is exceeded")
    val task = ofTask(new IllegalStateException("/x cannot be written", quota)).getMessage
    assert(task == "/x cannot be written: the quota is exceeded")
    val huge = com.crema.wire.Wire.Plan.newBuilder.setParameters(1L << 58).build()
    val small = intercept[IllegalArgumentException](Checks.room(conf("room", net(), s"file:$folder/m", ""), huge))
    assert(small.getMessage.contains("the model has 1152921504606846976 bytes, and "))
  }

  test("numbers have points whatever the machine's language is") {
    val before = Locale.getDefault
    Locale.setDefault(Locale.GERMANY)
    val step = Event.Progress.newBuilder.setIteration(4).setMaxIter(9).setLoss(0.5).setLr(0.25)
    val progress = Event.newBuilder.setProgress(
      step.setRecordsPerSecond(1234.5).setSecondsLeft(61).setFeedShare(0.25).setExchangeShare(0.004)
        .setComputeShare(0.6).setWaitShare(0.146)).build()
    val early = Event.newBuilder.setProgress(step.setIteration(0).clearSecondsLeft().clearFeedShare()
        .clearComputeShare().clearWaitShare()).build()
    val loss = com.crema.wire.Wire.Output.newBuilder.setName("loss").addAllValue(Seq(Float.box(1.5f)).asJava)
    val tested = Event.newBuilder.setTest(Event.Test.newBuilder.setIteration(5).addOutput(loss)).build()
    val (_, said) =
      try heard { val c = new Console(0); c.show(early); c.show(progress); c.show(tested) }
      finally Locale.setDefault(before)
    assert(
      said.contains("iteration 5/9  loss 0.5000  lr 0.25000") && said.contains(
        "1:01 left  feed 25 %  compute 60 %  wait 15 %") &&
        said.contains("test loss 1.5000"),
      said
    )
    assert(said.linesIterator.exists(_.endsWith("iteration 1/9  loss 0.5000  lr 0.25000  1235 records/s")), said)
  }
}
