package com.crema.tensorflow

import scala.collection.mutable.ArrayBuffer
import scala.util.control.NonFatal

import com.crema.{CremaException, HadoopSettings, Storage}
import org.apache.spark.TaskContext
import org.apache.spark.sql.Row
import org.tensorflow.{SavedModelBundle, Tensor}

/** What the tasks of a transformation do. The columns of `inputs` come first in a row, those behind them pass through.
  */
case class Plan(uri: String, tags: Set[String], inputs: Seq[(InputColumn, TensorSpec)], outputs: Seq[OutputColumn],
    batchSize: Int, settings: HadoopSettings) {
  /** Rows of the columns that pass through and then the outputs, in the order of `rows`. */
  def score(rows: Iterator[Row], context: TaskContext): Iterator[Row] =
    if (rows.isEmpty) Iterator.empty // loads nothing
    else TensorFlowJava.required(new ScoredRows(this, rows, LoadedModels.of(uri, tags, settings, context)))
}

/** One batch of rows and of native tensors at a time. */
private class ScoredRows(plan: Plan, rows: Iterator[Row], model: SavedModelBundle) extends Iterator[Row] {
  private val batches = rows.grouped(plan.batchSize)
  private var done = 0L
  private var answered: Iterator[Row] = Iterator.empty

  override def hasNext: Boolean = {
    if (!answered.hasNext && batches.hasNext) answered = score(batches.next())
    answered.hasNext
  }
  override def next(): Row = { hasNext; answered.next() }

  private def score(batch: Seq[Row]): Iterator[Row] = {
    val fed = ArrayBuffer[Tensor]()
    val columns =
      try {
        val runner = model.session.runner()
        for (((column, spec), i) <- plan.inputs.zipWithIndex) {
          fed += Feed.tensor(column.flat(batch, i, done), column, spec)
          runner.feed(spec.tensor, fed.last)
        }
        plan.outputs.foreach(output => runner.fetch(output.spec.tensor))
        val results = explained(runner.run())
        try plan.outputs.zipWithIndex.map { case (output, i) => output.values(results.get(i), batch.size) }
        finally results.close()
      } finally fed.foreach(_.close())
    done += batch.size
    batch.iterator.zipWithIndex.map { case (row, i) =>
      Row.fromSeq(row.toSeq.drop(plan.inputs.size) ++ columns.map(_(i)))
    }
  }

  private def explained[A](run: => A): A =
    try run
    catch {
      case e: CremaException => throw e
      case NonFatal(e) => throw new CremaException(
          s"the SavedModel in ${plan.uri} failed at rows from $done of a partition: ${Storage.cause(e)}", e)
    }
}
