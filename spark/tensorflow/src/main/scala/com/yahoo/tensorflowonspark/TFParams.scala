package com.yahoo.tensorflowonspark

import scala.collection.JavaConverters._

import com.crema.WrongArgument
import com.fasterxml.jackson.core.JsonProcessingException
import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.ml.param._

/** Params of TFModel. A tensor is named by its key in the signature, or as in the graph: `op`, or `op:0`. */
trait TFParams extends Params {
  /** Rows in a batch, which does not cross partitions. Default 128. */
  final val batchSize = new IntParam(this, "batchSize", "rows in a batch", ParamValidators.gtEq(1))
  /** The folder of the SavedModel, any Hadoop URI. */
  final val model = new Param[String](this, "model", "folder of the SavedModel")
  /** Tags of its graph, with commas between. Default `serve`. */
  final val tag = new Param[String](this, "tag", "tags of the graph, with commas between")
  /** The signature whose keys mappings name. Default: `serving_default`; unless it was set,
    * the only one where none has that name.
    */
  final val signatureDefKey = new Param[String](this, "signatureDefKey", "signature of the SavedModel")
  /** Input columns and their tensors. */
  final val inputMapping = new MappingParam(this, "inputMapping", "column to tensor")
  /** Output tensors and their columns. */
  final val outputMapping = new MappingParam(this, "outputMapping", "tensor to column")
  /** Columns of the input that the output has too, before the others; `*` for all. Default: none. */
  final val passThrough = new StringArrayParam(this, "passThrough", "columns that the output has too")
  /** Output columns of string tensors that are binary, not text. Default: none. */
  final val binaryOutputs = new StringArrayParam(this, "binaryOutputs", "output columns that are binary, not text")

  setDefault(
    batchSize -> 128,
    model -> "",
    tag -> "serve",
    signatureDefKey -> "serving_default",
    inputMapping -> Map.empty[String, String],
    outputMapping -> Map.empty[String, String],
    passThrough -> Array.empty[String],
    binaryOutputs -> Array.empty[String]
  )

  def setBatchSize(rows: Int): this.type = set(batchSize, rows)
  def setModel(folder: String): this.type = set(model, folder)
  def setTag(tags: String): this.type = set(tag, tags)
  def setSignatureDefKey(key: String): this.type = set(signatureDefKey, key)
  def setInputMapping(mapping: Map[String, String]): this.type = set(inputMapping, mapping)
  def setOutputMapping(mapping: Map[String, String]): this.type = set(outputMapping, mapping)
  def setPassThrough(columns: Array[String]): this.type = set(passThrough, columns)
  def setBinaryOutputs(columns: Array[String]): this.type = set(binaryOutputs, columns)

  def getBatchSize: Int = $(batchSize)
  def getModel: String = $(model)
  def getTag: String = $(tag)
  def getSignatureDefKey: String = $(signatureDefKey)
  def getInputMapping: Map[String, String] = $(inputMapping)
  def getOutputMapping: Map[String, String] = $(outputMapping)
  def getPassThrough: Array[String] = $(passThrough)
  def getBinaryOutputs: Array[String] = $(binaryOutputs)
}

/** Names and names, saved as a JSON object. */
class MappingParam(parent: Params, name: String, doc: String)
    extends Param[Map[String, String]](parent, name, doc) {
  override def jsonEncode(value: Map[String, String]): String = new ObjectMapper().writeValueAsString(value.asJava)
  override def jsonDecode(json: String): Map[String, String] = MappingParam.parse(json, name)
}

object MappingParam {
  /** @param what names the text in messages
    * @throws WrongArgument for what is no JSON object of strings
    */
  def parse(json: String, what: String): Map[String, String] = {
    def wrong(why: String, e: Throwable = null) =
      new WrongArgument(s"""$what is not a JSON object of names, as {"this": "that"}: $why; it is: $json""", e)
    val tree =
      try new ObjectMapper().readTree(json)
      catch { case e: JsonProcessingException => throw wrong(e.getOriginalMessage, e) }
    if (tree == null || !tree.isObject) throw wrong("it is something else")
    tree.fieldNames.asScala.map { key =>
      if (!tree.get(key).isTextual) throw wrong(s"what stands at '$key' is no string")
      key -> tree.get(key).asText
    }.toMap
  }
}
