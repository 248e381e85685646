package com.yahoo.ml.caffe

import java.lang.reflect.InvocationTargetException
import java.util.concurrent.ArrayBlockingQueue

import caffe.Caffe.{CoSDataParameter, LayerParameter, SolverParameter, TransformationParameter}
import com.crema.{Records, WrongArgument}
import com.yahoo.ml.jcaffe.FloatBlob
import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD

/** Where a data layer's records come from; chosen by the layer's `source_class`.
  *
  * To read another kind of data, derive from ImageDataSource or DataSource, with a constructor (Config, Int, Boolean),
  * and name the class in the prototxt. Subclasses implement `makeRDD`; direct subclasses of DataSource also implement
  * the conversion of records to batches.
  *
  * @tparam T1 a record
  * @tparam T2 what `nextBatch` fills: (MatVector, FloatBlob) for images and labels, or, when `useCoSDataLayer`, an
  *   Array[Any] with a FloatBlob or a MatVector for each top
  * @param layerId index of the layer in conf.netParam
  * @param STOP_MARK a record that means "no more"
  */
abstract class DataSource[T1, T2](val conf: Config, val layerId: Int, val isTrain: Boolean, val STOP_MARK: T1)
    extends java.io.Serializable { // Java's: CaffeOnSpark names this class
  @transient private[caffe] var solverParameter: SolverParameter = _
  @transient private[caffe] var layerParameter: LayerParameter = _
  @transient private[caffe] var transformationParameter: TransformationParameter = _
  @transient protected var sourceQueue: ArrayBlockingQueue[T1] = _
  protected var sourceFilePath: String = _
  protected var batchSize_ : Int = -1
  @transient protected var solverMode: Int = -1

  /** The records, in the order of the source. */
  def makeRDD(sc: SparkContext): RDD[T1]

  /** Reads the layer's description. Called once on the driver, and on an executor before `nextBatch` is used there.
    *
    * @throws IllegalArgumentException with layer and cause; returning false means the same without an explanation
    */
  def init(): Boolean = {
    solverParameter = conf.solverParameter
    solverMode = solverParameter.getSolverMode.getNumber
    layerParameter = conf.netParam(isTrain).getLayer(layerId)
    transformationParameter = layerParameter.getTransformParam
    true
  }

  /** An empty object of T2 for `nextBatch` to fill. */
  def dummyDataHolder(): T2

  /** One blob per top, in the shapes that the net takes. */
  def dummyDataBlobs(): Array[FloatBlob]

  /** Takes records from the queue until `batchSize` samples are made; their ids go to `sampleIds`. Returns false when
    * it met STOP_MARK.
    */
  def nextBatch(sampleIds: Array[String], data: T2): Boolean

  def setBatchSize(size: Int): Unit = batchSize_ = size
  def batchSize(): Int = batchSize_

  /** Returns false when the queue is full. */
  def offer(sample: T1): Boolean = sourceQueue.offer(sample)

  private[caffe] def resetQueue(capacity: Int = 0): Unit = {
    val size = if (capacity <= 0 || capacity > DataSource.QueueSize) DataSource.QueueSize else capacity
    sourceQueue = new ArrayBlockingQueue[T1](size)
  }

  def useCoSDataLayer(): Boolean = false
  def getNumTops(): Int = 0
  def getTopDataType(index: Int): CoSDataParameter.DataType = null
  def getTopTransformParam(index: Int): TransformationParameter = null

  /** How the records reach the workers. By default `nextBatch` is called for each batch. */
  private[caffe] def records(sc: SparkContext): Records = new BatchedRows[T1, T2](this, makeRDD(sc))

  private[caffe] def where: String =
    s"layer '${layerParameter.getName}' (${if (isTrain) "TRAIN" else "TEST"}) of ${conf.protoFile}"

  /** The layer's `source`, as Storage.resolve takes it. */
  private[caffe] def checkedPath(written: String): String = {
    if (written.isEmpty) throw new WrongArgument(s"Source must be specified for $where")
    conf.input(written, s"source of $where")
  }
}

object DataSource {
  private val QueueSize = 1024

  /** The source of the TRAIN or TEST data layer of conf's net, initialised.
    *
    * @throws IllegalArgumentException when the net has no such layer, its class cannot be found or has no constructor
    *   (Config, Int, Boolean)
    */
  def getSource(conf: Config, isTraining: Boolean): DataSource[_, _] = {
    val plan = conf.plan()
    val phase = if (isTraining) "TRAIN" else "TEST"
    if (!(if (isTraining) plan.hasTrain else plan.hasTest))
      throw new WrongArgument(s"the net of ${conf.protoFile} has no data layer in phase $phase")
    val layer = if (isTraining) plan.getTrain else plan.getTest
    val source: DataSource[_, _] = layer.getSourceClass match {
      case "" if layer.getType == "Data" && layer.getBackend == "LMDB" => new LMDB(conf, layer.getIndex, isTraining)
      case "" if layer.getType == "Data" =>
        throw new WrongArgument(
          s"layer '${layer.getLayer}': backend ${layer.getBackend} is not read by this version; say `backend: LMDB`")
      case "" =>
        throw new WrongArgument(s"source_class must be defined for input data layer:${layer.getType} " +
          s"('${layer.getLayer}', $phase); for example ${classOf[LMDB].getName}")
      case name => make(name, conf, layer.getIndex, isTraining)
    }
    if (!source.init()) throw new IllegalArgumentException(
      s"Failed to initialize data source ${source.getClass.getName} of layer '${layer.getLayer}' ($phase)")
    source
  }

  private def make(name: String, conf: Config, layerId: Int, isTrain: Boolean): DataSource[_, _] = {
    val loader = Option(Thread.currentThread.getContextClassLoader).getOrElse(getClass.getClassLoader)
    val found =
      try Class.forName(name, true, loader)
      catch {
        case e: ClassNotFoundException =>
          throw new WrongArgument(s"failed to load class: $name (source_class); put its jar on the job with --jars", e)
      }
    val constructor =
      try found.getConstructor(classOf[Config], java.lang.Integer.TYPE, java.lang.Boolean.TYPE)
      catch {
        case e: NoSuchMethodException =>
          val signature = "(conf: Config, layerId: Int, isTrain: Boolean)"
          throw new WrongArgument(s"$name doesn't have constructor of required signature $signature", e)
      }
    val made =
      try constructor.newInstance(conf, Int.box(layerId), Boolean.box(isTrain))
      catch { case e: InvocationTargetException => throw e.getCause }
    made match {
      case source: DataSource[_, _] => source
      case other =>
        throw new WrongArgument(s"source_class $name is no ${classOf[DataSource[_, _]].getName}, but " +
          other.getClass.getSuperclass.getName)
    }
  }
}
