package com.crema.ml

import com.crema.{CremaException, WrongArgument}
import org.apache.spark.ml.param._
import org.apache.spark.ml.param.shared.{HasLabelCol, HasSeed, HasValidationIndicatorCol}

/** What CaffeEstimator and CaffeModel have in common.
  *
  * The net is an ordinary train_test prototxt with a data layer for each phase (Data, MemoryData or CoSData). Its
  * sizes, batch_size and transform_param count; where its records would come from does not: the first top is fed from
  * `inputCol`, the second from `labelCol`.
  */
trait CaffeParams extends Params with HasLabelCol {
  /** Column of the net's input: binary (pixels, or with `encoded` JPEG or PNG), array of numbers, vector, or a number.
    * Default "features".
    */
  final val inputCol = new Param[String](this, "inputCol", "column that feeds the first top of the data layer")
  /** Whether a binary input column holds JPEG or PNG. Default false. */
  final val encoded = new BooleanParam(this, "encoded", "binary input is JPEG or PNG, not pixels")
  /** Whether decoded images are resized to the layer's height and width. Default false. */
  final val resize = new BooleanParam(this, "resize", "images take the data layer's height and width")
  /** Blobs of the TEST net that `transform` adds, one array<float> column each. Default: its outputs that need no
    * label.
    */
  final val outputBlobs = new StringArrayParam(this, "outputBlobs", "blobs that become columns")
  /** Names of these columns. Default: the blobs' names. */
  final val outputCols = new StringArrayParam(this, "outputCols", "columns of the blobs, in their order")

  /** Whether these columns are vectors, as MLlib's stages take them, instead of array<float>. Default false. */
  final val outputVectors =
    new BooleanParam(this, "outputVectors", "blobs become vectors of doubles instead of array<float>")

  setDefault(inputCol -> "features", encoded -> false, resize -> false, labelCol -> "label", outputVectors -> false)

  def setInputCol(name: String): this.type = set(inputCol, name)
  def setLabelCol(name: String): this.type = set(labelCol, name)
  def setEncoded(on: Boolean): this.type = set(encoded, on)
  def setResize(on: Boolean): this.type = set(resize, on)
  def setOutputBlobs(names: Array[String]): this.type = set(outputBlobs, names)
  def setOutputCols(names: Array[String]): this.type = set(outputCols, names)

  def setOutputVectors(on: Boolean): this.type = set(outputVectors, on)

  def getInputCol: String = $(inputCol)
  def getEncoded: Boolean = $(encoded)
  def getResize: Boolean = $(resize)
  def getOutputBlobs: Array[String] = $(outputBlobs)
  def getOutputCols: Array[String] = $(outputCols)
  def getOutputVectors: Boolean = $(outputVectors)
}

/** What only training needs. */
trait CaffeTrainParams extends CaffeParams with HasSeed with HasValidationIndicatorCol {
  /** Path of the solver prototxt on the driver; it names the net. */
  final val solver = new Param[String](this, "solver", "solver prototxt")
  /** Logical ranks: each takes batch_size rows a step; the model depends on their number and not on that of executors.
    * Default 1.
    */
  final val ranks = new IntParam(this, "ranks", "logical ranks", ParamValidators.gtEq(1))
  /** Replaces the solver's max_iter. */
  final val maxIter = new IntParam(this, "maxIter", "number of steps", ParamValidators.gtEq(1))
  /** A .caffemodel to start from, any Hadoop URI. */
  final val weights = new Param[String](this, "weights", "model to fine-tune")
  /** Where snapshots go (any Hadoop URI), when the solver asks for them. Default: nowhere. */
  final val snapshots = new Param[String](this, "snapshots", "folder of snapshots")

  setDefault(ranks -> 1)

  def getSolver: String = $(solver)
  def getRanks: Int = $(ranks)
  def getMaxIter: Int = $(maxIter)
  def getWeights: String = $(weights)
  def getSnapshots: String = $(snapshots)
}

private[ml] object CaffeParams {
  /** Replaces the flags of the command line in error messages by the names of params. */
  def inItsWords[A](body: => A): A = {
    def words(text: String) =
      text.replace("in -features", "in outputBlobs").replace("(-resize)", "(setResize)").replace("(-model)", "")
    try body
    catch {
      case e: CremaException => throw new CremaException(words(e.getMessage), e)
      case e: WrongArgument => throw new WrongArgument(words(e.getMessage), e)
      case e: IllegalArgumentException if e.getMessage != null && words(e.getMessage) != e.getMessage =>
        throw new IllegalArgumentException(words(e.getMessage), e)
    }
  }
}
