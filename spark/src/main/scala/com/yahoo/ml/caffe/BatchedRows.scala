package com.yahoo.ml.caffe

import scala.collection.mutable
import scala.reflect.ClassTag

import com.crema.{CremaException, RowBuilder, RowSource}
import com.yahoo.ml.jcaffe.{FloatBlob, MatVector}
import org.apache.spark.rdd.RDD

/** One sample of a batch that a user's own source made: its id, and the bytes of its fields. */
private[caffe] case class SampleRow(id: String, fields: Array[Array[Byte]])

/** Rows of a source that makes batches itself. Its queue is filled from the RDD, `nextBatch` is called, and the samples
  * are taken out of its result: pixels of images, values of blobs. Samples that the source skipped are left out.
  */
private[caffe] class BatchedRows[T1, T2](source: DataSource[T1, T2], rdd: RDD[T1])(implicit tag: ClassTag[SampleRow])
    extends RowSource[SampleRow] {
  override val description: String = source.getClass.getName
  override val batch: Int = source.batchSize()
  override val fields: Int = if (source.useCoSDataLayer()) source.getNumTops() else 2
  override def records: RDD[SampleRow] = {
    val s = source
    rdd.mapPartitions { rows =>
      if (rows.isEmpty) Iterator.empty
      else {
        if (!s.init()) throw new CremaException(s"${s.getClass.getName}.init() says no on an executor")
        new SampleRows(s, rows)
      }
    }
  }
  override def put(r: SampleRow, row: RowBuilder): Unit = {
    row.begin(r.id)
    r.fields.foreach(f => row.put(f, 0, f.length))
  }
}

private class SampleRows[T1, T2](source: DataSource[T1, T2], rows: Iterator[T1]) extends Iterator[SampleRow] {
  private val ready = mutable.Queue[SampleRow]()
  private val most = source.batchSize()
  private val holder = source.dummyDataHolder()
  private val notSet = new String("no sample") // compared by identity
  private var more = true
  private var pending: Option[T1] = None // taken from the RDD, not yet put into the queue
  source.resetQueue(most)

  override def hasNext: Boolean = { while (ready.isEmpty && more) fill(); ready.nonEmpty }
  override def next(): SampleRow = { if (!hasNext) throw new NoSuchElementException; ready.dequeue() }

  /** nextBatch takes from the queue until it has a batch, so it runs beside the thread that fills the queue. */
  private def fill(): Unit = {
    val ids = Array.fill(most)(notSet)
    var failure: Throwable = null
    def take(): Unit =
      try more = source.nextBatch(ids, holder)
      catch { case e: Throwable => failure = e }
    val taker = new Thread(() => take(), "crema-next-batch")
    taker.setDaemon(true)
    taker.start()
    try { offerWhile(taker.isAlive); taker.join() }
    finally taker.interrupt() // it may be waiting for a record that will never come
    if (failure != null) throw new CremaException(s"${source.getClass.getName}.nextBatch failed: $failure", failure)
    val made = ids.count(_ ne notSet)
    (0 until made).foreach(i => ready.enqueue(sample(ids(i), i)))
  }

  private def offerWhile(wanted: => Boolean): Unit = {
    var stopped = false
    while (wanted && !stopped) {
      if (pending.isEmpty && rows.hasNext) pending = Some(rows.next())
      if (!source.offer(pending.getOrElse(source.STOP_MARK))) Thread.sleep(1)
      else if (pending.isEmpty) stopped = true
      else pending = None
    }
  }

  private def sample(id: String, i: Int): SampleRow = holder match {
    case (mats: MatVector, labels: FloatBlob) =>
      SampleRow(id, Array(RowBytes.floats(Array(labels.cpu_data().get(i))), RowBytes.image(mats.get(i))))
    case tops: Array[_] => SampleRow(id, tops.indices.map(t => top(t, tops(t), i)).toArray)
    case other =>
      throw new CremaException(s"${source.getClass.getName}.dummyDataHolder gives a ${other.getClass.getName}; " +
        "(MatVector, FloatBlob) or Array[Any] is understood")
  }

  private lazy val cos = source.layerParameter.getCosDataParam
  private def transposed(t: Int): Boolean = t < cos.getTopCount && cos.getTop(t).getTranspose

  private def top(t: Int, holder: Any, i: Int): Array[Byte] = holder match {
    case mats: MatVector => RowBytes.image(mats.get(i))
    case blob: FloatBlob => RowBytes.slice(blob, i, most, transposed(t))
    case other =>
      throw new CremaException(s"top $t of ${source.getClass.getName} is held by a ${other.getClass.getName}")
  }
}
