package com.crema

import java.util.zip.CRC32C

import scala.reflect.ClassTag

import org.apache.spark.{Partitioner, SparkContext}
import org.apache.spark.rdd.RDD
import org.apache.spark.storage.StorageLevel

/** How a data source's records reach the workers. */
sealed trait Records extends Serializable {
  /** For messages. */
  def description: String
}

/** A database that the executable opens itself: a local path, or any Hadoop URI. */
case class AtPath(location: String) extends Records { def description: String = location }

/** Rows of an RDD, in the order of its partitions. */
abstract class RowSource[T: ClassTag] extends Records {
  def records: RDD[T]
  def fields: Int
  /** One record as one row of the builder; an exception names the record. */
  def put(record: T, row: RowBuilder): Unit
  def batch: Int

  private[crema] def read(persistent: Boolean): PreparedRows = new PreparedSource[T](this, records, persistent)
}

/** Rows that were counted once: every later reading must give the same. */
private[crema] trait PreparedRows {
  def count: Long
  /** Delimited Inputs under (worker, phase, number of the first row), for everything that a worker needs, in this order. */
  def frames(dealing: Option[Dealing], workers: Int, test: Boolean): RDD[(FrameKey, Array[Byte])]
  def release(): Unit
}

/** Sorted as tuples are: by worker, then TEST rows (0) before TRAIN rows (1), then by row number. */
private[crema] case class FrameKey(worker: Int, phase: Int, first: Long)
private[crema] object FrameKey {
  implicit val order: Ordering[FrameKey] = Ordering.by((k: FrameKey) => (k.worker, k.phase, k.first))
}

private[crema] class ByWorker(workers: Int) extends Partitioner {
  override def numPartitions: Int = workers
  override def getPartition(key: Any): Int = key.asInstanceOf[FrameKey].worker
}

/** Which records a rank owns: the formulas of engine/data/shard.h, which checks every row that comes. */
private[crema] case class Dealing(records: Long, batch: Int, ranks: Int) {
  val block: Long = if (records > (ranks - 1).toLong * batch) batch.toLong else math.max(1L, records / ranks)
  def workerOf(record: Long, workers: Int): Int = workerOfRank((record / block % ranks).toInt, workers)
  private def workerOfRank(rank: Int, workers: Int): Int = {
    var w = (rank.toLong * workers / ranks).toInt
    while ((w + 1).toLong * ranks / workers <= rank) w += 1
    while (w.toLong * ranks / workers > rank) w -= 1
    w
  }
}

private case class Partitioned(count: Long, sum: Long)

private class PreparedSource[T: ClassTag](source: RowSource[T], records: RDD[T], persistent: Boolean) extends PreparedRows {
  private val kept = if (persistent && records.getStorageLevel == StorageLevel.NONE) Some(records.persist(StorageLevel.DISK_ONLY)) else None
  private val partitions: Array[Partitioned] = {
    val s = source
    records.mapPartitions(rows => Iterator(PreparedSource.digest(s, rows))).collect()
  }
  override val count: Long = partitions.map(_.count).sum

  override def frames(dealing: Option[Dealing], workers: Int, test: Boolean): RDD[(FrameKey, Array[Byte])] = {
    val (s, expected, starts) = (source, partitions, partitions.scanLeft(0L)(_ + _.count))
    records.mapPartitionsWithIndex((p, rows) => new Frames[T](s, rows, starts(p), expected(p), dealing, workers, test))
  }

  override def release(): Unit = kept.foreach(_.unpersist(blocking = false))
}

private object PreparedSource {
  def digest[T](source: RowSource[T], rows: Iterator[T]): Partitioned = {
    val (sum, builder) = (new CRC32C, new RowBuilder(source.fields))
    var count = 0L
    rows.foreach { r => source.put(r, builder); builder.addLastTo(sum); builder.clear(); count += 1 }
    Partitioned(count, sum.getValue)
  }
}

/** One partition as frames: a builder for each worker, sent when it is large enough. Without dealing every worker gets every row. */
private class Frames[T](source: RowSource[T], rows: Iterator[T], start: Long, expected: Partitioned, dealing: Option[Dealing], workers: Int, test: Boolean)
    extends Iterator[(FrameKey, Array[Byte])] {
  private val builders = Array.fill(if (dealing.isDefined) workers else 1)(new RowBuilder(source.fields))
  private val first = new Array[Long](builders.length)
  private val sum = new CRC32C
  private var at = start
  private val ready = scala.collection.mutable.Queue[(FrameKey, Array[Byte])]()
  private var ended = false

  override def hasNext: Boolean = { while (ready.isEmpty && !ended) advance(); ready.nonEmpty }
  override def next(): (FrameKey, Array[Byte]) = { if (!hasNext) throw new NoSuchElementException; ready.dequeue() }

  private def advance(): Unit =
    if (rows.hasNext) {
      val b = dealing.map(_.workerOf(at, workers)).getOrElse(0)
      if (builders(b).rows == 0) first(b) = at
      source.put(rows.next(), builders(b))
      builders(b).addLastTo(sum)
      at += 1
      if (builders(b).rows >= RowBuilder.SendRows || builders(b).bytes >= RowBuilder.SendBytes) send(b)
    } else {
      ended = true
      if (Partitioned(at - start, sum.getValue) != expected)
        throw new CremaException(s"${source.description} gave other rows when it was read again (${at - start} rows in a partition that had ${expected.count}); " +
          "its files changed, or its rows are drawn or ordered anew at each reading: write them to files first, or keep one reading with -persistent")
      builders.indices.foreach(send)
    }

  private def send(b: Int): Unit = if (builders(b).rows > 0) {
    val bytes = builders(b).take(test, first(b))
    val phase = if (test) 0 else 1
    if (dealing.isDefined) ready.enqueue(FrameKey(b, phase, first(b)) -> bytes)
    else (0 until workers).foreach(w => ready.enqueue(FrameKey(w, phase, first(b)) -> bytes))
  }
}

/** The frames of a run, shuffled to their workers and sorted. */
private[crema] object FrameShuffle {
  /** Partition w is worker w's: its TEST frames, then its TRAIN frames. The shuffle is done when this returns. */
  def apply(sc: SparkContext, frames: Seq[RDD[(FrameKey, Array[Byte])]], workers: Int): RDD[(FrameKey, Array[Byte])] = {
    val rdd = sc.union(frames).repartitionAndSortWithinPartitions(new ByWorker(workers))
    // Writes the shuffle files: the training stage then starts at once, and what is slow or wrong in the source does not use up its deadlines.
    sc.runJob(rdd, (_: Iterator[(FrameKey, Array[Byte])]) => (), Seq(0))
    rdd
  }
}
