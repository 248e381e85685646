package com.crema.tensorflow

import scala.collection.JavaConverters._
import scala.util.control.NonFatal

import com.crema.{Storage, WrongArgument}
import org.tensorflow.Graph
import org.tensorflow.proto.{MetaGraphDef, NodeDef, TensorInfo}

/** The operations of a graph, by their names: `op`, or `op:1` for its second output. */
private[tensorflow] class Operations(uri: String, graph: MetaGraphDef) {
  private val Indexed = "(.*):(\\d+)".r

  /** @param described what signatures say of tensors of this graph */
  def find(asked: String, described: => Map[String, TensorInfo]): Option[TensorSpec] = {
    val (name, index) = asked match {
      case Indexed(op, i) => (op, i.toInt)
      case op => (op, 0)
    }
    graph.getGraphDef.getNodeList.asScala.find(_.getName == name).map { node =>
      described.get(s"$name:$index").map(SavedModelFile.spec(uri, asked, _))
        .getOrElse(if (node.getOp == "Placeholder") placeholder(asked, node) else inferred(asked, name, index))
    }
  }

  def listed: String = {
    val names = graph.getGraphDef.getNodeList.asScala.map(_.getName).toSeq.sorted
    val more = if (names.size > 50) s" and ${names.size - 50} more" else ""
    s"its operations are ${names.take(50).mkString(", ")}$more"
  }

  private def placeholder(asked: String, node: NodeDef): TensorSpec = {
    val dtype = SavedModelFile.element(uri, asked, node.getAttrOrThrow("dtype").getType.name)
    val shape = if (node.containsAttr("shape")) SavedModelFile.shape(node.getAttrOrThrow("shape").getShape) else None
    TensorSpec(asked, s"${node.getName}:0", dtype, shape)
  }

  /** By TensorFlow's own inference over the graph, without the model's variables. */
  private def inferred(asked: String, name: String, index: Int): TensorSpec = TensorFlowJava.required {
    val whole = new Graph()
    try {
      whole.importGraphDef(graph.getGraphDef)
      val op = whole.operation(name)
      if (index >= op.numOutputs) throw new WrongArgument(
        s"tensor '$asked' of the SavedModel in $uri is not there: operation '$name' has ${op.numOutputs} output(s), " +
          "counted from 0")
      val out = op.output[org.tensorflow.types.family.TType](index)
      val shape = if (out.shape.isUnknown) None else Some(out.shape.asArray.toList)
      TensorSpec(asked, s"$name:$index", SavedModelFile.element(uri, asked, out.dataType.name), shape)
    } catch {
      case e: WrongArgument => throw e
      case NonFatal(e) =>
        throw new WrongArgument(s"the graph of the SavedModel in $uri cannot be read: ${Storage.cause(e)}", e)
    } finally whole.close()
  }
}
