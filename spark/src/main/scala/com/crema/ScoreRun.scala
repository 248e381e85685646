package com.crema

import scala.collection.JavaConverters._

import com.crema.wire.Wire.{Event, Input, Job, RowFeed}
import org.apache.spark.{SparkContext, TaskContext}
import org.apache.spark.rdd.RDD
import org.apache.spark.util.LongAccumulator

/** A scored record: its id and, blob by blob, its values. */
case class ScoredRow(id: String, values: Seq[Array[Float]])

/** Scoring: rows go in and come out, every row exactly once; the last batch may be short. */
object ScoreRun {
  /** What all tasks of a run share.
    *
    * @param job wire.Job with solver and blobs
    * @param model the weights
    * @param scored counts rows as they come
    */
  case class Spec(job: Array[Byte], model: SharedFile, batch: Int, tasks: Int, hadoop: HadoopSettings,
      scored: Option[LongAccumulator] = None)

  /** How many rows there are, where that is known before they are read. */
  def known(sc: SparkContext, records: Records): Option[Long] = records match {
    case AtPath(source) => Some(stored(sc, source).map(_.records).getOrElse(count(sc, source)))
    case _ => None
  }

  /** The scored rows. A database is cut into ranges of whole batches, so that any number of tasks gives the same rows;
    * rows of an RDD are scored partition by partition.
    *
    * @param skipped counts records that could not be decoded
    * @param known how many records a database has, if it was counted
    */
  def rows(sc: SparkContext, spec: Spec, records: Records, skipped: LongAccumulator,
      known: Option[Long] = None): RDD[ScoredRow] = records match {
    case AtPath(source) =>
      val file = stored(sc, source)
      val ranges = split(known.orElse(file.map(_.records)).getOrElse(count(sc, source)), spec.batch, spec.tasks)
      sc.parallelize(ranges, math.max(1, ranges.size))
        .mapPartitions(_.flatMap { case (first, last) => scoreRange(spec, source, file, first, last, skipped) })
    case rows: RowSource[_] => scorePartitions(spec, rows, skipped)
  }

  private def scorePartitions[T](spec: Spec, source: RowSource[T], skipped: LongAccumulator): RDD[ScoredRow] =
    source.records.mapPartitions { records =>
      if (records.isEmpty) Iterator.empty else scorePartition(spec, source, records, skipped)
    }

  private def scorePartition[T](
      spec: Spec, source: RowSource[T], records: Iterator[T], skipped: LongAccumulator): Iterator[ScoredRow] =
    stream[T](spec, records, source.put(_, _), source.fields, source.description, skipped.add(_))

  /** In a task: rows in, scored rows out, in order, by one process. @param put a record as one row of the builder */
  private[crema] def stream[T](spec: Spec, records: Iterator[T], put: (T, RowBuilder) => Unit, fields: Int,
      what: String, skipped: Long => Unit = _ => ()): Iterator[ScoredRow] = {
    val context = TaskContext.get()
    val feed = RowFeed.newBuilder.setDescription(s"partition ${context.partitionId()} of $what")
    val child = start(spec, _.setTestRows(feed))
    val batches = new ScoredBatches(records, put, fields)
    val sender =
      new RowSender(child, batches, Seq(Input.newBuilder.setEnd(Input.End.newBuilder.setTest(true)).build()), context)
    new EventRows(child, () => { sender.check(); batches.sent }, skipped, spec.scored)
  }

  /** A partition's rows as delimited Inputs. */
  private class ScoredBatches[T](
      records: Iterator[T], put: (T, RowBuilder) => Unit, fields: Int) extends Iterator[Array[Byte]] {
    private val builder = new RowBuilder(fields)
    @volatile var sent = 0L
    override def hasNext: Boolean = records.hasNext
    override def next(): Array[Byte] = {
      val first = sent
      while (records.hasNext && builder.rows < RowBuilder.SendRows && builder.bytes < RowBuilder.SendBytes) {
        put(records.next(), builder)
        sent += 1
      }
      builder.take(test = true, first)
    }
  }

  /** [first, last) pieces of whole batches, as equal as batches allow; every record is in exactly one. */
  def split(records: Long, batch: Int, tasks: Int): Seq[(Long, Long)] = {
    val batches = (records + batch - 1) / batch
    (0L until tasks.toLong)
      .map(t => (t * batches / tasks * batch, math.min(records, (t + 1) * batches / tasks * batch)))
      .filter { case (a, b) => a < b }
  }

  /** The database at a path that is not local. */
  def stored(sc: SparkContext, source: String): Option[StoredFile] =
    if (Storage.isLocal(source)) None else Some(StoredFile.lmdb(sc, source))

  /** The number of records at a local path, counted where the tasks will read them. */
  def count(sc: SparkContext, source: String): Long =
    JobError.explained(sc.parallelize(Seq(source), 1).map { path =>
      val done = Command.run(600, "records", Storage.localPath(path))
      if (done.code != 0) throw CremaException.of(if (done.code == Command.Invalid) "invalid" else "", done.explanation)
      new String(done.out).trim.toLong
    }.collect().head)

  private def scoreRange(spec: Spec, source: String, file: Option[StoredFile], first: Long, last: Long,
      skipped: LongAccumulator): Iterator[ScoredRow] = {
    def ofRange(job: Job.Builder): Job.Builder = {
      job.setFirst(first).setLast(last)
      file match {
        case Some(f) => job.setTestFile(f.message(spec.batch)).setWorkFolder(Storage.workFolder.getPath)
        case None => job.setTestSource(Storage.localPath(source))
      }
    }
    val child = start(spec, ofRange)
    child.serve(None, file, spec.hadoop)
    new EventRows(child, () => last - first, skipped.add(_), spec.scored)
  }

  private def start(spec: Spec, complete: Job.Builder => Job.Builder): Child = {
    val job = complete(Job.parseFrom(spec.job).toBuilder.setWeights(spec.model.fetch(TaskContext.get())))
    Child.ofTask("score", job)
  }

  /** Rows as the child sends them; at the end their number and the exit code are checked. */
  private class EventRows(child: Child, expected: () => Long, skipped: Long => Unit, scored: Option[LongAccumulator])
      extends Iterator[ScoredRow] {
    private var batch: Iterator[ScoredRow] = Iterator.empty
    private var seen, passedOver = 0L
    private var ended = false

    override def hasNext: Boolean = { while (!batch.hasNext && !ended) advance(); batch.hasNext }
    override def next(): ScoredRow = { if (!hasNext) throw new NoSuchElementException; seen += 1; batch.next() }

    private def advance(): Unit = child.next() match {
      case Some(e) if e.hasRows => batch = rowsOf(e.getRows)
      case Some(e) if e.hasFailed => ended = true; expected(); child.finish(Some(e.getFailed))
      case Some(e) => if (e.hasDone) passedOver = e.getDone.getSkipped
      case None =>
        ended = true
        val records = expected()
        child.finish(None)
        if (seen + passedOver != records) throw new CremaException(
          s"$seen rows came for $records records, and $passedOver were passed over; " +
            "this is a mistake of Crema, please report it")
        skipped(passedOver)
    }

    private def rowsOf(r: Event.Rows): Iterator[ScoredRow] = {
      val columns = r.getColumnList.asScala.toArray
      scored.foreach(_.add(r.getIdCount))
      Iterator.range(0, r.getIdCount).map(i => ScoredRow(r.getId(i), columns.map(c => slice(c, i)).toSeq))
    }

    /** Adds 0, which turns -0 (what ReLU gives for negative numbers) into 0 and changes nothing else. */
    private def slice(c: Event.Column, row: Int): Array[Float] = {
      val values = new Array[Float](c.getWidth)
      var k = 0
      while (k < values.length) { values(k) = c.getValue(row * values.length + k) + 0.0f; k += 1 }
      values
    }
  }
}
