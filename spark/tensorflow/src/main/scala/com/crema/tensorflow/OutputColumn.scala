package com.crema.tensorflow

import java.nio.ByteBuffer
import java.nio.charset.CharacterCodingException
import java.nio.charset.StandardCharsets.UTF_8

import com.crema.WrongInput
import org.apache.spark.sql.types._
import org.tensorflow.Tensor
import org.tensorflow.ndarray.FloatNdArray
import org.tensorflow.ndarray.buffer.DataBuffers
import org.tensorflow.types.TString

/** A column made of a tensor. @param kind the type of its values under all arrays */
case class OutputColumn(name: String, spec: TensorSpec, kind: DataType) {
  /** Arrays for each dimension behind the batch. @throws NoSuchElementException for a tensor of no known rank */
  def column: DataType = spec.shape.get.tail.foldLeft(kind)((inner, _) => ArrayType(inner, containsNull = false))

  /** The value of each row, copied out of the tensor.
    *
    * @throws WrongInput when the tensor has not one value for each row
    */
  private[tensorflow] def values(tensor: Tensor, rows: Int): Int => Any = {
    val sizes = tensor.shape.asArray
    if (sizes.isEmpty || sizes.head != rows) throw new WrongInput(
      s"tensor '${spec.asked}' for column '$name' has ${sizes.headOption.getOrElse("one value and no")} rows for a " +
        s"batch of $rows; every output must have one for each input")
    if (sizes.length != spec.shape.get.length) throw new WrongInput(
      s"tensor '${spec.asked}' for column '$name' has rank ${sizes.length}, and the SavedModel says " +
        s"${spec.shape.get.length}; export it again")
    val (flat, inner) = (elements(tensor), sizes.tail.map(_.toInt))
    val items = inner.product
    row => nested(flat, inner, 0, row * items)
  }

  private def elements(tensor: Tensor): Int => Any = {
    val count = Math.toIntExact(tensor.shape.size)
    def data = tensor.asRawTensor.data
    spec.element.name match {
      case _ if spec.element.isText => texts(tensor.asInstanceOf[TString], count)
      case _ if count == 0 => _ => throw new IllegalStateException("a tensor without elements")
      case "bool" => val all = new Array[Byte](count); data.read(all); i => all(i) != 0
      case "uint8" => val all = new Array[Byte](count); data.read(all); i => (all(i) & 0xff).toShort
      case "uint16" => val all = new Array[Short](count); data.asShorts.read(all); i => all(i) & 0xffff
      case "int32" => val all = new Array[Int](count); data.asInts.read(all); i => all(i)
      case "int64" => val all = new Array[Long](count); data.asLongs.read(all); i => all(i)
      case "float64" => val all = new Array[Double](count); data.asDoubles.read(all); i => all(i)
      case "float32" => val all = new Array[Float](count); data.asFloats.read(all); i => all(i)
      case _ =>
        val all = new Array[Float](count)
        tensor.asInstanceOf[FloatNdArray].copyTo(DataBuffers.of(all, false, false)); i => all(i)
    }
  }

  private def texts(tensor: TString, count: Int): Int => Any = {
    val all = new Array[Array[Byte]](count)
    if (count > 0) tensor.asBytes.copyTo(DataBuffers.of(all, false, false))
    if (kind == BinaryType) i => all(i) else i => decoded(all(i))
  }

  private def decoded(bytes: Array[Byte]): String =
    try UTF_8.newDecoder.decode(ByteBuffer.wrap(bytes)).toString
    catch {
      case e: CharacterCodingException => throw new WrongInput(
          s"tensor '${spec.asked}' has bytes that are no UTF-8 text; name column '$name' in binaryOutputs", e)
    }

  /** The array that begins at `at` in the order of memory, as nested sequences. */
  private def nested(flat: Int => Any, sizes: Array[Int], level: Int, at: Int): Any =
    if (level == sizes.length) flat(at)
    else {
      val step = sizes.drop(level + 1).product
      Array.tabulate[Any](sizes(level))(i => nested(flat, sizes, level + 1, at + i * step)).toSeq
    }
}
