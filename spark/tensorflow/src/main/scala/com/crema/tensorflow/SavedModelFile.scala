package com.crema.tensorflow

import java.io.{File, FileNotFoundException, InputStream}
import java.nio.file.{Files, NoSuchFileException}

import scala.collection.JavaConverters._

import com.crema.{Storage, WrongArgument}
import com.google.protobuf.InvalidProtocolBufferException
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.tensorflow.proto.{MetaGraphDef, SavedModel, SignatureDef, TensorInfo, TensorShapeProto}

/** One graph of a SavedModel as its file saved_model.pb describes it. Nothing is loaded: TensorFlow's native library is
  * started only for a name that neither a signature nor a placeholder explains.
  *
  * @param signature its name and itself; None for a graph that has none
  */
class SavedModelFile private (uri: String, graph: MetaGraphDef, signature: Option[(String, SignatureDef)]) {
  private lazy val operations = new Operations(uri, graph)

  private def inputs = signature.fold(Map.empty[String, TensorInfo])(_._2.getInputsMap.asScala.toMap)
  private def outputs = signature.fold(Map.empty[String, TensorInfo])(_._2.getOutputsMap.asScala.toMap)

  /** @param asked a key of the signature, an operation, or `operation:output` */
  def input(asked: String): TensorSpec = find(asked, inputs, "inputMapping", "inputs")
  def output(asked: String): TensorSpec = find(asked, outputs, "outputMapping", "outputs")

  private def find(asked: String, keys: Map[String, TensorInfo], mapping: String, kind: String): TensorSpec =
    keys.get(asked).map(spec(asked, _))
      .orElse(operations.find(asked, described))
      .orElse(keys.get(asked.stripSuffix(":0")).map(spec(asked, _)))
      .getOrElse(throw new WrongArgument(
          s"$mapping names tensor '$asked', which the SavedModel in $uri does not have: ${listed(kind, keys)}"))

  private def listed(kind: String, keys: Map[String, TensorInfo]): String = signature match {
    case Some((name, _)) =>
      s"the $kind of its signature '$name' are ${SavedModelFile.list(keys)}, and no operation of its graph is called so"
    case None => s"it has no signature, and ${operations.listed}"
  }

  /** What signatures say of tensors, by the tensors' names. */
  private def described: Map[String, TensorInfo] = {
    val known = graph.getSignatureDefMap.values.asScala
    known.flatMap(s => (s.getInputsMap.asScala ++ s.getOutputsMap.asScala).values).map(i => i.getName -> i).toMap
  }

  private def spec(asked: String, info: TensorInfo): TensorSpec = {
    if (info.getName.isEmpty) throw new WrongArgument(
      s"tensor '$asked' of the SavedModel in $uri is sparse or composite, which no column is; export a dense one")
    SavedModelFile.spec(uri, asked, info)
  }

  /** @throws WrongArgument when tensors are named by keys of the signature, and an input of it has no column */
  def checkAllFed(fed: Seq[TensorSpec], fetched: Seq[TensorSpec]): Unit = {
    val (in, out) = (inputs.values.map(_.getName).toSet, outputs.values.map(_.getName).toSet)
    if (fed.forall(s => in(s.tensor)) && fetched.forall(s => out(s.tensor)))
      for ((key, info) <- inputs.toSeq.sortBy(_._1) if !fed.exists(_.tensor == info.getName))
        throw new WrongArgument(s"no column is mapped to input '$key' of the SavedModel in $uri; " +
          s"its inputs are ${SavedModelFile.list(inputs)}")
  }
}

object SavedModelFile {
  private val InitKey = "__saved_model_init_op"

  /** @param uri as Storage.resolve gives it
    * @param signature None for serving_default, or the only one
    * @throws WrongArgument that lists what there is, when the file or what is asked of it is not there
    */
  def read(uri: String, tags: Set[String], signature: Option[String], conf: Configuration): SavedModelFile = {
    val graphs = parse(uri, conf).getMetaGraphsList.asScala.toSeq
    def tagsOf(g: MetaGraphDef) = g.getMetaInfoDef.getTagsList.asScala.toSet
    val graph = graphs.find(tagsOf(_) == tags).getOrElse {
      val known = graphs.map(tagsOf(_).toSeq.sorted.mkString(",")).mkString("; ")
      throw new WrongArgument(s"the SavedModel in $uri has no graph with tag '${tags.toSeq.sorted.mkString(",")}'; " +
        s"it has: $known")
    }
    new SavedModelFile(uri, graph, chosen(uri, graph.getSignatureDefMap.asScala.toMap - InitKey, signature))
  }

  private def chosen(uri: String, there: Map[String, SignatureDef],
      asked: Option[String]): Option[(String, SignatureDef)] = asked match {
    case Some(name) if there.contains(name) => Some(name -> there(name))
    case Some(name) =>
      val known = if (there.isEmpty) "none at all" else there.keys.toSeq.sorted.mkString(", ")
      throw new WrongArgument(s"the SavedModel in $uri has no signature '$name'; it has $known")
    case None => there.find(_._1 == "serving_default").orElse(if (there.size == 1) there.headOption else None)
        .orElse(if (there.isEmpty) None
          else throw new WrongArgument(
            s"the SavedModel in $uri has several signatures and none is called serving_default; set signatureDefKey " +
              s"to one of: ${there.keys.toSeq.sorted.mkString(", ")}"))
  }

  private def parse(uri: String, conf: Configuration): SavedModel = {
    val file = Storage.inFolder(uri, "saved_model.pb")
    try {
      val in = opened(file, conf)
      try SavedModel.parseFrom(in)
      finally in.close()
    } catch {
      case e @ (_: FileNotFoundException | _: NoSuchFileException) => throw new WrongArgument(
          s"there is no SavedModel in $uri: $file is missing; the driver and every executor must reach it", e)
      case e: InvalidProtocolBufferException =>
        throw new WrongArgument(s"$file is damaged, or no SavedModel: ${e.getMessage}; write the model again", e)
    }
  }

  private def opened(file: String, conf: Configuration): InputStream =
    if (Storage.isLocal(file)) Files.newInputStream(new File(Storage.localPath(file)).toPath)
    else { val path = new Path(file); path.getFileSystem(conf).open(path) }

  private[tensorflow] def spec(uri: String, asked: String, info: TensorInfo): TensorSpec =
    TensorSpec(asked, info.getName, element(uri, asked, info.getDtype.name), shape(info.getTensorShape))

  /** @param dtype TensorFlow's name, as DT_FLOAT */
  private[tensorflow] def element(uri: String, asked: String, dtype: String): Element =
    Element.named(word(dtype)).getOrElse(throw new WrongArgument(
        s"tensor '$asked' of the SavedModel in $uri is ${word(dtype)}, which is no column's type; known: " +
          Element.all.map(_.name).mkString(", ")))

  private def word(dtype: String): String = dtype match {
    case "DT_FLOAT" => "float32"
    case "DT_DOUBLE" => "float64"
    case "DT_HALF" => "float16"
    case other => other.stripPrefix("DT_").toLowerCase(java.util.Locale.ROOT)
  }

  private[tensorflow] def shape(s: TensorShapeProto): Option[Seq[Long]] =
    if (s.getUnknownRank) None else Some(s.getDimList.asScala.map(_.getSize).toList)

  private def list(keys: Map[String, TensorInfo]): String =
    if (keys.isEmpty) "none"
    else keys.toSeq.sortBy(_._1).map { case (key, i) =>
      s"'$key' (${word(i.getDtype.name)}, ${TensorSpec.text(shape(i.getTensorShape))})"
    }.mkString(", ")
}
