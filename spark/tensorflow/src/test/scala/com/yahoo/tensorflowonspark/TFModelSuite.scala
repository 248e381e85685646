package com.yahoo.tensorflowonspark

import java.io.File

import scala.sys.process._

import com.crema.Storage
import com.crema.tensorflow.TestModels
import org.apache.hadoop.fs.FileUtil
import org.apache.spark.ml.linalg.Vectors
import org.apache.spark.ml.{Pipeline, PipelineModel}
import org.apache.spark.sql.{DataFrame, Row}
import org.scalatest.funsuite.AnyFunSuite

class TFModelSuite extends AnyFunSuite with TestModels {
  private val outputs =
    Seq("cube", "flag", "half", "i32", "row", "score", "size", "text", "texts", "u16s", "u8")
  private def points(count: Int, partitions: Int): DataFrame = frame("n bigint, point array<float>, name string",
    partitions, (0 until count).map(n => Row(n.toLong, Seq(n / 8f, 1f - n), s"name $n")): _*)
  private def typed(names: String*): TFModel = new TFModel().setModel(saved("various")).setSignatureDefKey("typed")
    .setInputMapping(Map("point" -> "x", "n" -> "id")).setOutputMapping(names.map(n => n -> s"out_$n").toMap)
  private def linear(from: String = "linear"): TFModel = new TFModel().setModel(saved(from))
    .setInputMapping(Map("x" -> "x")).setOutputMapping(Map("y" -> "y"))
  private def numbers(values: Float*): DataFrame = frame("x float", 1, values.map(Row(_)): _*)

  test("outputs of all types and ranks are those of TensorFlow's Python, in order") {
    val out = typed(outputs.filter(_ != "size"): _*).setBatchSize(9).transform(points(103, 4))
    assert(out.schema.simpleString ==
      "struct<out_cube:array<array<array<double>>>,out_flag:boolean,out_half:float,out_i32:int,out_row:array<float>," +
      "out_score:float,out_text:string,out_texts:array<string>,out_u16s:array<int>,out_u8:smallint>")
    val rows = out.collect()
    for (name <- outputs if name != "size")
      assert(rows.map(r => plain(r.getAs[Any](s"out_$name"))).toSeq == answers(name), name)
    val bytes = typed("texts").setBinaryOutputs(Array("out_texts")).transform(points(103, 2))
    assert(bytes.schema.simpleString == "struct<out_texts:array<binary>>")
    assert(bytes.collect().map(r => plain(r.get(0))).toSeq == answers("texts"))
  }

  test("a thousand rows of ten partitions keep their order and columns, and batches their size") {
    val model = typed("i32", "size").setBatchSize(30)
    assert(model.transform(points(10, 1)).columns.toSeq == Seq("out_i32", "out_size"))
    val out = model.setPassThrough(Array("name", "n")).transform(points(1000, 10)).collect()
    assert(out.map(r => (r.getString(0), r.getLong(1), r.getInt(2))).toSeq == (0 until 1000).map(n =>
      (s"name $n", n, -n)))
    assert(out.map(_.getInt(3)).toSeq == (0 until 1000).map(n => if (n % 100 < 90) 30 else 10))
    val all = model.setPassThrough(Array("*"))
    assert(all.transform(points(3, 7)).count() == 3) // partitions without rows
    assert(all.transform(points(10, 2).filter("n < 0")).collect().isEmpty)
    assert(all.transformSchema(points(1, 1).schema) == all.transform(points(1, 1)).schema)
    assert(all.transform(points(1, 1)).columns.toSeq == Seq("n", "point", "name", "out_i32", "out_size"))
  }

  test("bytes reach the tensor unchanged; numbers of several forms and texts fit theirs") {
    val every = Array.tabulate(256)(_.toByte)
    val model = new TFModel().setModel(saved("various")).setSignatureDefKey("binary")
      .setInputMapping(Map("data" -> "data", "image" -> "image:0")).setBinaryOutputs(Array("same"))
      .setOutputMapping(Map("same" -> "same", "length" -> "length", "bytes" -> "bytes"))
    def turned(i: Int) = every.drop(i) ++ every.take(i)
    val rows = (0 until 20).map(i => Row(turned(i), Array(i, 255 - i, 0, 128).map(_.toByte)))
    val out = model.transform(frame("data binary, image binary", 2, rows: _*)).collect()
    assert(out.map(r => (plain(r.get(0)), r.getInt(1), plain(r.get(2)))).toSeq ==
      (0 until 20).map(i => (plain(Seq(i, 255 - i, 0, 128)), 256, plain(turned(i)))))
    val nested = Row("ü\u0000x", Seq(Seq[Short](1, 2), Seq[Short](3, 255)))
    val text = model.transform(frame("data string, image array<array<smallint>>", 1, nested)).first()
    assert(plain(text.get(0)) == plain(Seq(1, 2, 3, 255)) && plain(text.get(2)) == plain("ü\u0000x"))
    val image = Row("", Seq(1, 2, 3, 256))
    said("column 'image' has 256, and tensor 'image:0' takes uint8, 0 to 255")(
      model.transform(frame("data string, image array<int>", 1, image)).collect())
    said("column 'image' holds binary values of 3, 4 bytes")(
      model.setOutputMapping(Map("bytes" -> "b")).setBinaryOutputs(Array()).transform(
        frame("data string, image binary", 1, Row("", new Array[Byte](4)), Row("", new Array[Byte](3)))).collect())
  }

  test("vectors, doubles and whole numbers for floats") {
    val rows = Seq((1, Vectors.dense(0.5, 0.25)), (2, Vectors.sparse(2, Seq(1 -> 4.0))))
    val vectors = spark.createDataFrame(rows).toDF("n", "point")
    assert(typed("score").transform(vectors).collect().map(_.getFloat(0)).toSeq == Seq(0.75f, -4f))
    assert(linear().transform(frame("x double", 1, Row(0.5))).first().getFloat(0) == 2f)
    assert(linear().transform(frame("x array<tinyint>", 1, Row(Seq[Byte](3)))).first().getFloat(0) == 7f)
    assert(linear().transform(frame("x boolean", 1, Row(true))).first().getFloat(0) == 3f)
  }

  test("tensors by key of the signature, operation, and operation:output") {
    for ((x, y) <- Seq("x" -> "y", "x:0" -> "y:0", "serving_default_x" -> "StatefulPartitionedCall",
        "serving_default_x:0" -> "StatefulPartitionedCall:0", "serving_default_x" -> "y")) {
      val out = linear().setInputMapping(Map("x" -> x)).setOutputMapping(Map(y -> "y")).transform(numbers(1, -2, 0.25f))
      assert(out.schema.simpleString == "struct<y:float>" && out.collect().map(_.getFloat(0)).toSeq == Seq(3f, -3f,
        1.5f))
    }
  }

  test("graphs of several tags, in one folder and one JVM") {
    val model = linear("tags").setInputMapping(Map("x" -> "x"))
    assert(model.transform(numbers(3)).first().getFloat(0) == 6f)
    assert(model.copy(org.apache.spark.ml.param.ParamMap.empty).setTag("big, serve").transform(numbers(3)).first()
      .getFloat(0) == 60f)
    assert(model.transform(numbers(4)).first().getFloat(0) == 8f)
    assert(model.setInputMapping(Map("x" -> "inp")).setOutputMapping(Map("out" -> "y")).transform(numbers(3)).first()
      .getFloat(0) == 6f)
    // TensorFlow infers the type of what no signature names.
    val both = model.setOutputMapping(Map("both" -> "b", "y:0" -> "y")).transform(numbers(5))
    assert(both.schema.simpleString == "struct<b:array<float>,y:float>")
    assert(plain(both.first().toSeq) == plain(Seq(Seq(5, 10), 10)))
    said("no graph with tag 'train'; it has: serve; big,serve")(model.setTag("train").transform(numbers(3)))
    said("it has no signature, and its operations are ")(
      linear("tags").setTag("serve,big").setInputMapping(Map("x" -> "q")).transform(numbers(3)))
  }

  test("saved, loaded and scored again") {
    val place = folder.resolve("pipeline").toString
    val model = typed("cube", "text").setPassThrough(Array("n")).setBatchSize(7).setTag("serve")
    val fitted = new Pipeline().setStages(Array(model)).fit(points(1, 1))
    fitted.write.overwrite().save(place)
    val loaded = PipelineModel.load(place)
    assert(loaded.transform(points(20, 2)).collect().toSeq == fitted.transform(points(20, 2)).collect().toSeq)
    val stage = loaded.stages.head.asInstanceOf[TFModel]
    assert(stage.getInputMapping == model.getInputMapping && stage.getBatchSize == 7 && stage.uid == model.uid)
    val defaults = new TFModel()
    assert((defaults.getBatchSize, defaults.getModel, defaults.getTag, defaults.getInputMapping,
      defaults.getOutputMapping) == ((128, "", "serve", Map.empty, Map.empty)))
  }

  test("a model that was written anew is loaded anew") {
    val place = new File(folder.toFile, "changing")
    def put(name: String) = assert(Seq("cp", "-r", saved(name), place.getPath).! == 0)
    put("linear")
    val model = linear("changing")
    assert(model.transform(numbers(5)).first().getFloat(0) == 11f)
    FileUtil.fullyDelete(place)
    put("steeper")
    assert(model.transform(numbers(5)).first().getFloat(0) == 16f)
  }

  test("a folder on another file system is copied once for each JVM, into the folder that goes with it") {
    spark.sparkContext.hadoopConfiguration.set("fs.viewfs.mounttable.store.link./models", s"file:${saved("")}")
    val model = linear().setModel("viewfs://store/models/linear")
    assert(model.transform(numbers((0 until 100).map(_.toFloat): _*).repartition(5)).count() == 100)
    assert(model.transform(numbers(7)).first().getFloat(0) == 15f)
    assert(Storage.workFolder.list().count(_.endsWith("-linear")) == 1)
    said("there is no SavedModel in viewfs://store/models/none")(model.setModel("viewfs://store/models/none")
        .transform(numbers(7)))
  }

  private def said(words: String)(body: => Any): Unit = {
    val text = intercept[Exception](body).toString
    assert(text.contains(words))
  }

  test("what does not fit is said before a job starts") {
    val some = points(2, 1)
    said("model is not set")(new TFModel().transform(some))
    said("no SavedModel in file:/nowhere: ")(typed("score").setModel("/nowhere").transform(some))
    said("/nowhere/saved_model.pb is missing; the driver and every executor must reach it")(
      typed("score").setModel("/nowhere").transform(some))
    said("no signature 'serve'; it has binary, typed, whole")(
      typed("score").setSignatureDefKey("serve").transform(some))
    said("set signatureDefKey to one of: binary, typed, whole")(
      new TFModel().setModel(saved("various")).setInputMapping(
        Map("n" -> "id")).setOutputMapping(Map("score" -> "s")).transform(some))
    said("inputMapping names tensor 'ids', which the SavedModel in file:")(
      typed("score").setInputMapping(Map("point" -> "x", "n" -> "ids")).transform(some))
    said("the inputs of its signature 'typed' are 'id' (int64, [?]), 'x' (float32, [?, 2]), and no operation")(
      typed("score").setInputMapping(Map("point" -> "x", "n" -> "ids")).transform(some))
    said("no column is mapped to input 'id'")(typed("score").setInputMapping(Map("point" -> "x")).transform(some))
    said("outputMapping names tensor 'scores'")(typed("scores").transform(some))
    said("inputMapping names column 'm', which the data frame does not have; it has n, point, name")(
      typed("score").setInputMapping(Map("point" -> "x", "m" -> "id")).transform(some))
    said("column 'name' is string and tensor 'id' (int64, [?]) takes int64")(
      typed("score").setInputMapping(Map("point" -> "x", "name" -> "id")).transform(some))
    said("column 'd' is date, which no tensor takes")(
      linear().setInputMapping(Map("d" -> "x")).transform(some.selectExpr("current_date() as d")))
    said("passThrough names column 'q'")(typed("score").setPassThrough(Array("q")).transform(some))
    said("there would be two columns 'n'")(
      typed().setOutputMapping(Map("score" -> "n")).setPassThrough(Array("n")).transform(some))
    said("inputMapping is empty")(typed("score").setInputMapping(Map()).transform(some))
    said("outputMapping is empty")(typed().transform(some))
    said("only strings can be binary")(typed("score").setBinaryOutputs(Array("out_score")).transform(some))
    said("tensor 'mean' for column 'm' has one value for a whole batch")(linear("various").setSignatureDefKey("whole")
        .setOutputMapping(Map("mean" -> "m")).transform(numbers(1)))
  }

  test("rows that no tensor takes are named") {
    def pair(a: Any, b: Any) = frame("n bigint, point array<float>", 1, Row(0L, Seq(1f, 2f)), Row(a, b))
    said("column 'n' has a null in row 1 of its partition")(typed("score").transform(pair(null, Seq(1f, 2f))).collect())
    said("column 'point' has a null in row 1")(typed("score").transform(pair(1L, Seq(1f, null))).collect())
    said("column 'point' has 3 items in row 1 of its partition and 2 in row 0")(
      typed("score").transform(pair(1L, Seq(1f, 2f, 3f))).collect())
    said("column 'point' has rows of 3 items and tensor 'x' takes rows of 2")(
      typed("score").setBatchSize(1).transform(pair(1L, Seq(1f, 2f, 3f))).collect())
    said("tensor 'first' for column 'f' has 1 rows for a batch of 2")(linear("various").setSignatureDefKey("whole")
        .setOutputMapping(Map("first" -> "f")).transform(numbers(1, 2)).collect())
    val model =
      new TFModel().setModel(saved("various")).setSignatureDefKey("binary").setOutputMapping(Map("same" -> "s"))
        .setInputMapping(Map("data" -> "data", "image" -> "image"))
    said("tensor 'same' has bytes that are no UTF-8 text; name column 's' in binaryOutputs")(model.transform(
        frame("data binary, image binary", 1, Row(Array(-1.toByte), new Array[Byte](4)))).collect())
  }
}
