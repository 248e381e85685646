package com.crema.tensorflow

import com.crema.WrongInput
import org.tensorflow.Tensor
import org.tensorflow.ndarray.Shape
import org.tensorflow.ndarray.buffer.{ByteDataBuffer, DataBuffers}
import org.tensorflow.types._
import org.tensorflow.types.family.TType

/** Makes the tensor of a batch. */
private[tensorflow] object Feed {
  /** @return a tensor that the caller closes */
  def tensor(flat: Flat, column: InputColumn, spec: TensorSpec): Tensor = flat match {
    case b: Bytes if spec.element.isText =>
      TString.tensorOfBytes(shaped(b.sizes, column, spec), DataBuffers.of(b.values, false, false))
    case b: Bytes => numbersOfBytes(b, column, spec)
    case w: Whole => numbers(spec.element, shaped(w.sizes, column, spec), checked(w.values, column, spec))
    case r: Real => numbers(spec.element, shaped(r.sizes, column, spec), r.values)
  }

  private def numbers(element: Element, shape: Shape, whole: Array[Long]): Tensor = element.name match {
    case "bool" => filled(classOf[TBool], shape)(_.write(whole.map(_.toByte)))
    case "uint8" => filled(classOf[TUint8], shape)(_.write(whole.map(_.toByte)))
    case "uint16" => filled(classOf[TUint16], shape)(_.asShorts.write(whole.map(_.toShort)))
    case "int32" => filled(classOf[TInt32], shape)(_.asInts.write(whole.map(_.toInt)))
    case "int64" => filled(classOf[TInt64], shape)(_.asLongs.write(whole))
    case _ => numbers(element, shape, whole.map(_.toDouble))
  }

  private def numbers(element: Element, shape: Shape, real: Array[Double]): Tensor = element.name match {
    case "float64" => filled(classOf[TFloat64], shape)(_.asDoubles.write(real))
    case "float32" => filled(classOf[TFloat32], shape)(_.asFloats.write(real.map(_.toFloat)))
    case "float16" => TFloat16.tensorOf(shape, DataBuffers.of(real.map(_.toFloat), false, false))
    case _ => TBfloat16.tensorOf(shape, DataBuffers.of(real.map(_.toFloat), false, false))
  }

  private def filled[T <: TType](kind: Class[T], shape: Shape)(fill: ByteDataBuffer => Unit): Tensor = {
    val made = Tensor.of(kind, shape)
    try if (shape.size > 0) fill(made.asRawTensor.data)
    catch { case e: Throwable => made.close(); throw e }
    made
  }

  /** Binary values for a tensor of numbers are those numbers' bytes, in the order of the machine. */
  private def numbersOfBytes(b: Bytes, column: InputColumn, spec: TensorSpec): Tensor = {
    val (size, lengths) = (spec.element.bytes, b.values.map(_.length).distinct)
    if (lengths.length > 1 || lengths.exists(_ % size != 0)) throw new WrongInput(
      s"column '${column.name}' holds binary values of ${lengths.sorted.take(5).mkString(", ")} bytes and tensor " +
        s"'${spec.asked}' takes ${spec.element.name}: all of a batch must be of one length, a multiple of $size")
    val shape = shaped(b.sizes :+ lengths.headOption.getOrElse(0).toLong / size, column, spec)
    filled(classOfElement(spec.element), shape)(_.write(b.values.flatten))
  }

  private def classOfElement(element: Element): Class[_ <: TType] = element.name match {
    case "bfloat16" => classOf[TBfloat16]
    case "bool" => classOf[TBool]
    case "float16" => classOf[TFloat16]
    case "float32" => classOf[TFloat32]
    case "float64" => classOf[TFloat64]
    case "int32" => classOf[TInt32]
    case "int64" => classOf[TInt64]
    case "uint16" => classOf[TUint16]
    case "uint8" => classOf[TUint8]
  }

  private def checked(values: Array[Long], column: InputColumn, spec: TensorSpec): Array[Long] = {
    val (low, high) = spec.element.limits
    if (!spec.element.isReal) for (v <- values if v < low || v > high) throw new WrongInput(
      s"column '${column.name}' has $v, and tensor '${spec.asked}' takes ${spec.element.name}, $low to $high")
    values
  }

  /** The tensor's shape, into which rows that have as many items are reshaped, as columns are often flat. */
  private def shaped(sizes: Array[Long], column: InputColumn, spec: TensorSpec): Shape = {
    val items = sizes.tail.product
    val found = spec.shape match {
      case Some(shape) if shape.nonEmpty =>
        val wanted = shape.tail
        val fits = wanted.size == sizes.length - 1 && wanted.zip(sizes.tail).forall { case (w, s) => w < 0 || w == s }
        if (fits) Some(sizes.toSeq) else reshaped(wanted, items).map(sizes.head +: _)
      case _ => Some(sizes.toSeq)
    }
    Shape.of(found.getOrElse(throw misfit(sizes, column, spec)): _*)
  }

  /** At most one size is open, and follows from the number of items. */
  private def reshaped(wanted: Seq[Long], items: Long): Option[Seq[Long]] = {
    val known = wanted.filter(_ >= 0).product
    if (wanted.count(_ < 0) > 1 || (wanted.forall(_ >= 0) && known != items)) None
    else if (wanted.forall(_ >= 0)) Some(wanted)
    else if (known == 0 || items % known != 0) None
    else Some(wanted.map(size => if (size < 0) items / known else size))
  }

  private def misfit(sizes: Array[Long], column: InputColumn, spec: TensorSpec) = {
    def words(sizes: Seq[Long]) = sizes.map(s => if (s < 0) "any" else s.toString).mkString(" x ")
    val row = if (sizes.length == 1) "1 item" else s"${words(sizes.tail.toSeq)} items"
    val wanted = spec.shape.get.tail
    new WrongInput(s"column '${column.name}' has rows of $row and tensor '${spec.asked}' takes " +
      (if (wanted.isEmpty) "one number a row" else s"rows of ${words(wanted)}"))
  }
}
