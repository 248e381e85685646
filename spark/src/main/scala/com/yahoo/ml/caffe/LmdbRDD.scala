package com.yahoo.ml.caffe

import com.crema.wire.Wire.{Event, Job}
import com.crema.{Child, HadoopSettings, ScoreRun, Storage, StoredFile}
import org.apache.spark.rdd.RDD
import org.apache.spark.SparkContext

import scala.collection.JavaConverters._

/** The records of an LMDB as an RDD: partitions of equal size, the first ones a record larger, none empty unless there
  * are fewer records than partitions. A process of the executable reads them for each task.
  */
private[caffe] object LmdbRDD {
  def apply(sc: SparkContext, source: String, partitions: Int): RDD[ImageDataSource.Record] = {
    val hadoop = HadoopSettings.of(sc.hadoopConfiguration)
    val file = ScoreRun.stored(sc, source)
    val ranges = split(file.map(_.records).getOrElse(ScoreRun.count(sc, source)), partitions)
    sc.parallelize(ranges, math.max(1, ranges.size)).mapPartitions(_.flatMap { case (first, last) =>
      read(source, file, first, last, hadoop)
    })
  }

  /** [first, last) pieces that cover every record once. */
  def split(records: Long, partitions: Int): Seq[(Long, Long)] = {
    val cut = (0L until partitions.toLong).map(p => (p * records / partitions, (p + 1) * records / partitions))
    cut.filter { case (a, b) => a < b }
  }

  private def read(source: String, file: Option[StoredFile], first: Long, last: Long,
      hadoop: HadoopSettings): Iterator[ImageDataSource.Record] = {
    val job = Job.newBuilder.setFirst(first).setLast(last).setWorkFolder(Storage.workFolder.getPath)
    file match {
      case Some(f) => job.setTestFile(f.message((last - first).toInt))
      case None => job.setTestSource(Storage.localPath(source))
    }
    val child = Child.ofTask("rows", job)
    child.serve(None, file, hadoop)
    val events = Iterator.continually(child.next()).takeWhile(_.isDefined).map(_.get)
    val batches = events.flatMap(event => recordsOf(child, event))
    batches ++ Iterator.single(()).flatMap { _ => child.finish(None); Iterator.empty }
  }

  private def recordsOf(child: Child, event: Event): Seq[ImageDataSource.Record] = {
    if (event.hasFailed) child.finish(Some(event.getFailed))
    event.getRecords.getRecordList.asScala.toSeq.map(r =>
      (r.getId, r.getLabel.toString, r.getChannels, r.getHeight, r.getWidth, r.getEncoded, r.getData.toByteArray))
  }
}
