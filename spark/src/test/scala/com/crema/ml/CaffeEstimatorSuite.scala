package com.crema.ml

import java.nio.file.{Files, Path}

import com.yahoo.ml.caffe.{CaffeOnSpark, DataSource, SourceRuns, TestRecords}
import org.apache.hadoop.fs.FileUtil
import org.apache.spark.ml.evaluation.MulticlassClassificationEvaluator
import org.apache.spark.ml.feature.VectorAssembler
import org.apache.spark.ml.linalg.{SQLDataTypes, Vectors}
import org.apache.spark.ml.{Pipeline, PipelineModel}
import org.apache.spark.sql.functions.{col, expr, udf}
import org.apache.spark.sql.types._
import org.apache.spark.sql.{DataFrame, Row, SparkSession}
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

import scala.collection.JavaConverters._

class CaffeEstimatorSuite extends AnyFunSuite with BeforeAndAfterAll {
  private lazy val folder: Path = Files.createTempDirectory("estimator-suite-")
  private lazy val spark: SparkSession = TestRecords.spark("local[2]")
  private lazy val train = new TestRecords(folder, 301, 1)
  private lazy val test = new TestRecords(folder, 90, 2)

  override def afterAll(): Unit = {
    spark.stop()
    FileUtil.fullyDelete(folder.toFile)
  }

  private def memory(batch: Int, transform: String) =
    s"""type: "MemoryData" $transform memory_data_param {
       |  source: "unused" batch_size: $batch channels: 1 height: 12 width: 12 }""".stripMargin
  private val scaled = "transform_param { scale: 0.00390625 }"
  private def solver(name: String, transform: String = scaled, more: String = "") =
    TestRecords.solver(folder.resolve(name), TestRecords.net(memory(16, transform), memory(20, transform)), more)

  private def frame(r: TestRecords, kind: String): DataFrame = {
    def floats(i: Int) = r.pixels(i).toSeq.map(p => (p & 0xff) * 0.00390625f)
    val (value, t) = kind match {
      case "binary" => ((i: Int) => r.pixels(i): Any, BinaryType)
      case "png" => ((i: Int) => SourceRuns.png(r.pixels(i), r.side): Any, BinaryType)
      case "broken" =>
        ((i: Int) => if (i % 10 == 3) "broken".getBytes else SourceRuns.png(r.pixels(i), r.side): Any, BinaryType)
      case "array" => ((i: Int) => floats(i): Any, ArrayType(FloatType))
      case "vector" => ((i: Int) => Vectors.dense(floats(i).map(_.toDouble).toArray): Any, SQLDataTypes.VectorType)
    }
    val rows = (0 until r.count).map(i => Row(i.toLong, value(i), r.labels(i).toDouble))
    val columns = Seq(StructField("key", LongType), StructField("features", t), StructField("label", DoubleType))
    spark.createDataFrame(spark.sparkContext.parallelize(rows, 5), StructType(columns))
  }

  private def weights(model: Array[Byte]) = {
    val layers = caffe.Caffe.NetParameter.parseFrom(model).getLayerList.asScala
    layers.flatMap(_.getBlobsList.asScala.map(_.getDataList.asScala.toSeq)).toSeq
  }

  private def estimator(name: String, transform: String = scaled, more: String = "") =
    new CaffeEstimator().setSolver(solver(name, transform, more)).setRanks(2).setOutputBlobs(Array("ip"))

  /** What CaffeOnSpark learns from the same records in an LMDB. */
  private lazy val reference = {
    val kind = "source_class: \"com.yahoo.ml.caffe.LMDB\" "
    val net = TestRecords.net(kind + memory(16, scaled).replace("unused", train.lmdb),
      kind + memory(20, scaled).replace("unused", test.lmdb))
    val conf = TestRecords.config(spark.sparkContext, TestRecords.solver(folder.resolve("reference"), net),
      folder.resolve("reference.model"), "-clusterSize", "2")
    new CaffeOnSpark(spark.sparkContext)
      .train(DataSource.getSource(conf, isTraining = true).asInstanceOf[DataSource[Any, Any]])
    weights(Files.readAllBytes(folder.resolve("reference.model")))
  }

  for ((kind, transform) <- Seq("binary" -> scaled, "png" -> scaled, "array" -> "", "vector" -> ""))
    test(s"a column of $kind trains the model of the LMDB, and every row comes back with its blob") {
      val model = estimator(kind, transform).setEncoded(kind == "png").fit(frame(train, kind))
      assert(weights(model.modelBytes) == reference)
      val rows = frame(test, kind)
      val out = model.transform(rows)
      assert(out.columns.toSeq == Seq("key", "features", "label", "ip"))
      val got = out.collect()
      assert(got.map(_.getLong(0)).toSeq == (0L until 90L))
      val right = got.count(r => r.getSeq[Float](3).zipWithIndex.maxBy(_._1)._2 == r.getDouble(2).toInt)
      assert(right > 45, right)
      val unlabelled = model.transform(rows.repartition(1).orderBy("key").drop("label")).collect()
      assert(unlabelled.map(_.getSeq[Float](2)).toSeq == got.map(_.getSeq[Float](3)).toSeq)
    }

  test("rows whose image cannot be decoded keep their place, with nulls") {
    val model = estimator("broken").setEncoded(true).fit(frame(train, "png"))
    val got = model.transform(frame(test, "broken")).collect()
    assert(got.map(_.getLong(0)).toSeq == (0L until 90L))
    assert(got.forall(r => r.isNullAt(3) == (r.getLong(0) % 10 == 3)))
  }

  test("a pipeline: fit on a validation column, evaluate, save, load, copy") {
    val noted = frame(train, "array").withColumn("held", expr("key % 5 = 0"))
    val stage = estimator("pipeline", "", "test_iter: 3 test_interval: 10").setInputCol("all")
      .setValidationIndicatorCol("held").setOutputCols(Array("scores")).setMaxIter(40)
    val vector = udf((v: Seq[Float]) => Vectors.dense(v.map(_.toDouble).toArray))
    val vectors = noted.withColumn("features", vector(col("features")))
    val assembler = new VectorAssembler().setInputCols(Array("features")).setOutputCol("all")
    val fitted = new Pipeline().setStages(Array(assembler, stage)).fit(vectors)
    val model = fitted.stages(1).asInstanceOf[CaffeModel]
    assert(model.validation.get.columns.toSeq == Seq("accuracy", "loss") && model.validation.get.count() == 3)
    val place = folder.resolve("saved").toString
    fitted.write.save(place)
    val loaded = PipelineModel.load(place)
    val scored = Seq(fitted, loaded, fitted.copy(org.apache.spark.ml.param.ParamMap.empty))
      .map(_.transform(vectors).select("key", "scores").collect().toSeq)
    assert(scored(0) == scored(1) && scored(0) == scored(2))
    val best = udf((v: Seq[Float]) => v.indexOf(v.max).toDouble)
    val accuracy = new MulticlassClassificationEvaluator().setMetricName("accuracy")
      .evaluate(loaded.transform(vectors).withColumn("prediction", best(col("scores"))))
    assert(accuracy > 0.6, accuracy)
    intercept[Exception](fitted.write.save(place)) // is there already
    val estimatorPlace = folder.resolve("estimator").toString
    stage.write.overwrite().save(estimatorPlace)
    assert(CaffeEstimator.load(estimatorPlace).getSolver == stage.getSolver &&
      CaffeEstimator.load(estimatorPlace).getMaxIter == 40)
  }

  test("what does not fit is said before anything starts") {
    val rows = frame(train, "binary")
    def refused(body: => Any) = intercept[Exception](body).getMessage
    assert(refused(new CaffeEstimator().fit(rows)).contains("no solver is given"))
    assert(refused(estimator("e1").setInputCol("pixels").fit(rows))
        .contains("there is no column 'pixels'; the frame has key, features, label"))
    assert(refused(estimator("e2").setLabelCol("features").fit(rows)).contains("label column 'features' is binary"))
    assert(refused(estimator("e3").fit(frame(train, "array"))).contains("has a transform_param"))
    assert(refused(estimator("e4").setEncoded(true).fit(frame(train, "array")))
        .contains("JPEG and PNG come in a binary column"))
    assert(refused(estimator("e5").setValidationIndicatorCol("label").fit(rows)).contains("must be a boolean column"))
    assert(refused(estimator("e6").setOutputCols(Array("a", "b")).fit(rows)).contains("2 outputCols for 1 outputBlobs"))
    assert(refused(estimator("e7").setOutputCols(Array("key")).fit(rows)).contains("has a column 'key' already"))
    val model = estimator("e8").fit(rows)
    assert(refused(model.setOutputBlobs(Array("nothing")).transform(rows)).contains("nothing"))
    assert(refused(model.setOutputBlobs(Array("loss")).transform(rows.drop("label"))).contains("depends on the label"))
    assert(refused(CaffeModel.load(folder.toString)).nonEmpty)
  }

  test(
    "vectors of another size are told of on the driver, by their column; " +
      "blobs become vectors that MLlib takes as they are") {
    val rows = frame(train, "vector")
    val sizes = estimator("sizes", "").setMaxIter(2).setOutputBlobs(Array("conv", "ip")).setOutputVectors(true)
    val model = sizes.fit(rows)
    val shorter = udf((v: org.apache.spark.ml.linalg.Vector) => Vectors.dense(v.toArray.take(100)))
    val cut = rows.withColumn("features", shorter(col("features")))
    val words = "input column 'features' holds 100 number(s), and the net's input takes 144 (1 x 12 x 12)"
    val before = org.apache.spark.crema.Bus.jobs(spark.sparkContext) {
      assert(intercept[IllegalArgumentException](estimator("size", "").fit(cut)).getMessage.contains(words))
    }
    assert(before == 1) // only the first row was read
    val told = new VectorAssembler().setInputCols(Array("key", "label")).setOutputCol("two").transform(rows)
    val ofTwo = model.copy(org.apache.spark.ml.param.ParamMap.empty).setInputCol("two")
    assert(intercept[IllegalArgumentException](ofTwo.transform(told)).getMessage.contains(
        "input column 'two' holds 2 number(s)"))
    val late = intercept[Exception](model.transform(cut).collect()).getMessage
    assert(late.contains(words), late)
    val out = model.transform(rows)
    assert(out.schema("ip").dataType == org.apache.spark.ml.linalg.SQLDataTypes.VectorType &&
      model.transformSchema(rows.schema) == out.schema)
    val fitted = new org.apache.spark.ml.classification.LogisticRegression().setFeaturesCol("ip").setMaxIter(2).fit(out)
    assert(fitted.numFeatures == 10)
    val place = folder.resolve("vectors").toString
    estimator("v", "").setOutputVectors(true).write.save(place)
    assert(CaffeEstimator.load(place).getOutputVectors)
    val ofFloats = model.copy(org.apache.spark.ml.param.ParamMap.empty).setOutputVectors(false)
    val floats = ofFloats.transform(rows).select("conv").collect().flatMap(_.getSeq[Float](0))
    // A ReLU's zeros are no negative ones.
    assert(floats.count(_ == 0) > 1000 && !floats.exists(v => v == 0 && 1 / v < 0))
  }

  /** Files of shared models on this executor, which local mode has in this process. */
  private def shared = com.crema.Storage.workFolder.list.filter(_.endsWith("-transform.caffemodel")).toSet

  test(
    "a model is shared once however often it scores and is copied; " +
      "of many models that score an executor keeps the last ones") {
    val rows = frame(test, "binary").limit(20)
    val model = estimator("shared").setMaxIter(1).fit(frame(train, "binary"))
    def score(m: CaffeModel) = assert(m.transform(rows).count() == 20)
    val before = shared
    score(model)
    val (one, most) = (shared -- before, shared.size)
    assert(one.size == 1 && most <= 2)
    for (_ <- 1 to 5) score(model.copy(org.apache.spark.ml.param.ParamMap(model.outputBlobs -> Array("ip", "conv"))))
    val place = folder.resolve("shared-again").toString
    model.save(place)
    score(CaffeModel.load(place)) // the same content
    assert(one.subsetOf(shared) && shared.size == most, shared)
    for (n <- 2 to 6) score(estimator(s"shared-$n").setMaxIter(n).fit(frame(train, "binary")))
    assert(shared.size == 2 && (shared & one).isEmpty, shared)
    score(model) // copied again
    assert(shared.size == 2 && one.subsetOf(shared), shared)
  }

  test("a scoring process that is killed is told of by its signal") {
    val model = estimator("killed").setMaxIter(1).fit(frame(train, "binary"))
    val kill = udf { key: Long =>
      if (key == 60) {
        val scorers = ProcessHandle.current.children.filter(_.info.commandLine.orElse("").contains("crema score"))
        scorers.forEach(p => p.destroyForcibly())
      }
      key
    }
    val sorted = frame(test, "binary").repartition(1).sortWithinPartitions("key")
    val late = sorted.withColumn("key", kill(col("key"))).where("key >= 0")
    val e = intercept[Exception](model.transform(late).collect()).getMessage
    val words = "a process of this run was killed by signal 9 (SIGKILL): somebody killed it, most often the kernel"
    assert(e.contains(words) && e.contains("`crema score` (pid "), e)
  }

  private def heard[A](work: => A): (A, String) = {
    val (said, before) = (new java.io.ByteArrayOutputStream, System.err)
    System.setErr(new java.io.PrintStream(said, true))
    try { val a = work; org.apache.spark.crema.Bus.drained(spark.sparkContext); (a, said.toString) }
    finally System.setErr(before)
  }

  test("a row that cannot be learnt from is told with the user's column and its place") {
    val rows = frame(train, "binary").repartition(1).sortWithinPartitions("key")
    def refused(name: String, change: String, column: String) =
      intercept[Exception](estimator(name).fit(rows.withColumn(column, expr(change)))).getMessage
    val wrong = Seq(
      ("half", "if(key = 7, 3.5D, label)", "label",
        "'3.5' in column 'label' of row 8 of partition 0 of the frame is no whole number"),
      ("none", "if(key = 7, null, label)", "label", "row 8 of partition 0 of the frame has no label"),
      ("text", "if(key = 7, 'seven', cast(cast(label as int) as string))", "label",
        "'seven' in column 'label' of row 8 of partition 0 of the frame is no number"),
      ("blind", "if(key = 7, null, features)", "features", "row 8 of partition 0 of the frame has no features")
    )
    for ((name, change, column, words) <- wrong) {
      val said = refused(name, change, column)
      assert(said.contains(words) && !said.contains("__crema") && !said.contains("Job aborted"), said)
    }
    assert(intercept[Exception](estimator("blob").setOutputBlobs(Array("ip7")).fit(rows)).getMessage
        .contains("has no blob 'ip7'"))
    val net = caffe.Caffe.NetParameter.newBuilder
    com.google.protobuf.TextFormat.merge(TestRecords.net(memory(16, scaled), memory(20, scaled)), net)
    assert(FrameNet.hasClasses(net.build()))
    for (l <- net.getLayerBuilderList.asScala if Set("Accuracy", "SoftmaxWithLoss")(l.getType))
      l.setType("EuclideanLoss")
    assert(!FrameNet.hasClasses(net.build())) // numbers that are no classes may have parts
  }

  test("a row without a picture keeps its place with nulls, and all of them are told of once") {
    val model = estimator("nulls").setMaxIter(2).fit(frame(train, "binary"))
    val rows = frame(test, "binary").withColumn("features", expr("if(key % 9 = 4, null, features)"))
    val (got, said) = heard(model.transform(rows).collect())
    assert(got.map(_.getLong(0)).toSeq == (0L until 90L) && got.forall(r => r.isNullAt(3) == (r.getLong(0) % 9 == 4)))
    assert("crema: 10 row\\(s\\) have no input".r.findAllIn(said).size == 1, said)
    val (all, _) = heard(model.transform(rows.withColumn("features", expr("cast(null as binary)"))).collect())
    assert(all.length == 90 && all.forall(_.isNullAt(3)))
  }

  test("weights of another net are refused by fit, and a model that is cut by load") {
    val model = estimator("whole").setMaxIter(2).fit(frame(train, "binary"))
    Files.write(folder.resolve("whole.caffemodel"), model.modelBytes)
    val other = solver("renamed")
    val net = java.nio.file.Paths.get(other.replace("solver.prototxt", "net.prototxt"))
    val text = new String(Files.readAllBytes(net))
    Files.write(net, text.replace("name: \"conv\"", "name: \"c\"").replace("name: \"ip\"", "name: \"i\"").getBytes)
    val tuned = new CaffeEstimator().setSolver(other).setWeights(s"file:$folder/whole.caffemodel").setMaxIter(2)
    val refused = intercept[Exception](tuned.fit(frame(train, "binary"))).getMessage
    val words = "whole.caffemodel fit no layer of net 'small': they are for conv, ip, and the net has c, i"
    assert(refused.contains(words), refused)
    val place = folder.resolve("cut").toString
    model.save(place)
    assert(CaffeModel.load(place).modelBytes.toSeq == model.modelBytes.toSeq)
    Files.write(folder.resolve("cut/data/weights.caffemodel"), model.modelBytes.take(model.modelBytes.length / 2))
    Files.delete(folder.resolve("cut/data/.weights.caffemodel.crc"))
    val cut = intercept[Exception](CaffeModel.load(place)).getMessage
    assert(cut.contains("cut/data/weights.caffemodel") && !cut.contains("crema-model-"), cut)
  }
}
