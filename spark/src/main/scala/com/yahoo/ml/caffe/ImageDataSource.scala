package com.yahoo.ml.caffe

import caffe.Caffe.MemoryDataParameter
import com.crema.{CremaException, Records, RowBuilder, RowSource, WrongArgument}
import com.yahoo.ml.jcaffe.{FloatBlob, Mat, MatVector}
import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD
import org.slf4j.{Logger, LoggerFactory}

/** Images with labels for a MemoryData layer. A subclass says where they come from: `makeRDD`.
  *
  * A record is (id, label, channels, height, width, encoded, bytes): the label a whole number as text; the sizes 0 when
  * unknown; the bytes JPEG or PNG when encoded, else pixels row by row with their channels side by side.
  */
abstract class ImageDataSource(conf: Config, layerId: Int, isTrain: Boolean)
    extends DataSource[ImageDataSource.Record, (MatVector, FloatBlob)](conf, layerId, isTrain,
      (null, null, 0, 0, 0, false, null)) {
  @transient protected var log: Logger = LoggerFactory.getLogger(getClass)
  @transient protected var memdatalayer_param: MemoryDataParameter = _
  private var numChannels, height, width = 0

  override def init(): Boolean = {
    log = LoggerFactory.getLogger(getClass)
    if (!super.init()) return false
    if (!layerParameter.hasMemoryDataParam)
      throw new WrongArgument(s"Layer $layerId failed to specify memory_data_param ($where)")
    memdatalayer_param = layerParameter.getMemoryDataParam
    numChannels = memdatalayer_param.getChannels
    height = memdatalayer_param.getHeight
    width = memdatalayer_param.getWidth
    batchSize_ = memdatalayer_param.getBatchSize
    if (batchSize_ < 1) throw new WrongArgument(s"Invalid batch size:$batchSize_ ($where)")
    sourceFilePath = checkedPath(memdatalayer_param.getSource)
    true
  }

  override def dummyDataBlobs(): Array[FloatBlob] = {
    val (data, label) = (new FloatBlob, new FloatBlob)
    data.reshape(batchSize_, numChannels, height, width)
    label.reshape(batchSize_, 1, 1, 1)
    Array(data, label)
  }

  override def dummyDataHolder(): (MatVector, FloatBlob) = {
    val label = new FloatBlob
    label.reshape(batchSize_, 1, 1, 1)
    (new MatVector(batchSize_), label)
  }

  /** Decodes images, and resizes them with conf.resize, until the batch is full; images that cannot be decoded are
    * skipped with a warning.
    */
  override def nextBatch(sampleIds: Array[String], data: (MatVector, FloatBlob)): Boolean = {
    var count = 0
    while (count < batchSize_) {
      val record = sourceQueue.take()
      if (record == STOP_MARK) return false
      picture(record).foreach { mat =>
        sampleIds(count) = record._1
        data._2.cpu_data().set(count, ImageDataSource.label(record).toFloat)
        data._1.put(count, mat)
        count += 1
      }
    }
    true
  }

  private def picture(record: ImageDataSource.Record): Option[Mat] = {
    val (id, _, c, h, w, encoded, bytes) = record
    val sized = h > 0 && w > 0
    val mat = if (sized && !encoded) new Mat(c, h, w, bytes) else new Mat(bytes)
    if (encoded) mat.decode(if (sized) Mat.CV_LOAD_IMAGE_UNCHANGED else ImageDataSource.colour(numChannels))
    if (mat.width == 0 || (sized && (mat.height != h || mat.width != w))) { log.warn(s"Skip image $id"); None }
    else { if (conf.resize && (mat.height != height || mat.width != width)) mat.resize(height, width); Some(mat) }
  }

  /** Records go to the workers as they are and are decoded there; but a subclass with its own nextBatch is called for
    * each batch.
    */
  override private[caffe] def records(sc: SparkContext): Records = {
    val own = getClass.getMethod("nextBatch", classOf[Array[String]], classOf[(_, _)]).getDeclaringClass
    if (own == classOf[ImageDataSource]) new ImageRows(describe, batchSize(), makeRDD(sc)) else super.records(sc)
  }

  private[caffe] def describe: String = s"${getClass.getSimpleName} $sourceFilePath"
}

object ImageDataSource {
  type Record = (String, String, Int, Int, Int, Boolean, Array[Byte])

  private[caffe] def label(record: Record): Int =
    try record._2.trim.toInt
    catch {
      case _: NumberFormatException | _: NullPointerException =>
        throw new CremaException(s"the label '${record._2}' of image '${record._1}' is no whole number; " +
          "MemoryData's labels are classes 0, 1, 2, ...")
    }

  private[caffe] def colour(channels: Int): Int = channels match {
    case 1 => Mat.CV_LOAD_IMAGE_GRAYSCALE
    case 3 => Mat.CV_LOAD_IMAGE_COLOR
    case _ => Mat.CV_LOAD_IMAGE_UNCHANGED
  }
}

/** ImageDataSource's records as rows: the label, then the image. */
private[caffe] class ImageRows(val description: String, val batch: Int, val records: RDD[ImageDataSource.Record])
    extends RowSource[ImageDataSource.Record] {
  override val fields = 2
  override def put(r: ImageDataSource.Record, row: RowBuilder): Unit = {
    if (r._7 == null) throw new CremaException(s"image '${r._1}' of $description has no bytes")
    row.begin(r._1)
    row.float(ImageDataSource.label(r).toFloat)
    row.image(r._3, r._4, r._5, r._6, r._7)
  }
}
