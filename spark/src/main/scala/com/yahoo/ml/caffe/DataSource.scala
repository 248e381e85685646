package com.yahoo.ml.caffe

import com.crema.Storage
import com.crema.wire.Wire.Source

/** Where a data layer's records come from. Chosen by the layer's `source_class`; a stock `Data` layer with an LMDB needs none. */
abstract class DataSource(val conf: Config, val layer: Source, val isTrain: Boolean) extends Serializable {
  /** Records per rank and pass. */
  def batchSize(): Int = layer.getBatchSize

  /** The path that the worker processes open, any Hadoop URI; local paths mean the worker's own disk. */
  def location: String

  protected def phase: String = if (isTrain) "TRAIN" else "TEST"
}

object DataSource {
  private val lmdb = classOf[LMDB].getName

  /** The source of the TRAIN or TEST data layer of conf's net.
    *
    * @throws IllegalArgumentException when the net has no such layer, or its class is not one of ours
    */
  def getSource(conf: Config, isTraining: Boolean): DataSource = {
    val plan = conf.plan()
    val phase = if (isTraining) "TRAIN" else "TEST"
    if (!(if (isTraining) plan.hasTrain else plan.hasTest))
      throw new IllegalArgumentException(s"the net of ${conf.protoFile} has no data layer in phase $phase")
    val layer = if (isTraining) plan.getTrain else plan.getTest
    if (layer.getSource.isEmpty) throw new IllegalArgumentException(s"Source must be specified for layer '${layer.getLayer}' ($phase) of ${conf.protoFile}")
    layer.getSourceClass match {
      case "" if layer.getType == "Data" && layer.getBackend == "LMDB" => new LMDB(conf, layer, isTraining)
      case "" if layer.getType == "Data" =>
        throw new IllegalArgumentException(s"layer '${layer.getLayer}': backend ${layer.getBackend} is not read by this version; say `backend: LMDB`")
      case "" => throw new IllegalArgumentException(s"source_class must be defined for input data layer:${layer.getType}")
      case `lmdb` => new LMDB(conf, layer, isTraining)
      case other =>
        throw new IllegalArgumentException(s"source_class $other of layer '${layer.getLayer}' is not in this version; convert the data to an LMDB and use $lmdb")
    }
  }
}

/** An LMDB of Datum records at a local path (the same on every worker) or on any Hadoop FileSystem (copied once per executor). The
  * executable reads it; no native library of the JVM is involved.
  */
class LMDB(conf: Config, layer: Source, isTrain: Boolean) extends DataSource(conf, layer, isTrain) {
  override val location: String = {
    val source = layer.getSource
    if (Storage.isLocal(source)) new java.io.File(Storage.localPath(source)).getAbsolutePath else source
  }
}
