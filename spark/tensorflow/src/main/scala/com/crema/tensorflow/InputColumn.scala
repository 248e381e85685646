package com.crema.tensorflow

import java.nio.charset.StandardCharsets.UTF_8

import scala.collection.mutable
import scala.collection.mutable.ArrayBuilder

import com.crema.WrongInput
import org.apache.spark.ml.linalg.Vector
import org.apache.spark.sql.Row
import org.apache.spark.sql.types._

/** The values of a column for one batch, without their nesting; `sizes` has the number of rows and then the length of
  * each nested array, in the order of memory.
  */
private[tensorflow] sealed trait Flat { def sizes: Array[Long] }
private[tensorflow] case class Whole(sizes: Array[Long], values: Array[Long]) extends Flat
private[tensorflow] case class Real(sizes: Array[Long], values: Array[Double]) extends Flat
private[tensorflow] case class Bytes(sizes: Array[Long], values: Array[Array[Byte]]) extends Flat

/** A column that feeds a tensor. */
case class InputColumn(name: String, kind: DataType) {
  private[tensorflow] def leaf: DataType =
    Element.leaf(kind).getOrElse(throw new IllegalStateException(s"column '$name' is ${kind.simpleString}"))

  /** @param at position of the column in the rows
    * @param first number of the first row in its partition, which messages count from
    * @throws WrongInput for a null, and where arrays differ in length
    */
  private[tensorflow] def flat(rows: Seq[Row], at: Int, first: Long): Flat = {
    val walk = leaf match {
      case FloatType | DoubleType => new RealWalk(this, first)
      case StringType | BinaryType => new BytesWalk(this, first)
      case _ => new WholeWalk(this, first)
    }
    var row = first
    rows.foreach { r => walk.add(r.get(at), 0, row); row += 1 }
    walk.result((rows.size.toLong +: walk.lengths.map(_.toLong)).toArray)
  }
}

/** Takes the values of a column one by one. The lengths of the first row are those of all others. */
private abstract class Walk(column: InputColumn, first: Long) {
  private val depth = Element.depth(column.kind)
  private val sizes = mutable.ArrayBuffer[Int]()

  protected def leaf(value: Any): Unit
  def result(sizes: Array[Long]): Flat
  def lengths: Seq[Int] = sizes.toSeq.padTo(depth, 0)

  def add(value: Any, level: Int, row: Long): Unit = value match {
    case null => throw new WrongInput(
        s"column '${column.name}' has a null in row $row of its partition; fill it, or drop such rows first")
    case many: scala.collection.Seq[_] =>
      check(many.size, level, row)
      many.foreach(add(_, level + 1, row))
    case vector: Vector =>
      check(vector.size, level, row)
      vector.toArray.foreach(leaf)
    case one => leaf(one)
  }

  private def check(size: Int, level: Int, row: Long): Unit =
    if (level == sizes.size) sizes += size
    else if (level > sizes.size || sizes(level) != size) {
      val expected = if (level < sizes.size) sizes(level) else 0
      val inner = if (level == 0) "" else " in an inner array"
      throw new WrongInput(
        s"column '${column.name}' has $size items$inner in row $row of its partition and $expected in row $first; " +
          "the rows of a batch are one tensor: pad them to one length, or set batchSize to 1")
    }
}

private class WholeWalk(column: InputColumn, first: Long) extends Walk(column, first) {
  private val all = new ArrayBuilder.ofLong
  protected def leaf(value: Any): Unit = value match {
    case n: Number => all += n.longValue
    case b: Boolean => all += (if (b) 1L else 0L)
  }
  def result(sizes: Array[Long]): Flat = Whole(sizes, all.result())
}

private class RealWalk(column: InputColumn, first: Long) extends Walk(column, first) {
  private val all = new ArrayBuilder.ofDouble
  protected def leaf(value: Any): Unit = all += value.asInstanceOf[Number].doubleValue
  def result(sizes: Array[Long]): Flat = Real(sizes, all.result())
}

private class BytesWalk(column: InputColumn, first: Long) extends Walk(column, first) {
  private val all = new ArrayBuilder.ofRef[Array[Byte]]
  protected def leaf(value: Any): Unit = value match {
    case bytes: Array[Byte] => all += bytes
    case text: String => all += text.getBytes(UTF_8)
  }
  def result(sizes: Array[Long]): Flat = Bytes(sizes, all.result())
}
