package com.crema.tensorflow

/** A tensor that a mapping names.
  *
  * @param asked its name in the mapping
  * @param tensor its name in the graph, `operation:output`
  * @param shape the batch first, -1 for any size; None for any shape
  */
case class TensorSpec(asked: String, tensor: String, element: Element, shape: Option[Seq[Long]]) {
  override def toString: String = s"'$asked' (${element.name}, ${TensorSpec.text(shape)})"
}

object TensorSpec {
  def text(shape: Option[Seq[Long]]): String =
    shape.fold("any shape")(_.map(size => if (size < 0) "?" else size.toString).mkString("[", ", ", "]"))
}
