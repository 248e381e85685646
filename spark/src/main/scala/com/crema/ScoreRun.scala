package com.crema

import java.io.File
import java.nio.file.Files

import scala.collection.JavaConverters._

import com.crema.wire.Wire.{Event, Job}
import org.apache.hadoop.fs.FileUtil
import org.apache.spark.{SparkContext, TaskContext}
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.rdd.RDD

/** A scored record: its id and, blob by blob, its values. */
case class ScoredRow(id: String, values: Seq[Array[Float]])

/** Rows in, rows out: ranges of records, aligned to batches, so that any number of tasks gives the same rows. */
object ScoreRun {
  /** @param job wire.Job with solver and blobs; @param model the weights' bytes */
  def rows(sc: SparkContext, job: Array[Byte], source: String, model: Broadcast[Array[Byte]], batch: Int, tasks: Int, hadoop: HadoopSettings): RDD[ScoredRow] = {
    val records = count(sc, source, hadoop)
    val ranges = split(records, batch, tasks)
    sc.parallelize(ranges, math.max(1, ranges.size)).mapPartitions(_.flatMap { case (first, last) => scoreRange(job, source, model, first, last, hadoop) })
  }

  /** [first, last) pieces of whole batches, as equal as batches allow; every record is in exactly one. */
  def split(records: Long, batch: Int, tasks: Int): Seq[(Long, Long)] = {
    val batches = (records + batch - 1) / batch
    (0L until tasks.toLong).map(t => (t * batches / tasks * batch, math.min(records, (t + 1) * batches / tasks * batch))).filter { case (a, b) => a < b }
  }

  /** The number of records, counted where the tasks will read them. */
  def count(sc: SparkContext, source: String, hadoop: HadoopSettings): Long =
    sc.parallelize(Seq(source), 1).map { uri =>
      val done = Command.run(600, "records", Storage.fetch(uri, hadoop.configuration))
      if (done.code != 0) throw new CremaException(done.story)
      new String(done.out).trim.toLong
    }.collect().head

  private def scoreRange(jobBytes: Array[Byte], source: String, model: Broadcast[Array[Byte]], first: Long, last: Long, hadoop: HadoopSettings): Iterator[ScoredRow] = {
    val folder = Files.createTempDirectory(Storage.workFolder.toPath, "score-").toFile
    val weights = new File(folder, "weights.caffemodel")
    Files.write(weights.toPath, model.value)
    val job = Job.parseFrom(jobBytes).toBuilder.setTestSource(Storage.fetch(source, hadoop.configuration)).setWeights(weights.getPath)
      .setFirst(first).setLast(last).build()
    val child = new Child("score", job)
    child.endWith(TaskContext.get())
    TaskContext.get().addTaskCompletionListener[Unit](_ => FileUtil.fullyDelete(folder))
    new EventRows(child, last - first)
  }

  /** Rows as the child sends them; at the end the count must be right and the exit code 0. */
  private class EventRows(child: Child, expected: Long) extends Iterator[ScoredRow] {
    private var batch: Iterator[ScoredRow] = Iterator.empty
    private var seen = 0L
    private var ended = false

    override def hasNext: Boolean = { while (!batch.hasNext && !ended) advance(); batch.hasNext }
    override def next(): ScoredRow = { if (!hasNext) throw new NoSuchElementException; seen += 1; batch.next() }

    private def advance(): Unit = child.next() match {
      case Some(e) if e.hasRows => batch = rowsOf(e.getRows)
      case Some(e) if e.hasFailed => ended = true; child.finish(Some(e.getFailed.getStory))
      case Some(_) =>
      case None =>
        ended = true
        child.finish(None)
        if (seen != expected) throw new CremaException(s"$seen rows came for $expected records; this is a mistake of Crema, please report it")
    }

    private def rowsOf(r: Event.Rows): Iterator[ScoredRow] = {
      val columns = r.getColumnList.asScala.map(c => (c.getWidth, c.getValueList)).toArray
      r.getIdList.asScala.iterator.zipWithIndex.map { case (id, i) =>
        ScoredRow(id, columns.map { case (width, values) => Array.tabulate(width)(k => values.get(i * width + k).floatValue) }.toSeq)
      }
    }
  }
}
