package com.crema.ml

import com.crema.{CremaException, RowBuilder, ScoreRun, WrongInput}
import org.apache.spark.SparkContext
import org.apache.spark.ml.linalg.Vectors
import org.apache.spark.scheduler.{SparkListener, SparkListenerStageCompleted}
import org.apache.spark.sql.Row
import org.apache.spark.util.LongAccumulator

/** Counts rows whose input is null. As transformations are lazy, the driver reports them when a stage ends, once for
  * each transformation.
  */
private object NullRows extends SparkListener {
  private val Name = "Crema: rows without input"
  private val heard = new java.util.WeakHashMap[SparkContext, Any]()
  private val reported = scala.collection.mutable.Set[Long]()

  def counter(sc: SparkContext): LongAccumulator = synchronized {
    if (heard.put(sc, this) == null) sc.addSparkListener(this)
    sc.longAccumulator(Name)
  }

  override def onStageCompleted(e: SparkListenerStageCompleted): Unit =
    for {
      a <- e.stageInfo.accumulables.values
      n <- a.value
      if a.name.contains(Name) && n.toString != "0" && synchronized(reported.add(a.id))
    } System.err.println(s"crema: $n row(s) have no input, as it is null, and so no blobs either")
}

/** Rows of a partition with their blobs appended. Rows wait in a queue until their blobs come back; one without input
  * gets nulls.
  */
private class ScoredFrame(spec: ScoreRun.Spec, rows: Iterator[Row], width: Int, input: String, encoded: Boolean,
    shape: (Int, Int, Int), tops: Int, blobs: Int, vectors: Boolean, nulls: LongAccumulator) extends Iterator[Row] {
  private val waiting = new java.util.concurrent.ConcurrentLinkedQueue[(String, Row)]()
  private var sent = 0L
  private val numbered = rows.map { row =>
    sent += 1
    val id = sent.toString
    waiting.add(id -> row)
    (id, row)
  }
  private val fed = numbered.filter { case (_, row) =>
    if (row.isNullAt(width)) nulls.add(1)
    !row.isNullAt(width)
  }
  private val put = (record: (String, Row), to: RowBuilder) => {
    to.begin(record._1)
    record._2.get(width) match {
      case bytes: Array[Byte] if encoded => to.image(0, 0, 0, encoded = true, bytes)
      case bytes: Array[Byte] => to.image(shape._1, shape._2, shape._3, encoded = false, bytes)
      case values: scala.collection.Seq[_] if values.size != FrameNet.numbers(shape) =>
        throw new WrongInput(s"row ${record._1} of a partition: ${FrameNet.misfit(input, values.size, shape)}")
      case values: scala.collection.Seq[_] =>
        val floats = values.map {
          case n: Number => n.floatValue
          case _ => throw new CremaException(s"the input column of row ${record._1} of a partition holds a null")
        }
        to.floats(floats.toArray)
    }
    if (tops > 1) {
      if (record._2.isNullAt(width + 1)) throw new CremaException(
        s"the label of row ${record._1} of a partition is null; drop the label column when no blob needs it")
      to.float(record._2.getFloat(width + 1))
    }
  }
  private val scored = ScoreRun.stream[(String, Row)](spec, fed, put, tops, "the frame").buffered

  private def column(values: Array[Float]): Any = if (vectors) Vectors.dense(values.map(_.toDouble)) else values.toSeq

  override def hasNext: Boolean = scored.hasNext || !waiting.isEmpty
  override def next(): Row = {
    val more = scored.hasNext // this reads ahead, so that the row that the next blobs belong to is in the queue
    val (id, row) = waiting.poll()
    val own = row.toSeq.take(width)
    if (more && scored.head.id == id) Row.fromSeq(own ++ scored.next().values.map(column))
    else Row.fromSeq(own ++ Seq.fill(blobs)(null))
  }
}
