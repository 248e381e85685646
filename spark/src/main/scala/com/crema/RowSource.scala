package com.crema

import java.util.zip.CRC32C

import scala.reflect.ClassTag

import org.apache.spark.{Partitioner, SparkContext}
import org.apache.spark.crema.Placement
import org.apache.spark.rdd.RDD
import org.apache.spark.storage.StorageLevel

/** How a data source's records reach the workers. */
sealed trait Records extends Serializable {
  /** For messages. */
  def description: String
}

/** A database that the executable opens itself: a local path, or any Hadoop URI. */
case class AtPath(location: String) extends Records { def description: String = location }

/** Rows of an RDD, ordered by the files they come from where `piece` gives them, else by partition. */
abstract class RowSource[T: ClassTag] extends Records {
  def records: RDD[T]
  def fields: Int
  /** Appends one record to the builder as one row; an exception names the record. */
  def put(record: T, row: RowBuilder): Unit
  def batch: Int

  /** The piece of a file that a record lies in. Spark packs pieces into partitions by their sizes and by the number of
    * cores, so partitions alone would give another order, and another model, on another cluster.
    */
  def piece(record: T): Piece = null
  def inPiece(record: T, piece: Piece): Boolean = true
  /** A copy that may be kept, as Spark reuses its internal rows. */
  def kept(record: T): T = record

  private[crema] def read(persistent: Boolean): PreparedRows = new PreparedSource[T](this, records, persistent)
}

/** @param start where it begins in its file, in bytes */
case class Piece(file: String, start: Long)

/** Rows that were read once and counted: every later reading must give the same rows. */
private[crema] trait PreparedRows {
  def count: Long
  /** Delimited Inputs under (worker, phase, number of the first row): everything that each worker needs, in this order.
    */
  def frames(sharding: Option[Sharding], workers: Int, test: Boolean): RDD[(FrameKey, Array[Byte])]
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

/** Which records a rank owns, by the formulas of engine/data/shard.h; the worker checks the number of every row it
  * gets.
  */
private[crema] case class Sharding(records: Long, batch: Int, ranks: Int, workers: Int) {
  val block: Long = if (records > (ranks - 1).toLong * batch) batch.toLong else math.max(1L, records / ranks)
  def workerOf(record: Long): Int = ((record / block % ranks) * workers / ranks).toInt
}
private[crema] object Sharding {
  /** Shards TEST rows by the worker that computes their batch. None, so that every worker gets all rows, when the last
    * batch wraps around to the first records.
    */
  def ofTests(records: Long, batch: Int, workers: Int): Option[Sharding] =
    if (records % batch != 0) None
    else {
      val owners = math.min(workers.toLong, records / batch).toInt
      Some(Sharding(records, batch, owners, owners))
    }
}

/** The rows of one piece in one partition, and a checksum of their bytes. */
private case class Counted(piece: Piece, partition: Int, count: Long, sum: Long)

private class PreparedSource[T: ClassTag](source: RowSource[T], all: RDD[T], persistent: Boolean) extends PreparedRows {
  private val kept =
    if (persistent) {
      val s = source
      Some(all.map(s.kept(_)).persist(StorageLevel.DISK_ONLY))
    } else None
  private val records = kept.getOrElse(all)
  private val parts: Array[Counted] = {
    val s = source
    JobError.explained(records.mapPartitionsWithIndex((p, rows) => PreparedSource.count(s, p, rows)).collect())
  }
  override val count: Long = parts.map(_.count).sum

  /** Number of the first row of each part. */
  private val starts: Map[Counted, Long] = {
    val sorted = parts.sortBy { c =>
      (if (c.piece == null) "" else c.piece.file, if (c.piece == null) 0L else c.piece.start, c.partition)
    }
    sorted.zip(sorted.scanLeft(0L)(_ + _.count)).toMap
  }

  override def frames(sharding: Option[Sharding], workers: Int, test: Boolean): RDD[(FrameKey, Array[Byte])] = {
    val s = source
    val expected = parts.groupBy(_.partition).map { case (p, all) => p -> all.map(c => c -> starts(c)).toSeq }
    records.mapPartitionsWithIndex { (p, rows) =>
      new Frames[T](s, rows, expected.getOrElse(p, Nil), sharding, workers, test)
    }
  }

  override def release(): Unit = kept.foreach(_.unpersist(blocking = false))
}

private object PreparedSource {
  def count[T](source: RowSource[T], partition: Int, rows: Iterator[T]): Iterator[Counted] = {
    val (sum, builder) = (new CRC32C, new RowBuilder(source.fields))
    val found = scala.collection.mutable.ArrayBuffer[Counted]()
    var (piece, count) = (null: Piece, 0L)
    def end(): Unit = { if (count > 0) found += Counted(piece, partition, count, sum.getValue); sum.reset(); count = 0 }
    rows.foreach { r =>
      if (count == 0 || !source.inPiece(r, piece)) { end(); piece = source.piece(r) }
      source.put(r, builder)
      builder.addLastTo(sum)
      builder.clear()
      count += 1
    }
    end()
    found.iterator
  }
}

/** The rows of one partition as frames: one builder for each worker, sent when it is large enough. Without sharding
  * every worker gets every row.
  *
  * @param expected what the first reading found in this partition, in order, with the number of the first row
  */
private class Frames[T](source: RowSource[T], rows: Iterator[T], expected: Seq[(Counted, Long)],
    sharding: Option[Sharding], workers: Int, test: Boolean)
    extends Iterator[(FrameKey, Array[Byte])] {
  private val builders = Array.fill(if (sharding.isDefined) workers else 1)(new RowBuilder(source.fields))
  // All builders together stay small.
  private val sendBytes = math.max(1 << 16, math.min(RowBuilder.SendBytes, (64 << 20) / builders.length))
  private val first = new Array[Long](builders.length)
  private val sum = new CRC32C
  private val ready = scala.collection.mutable.Queue[(FrameKey, Array[Byte])]()
  private var parts = expected.toList // the first is being read
  private var piece: Piece = _
  private var done = 0L // rows of that part so far
  private var ended = false

  override def hasNext: Boolean = { while (ready.isEmpty && !ended) advance(); ready.nonEmpty }
  override def next(): (FrameKey, Array[Byte]) = { if (!hasNext) throw new NoSuchElementException; ready.dequeue() }

  private def advance(): Unit =
    if (rows.hasNext) put(rows.next())
    else {
      ended = true
      if (done > 0) endPart()
      if (parts.nonEmpty) changed(s"rows are missing: ${parts.head._1.count} were there before")
    }

  private def put(record: T): Unit = {
    if (done > 0 && !source.inPiece(record, piece)) endPart()
    if (done == 0) { piece = source.piece(record); if (parts.isEmpty) changed("there are more rows than before") }
    val at = parts.head._2 + done
    val b = sharding.map(_.workerOf(at)).getOrElse(0)
    if (builders(b).rows == 0) first(b) = at
    source.put(record, builders(b))
    builders(b).addLastTo(sum)
    done += 1
    if (done > parts.head._1.count) changed("there are more rows than before")
    if (builders(b).rows >= RowBuilder.SendRows || builders(b).bytes >= sendBytes) send(b)
  }

  private def endPart(): Unit = {
    val (was, is) = (parts.head._1, Counted(piece, parts.head._1.partition, done, sum.getValue))
    if (was != is)
      changed(s"$done rows now, ${was.count} before${if (was.count == done) ", with other values" else ""}")
    builders.indices.foreach(send)
    parts = parts.tail
    sum.reset()
    done = 0
  }

  private def changed(how: String): Nothing =
    throw new CremaException(
      s"${source.description} gave other rows when it was read again ($how): its files changed, or its rows are " +
        "drawn or ordered anew at each reading. Write them to files first, or keep one reading (-persistent)")

  private def send(b: Int): Unit = if (builders(b).rows > 0) {
    val bytes = builders(b).take(test, first(b))
    val phase = if (test) 0 else 1
    if (sharding.isDefined) ready.enqueue(FrameKey(b, phase, first(b)) -> bytes)
    else (0 until workers).foreach(w => ready.enqueue(FrameKey(w, phase, first(b)) -> bytes))
  }
}

/** The frames of a run, shuffled to their workers and sorted. */
private[crema] object FrameShuffle {
  /** Partition w is worker w's: its TEST frames, then its TRAIN frames. The shuffle is done when this returns. */
  def apply(sc: SparkContext, frames: Seq[RDD[(FrameKey, Array[Byte])]], workers: Int): RDD[(FrameKey, Array[Byte])] = {
    val rdd = sc.union(frames).repartitionAndSortWithinPartitions(new ByWorker(workers))
    // Writes the shuffle files and reads none. The training stage can then start at once, and a slow or failing source
    // does not use up the workers' deadlines.
    JobError.explained(sc.runJob(Placement.spread(sc, rdd),
      (_: Iterator[Int => Iterator[(FrameKey, Array[Byte])]]) => (), Seq(0)))
    rdd
  }
}
