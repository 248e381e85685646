package com.yahoo.ml.caffe

import com.crema.{AtPath, Cluster, Records, Storage, WrongArgument}
import com.yahoo.ml.jcaffe.{FloatBlob, MatVector}
import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD

/** An LMDB of Datum records at a local path (the same on every worker) or on any Hadoop FileSystem. The executable
  * reads it; no native library of the JVM is involved. It also serves a stock `Data` layer with `backend: LMDB`.
  */
class LMDB(conf: Config, layerId: Int, isTrain: Boolean) extends ImageDataSource(conf, layerId, isTrain) {
  override def init(): Boolean =
    if (conf.netParam(isTrain).getLayer(layerId).getType != "Data") super.init()
    else {
      solverParameter = conf.solverParameter
      layerParameter = conf.netParam(isTrain).getLayer(layerId)
      transformationParameter = layerParameter.getTransformParam
      batchSize_ = layerParameter.getDataParam.getBatchSize
      sourceFilePath = checkedPath(layerParameter.getDataParam.getSource)
      true
    }

  /** The records as rows of the JVM, in conf.lmdb_partitions parts of equal size, each record exactly once. */
  override def makeRDD(sc: SparkContext): RDD[ImageDataSource.Record] =
    LmdbRDD(sc, sourceFilePath, conf.lmdb_partitions)

  /** @throws WrongArgument where there is none, as far as the driver can see: an executor has disks of its own */
  override private[caffe] def records(sc: SparkContext): Records = {
    if ((Cluster.isLocal(sc) || !Storage.isLocal(sourceFilePath)) &&
      !Storage.existsHere(sourceFilePath, sc.hadoopConfiguration))
      throw new WrongArgument(s"there is no ${Storage.plain(sourceFilePath)}, the source of $where; check the path")
    AtPath(Storage.plain(sourceFilePath))
  }
}
