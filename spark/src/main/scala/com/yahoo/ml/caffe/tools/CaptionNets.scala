package com.yahoo.ml.caffe.tools

import caffe.Caffe.CoSDataParameter.{DataType, TopBlob}
import caffe.Caffe.{CoSDataParameter, InputParameter, LayerParameter, NetParameter, TransformationParameter}
import com.google.protobuf.TextFormat
import com.google.protobuf.TextFormat.ParseException
import com.crema.{CremaException, HadoopSettings, Storage}
import org.apache.hadoop.fs.Path

import scala.collection.JavaConverters._

/** A deploy net whose inputs became columns of a frame.
  *
  * @param blobs the blobs to compute
  */
private[tools] case class FedNet(net: NetParameter, data: CoSDataParameter, blobs: Seq[String])

/** The two deploy nets of captioning, for scoring: lstm_deploy (from a picture to its features) and lrcn_word_to_preds
  * (from the previous word and those features to the probabilities of the next word), or nets of other sizes with the
  * same blob names.
  */
private[tools] object CaptionNets {
  val (features, probabilities) = ("fc8", "probs")
  private val (cont, input, picture) = ("cont_sentence", "input_sentence", "image_features")

  def read(path: String, hadoop: HadoopSettings): NetParameter = {
    val (net, conf) = (NetParameter.newBuilder, hadoop.configuration)
    val text = new String(Tool.bytes(new Path(Storage.resolve(path, conf)), conf), "UTF-8")
    try TextFormat.merge(text, net)
    catch { case e: ParseException => throw new CremaException(s"$path is no net: ${e.getMessage}", e) }
    net.build()
  }

  private case class Input(name: String, dims: Seq[Int]) {
    override def toString: String = s"$name ${dims.mkString("x")}"
  }

  /** The net without its inputs, and the inputs: `input` fields with their shapes, or layers of type Input. */
  private def taken(net: NetParameter): (NetParameter.Builder, Seq[Input]) = {
    val (layers, others) = net.getLayerList.asScala.toSeq.partition(_.getType == "Input")
    val old = net.getInputList.asScala.zipWithIndex.map { case (name, i) =>
      val dims =
        if (i < net.getInputShapeCount) net.getInputShape(i).getDimList.asScala.map(_.toInt)
        else net.getInputDimList.asScala.slice(4 * i, 4 * i + 4).map(_.toInt)
      Input(name, dims.toSeq)
    }
    def shape(p: InputParameter, i: Int) =
      p.getShape(math.min(i, p.getShapeCount - 1)).getDimList.asScala.map(_.toInt).toSeq
    val named = layers.flatMap { l =>
      l.getTopList.asScala.zipWithIndex.map { case (name, i) => Input(name, shape(l.getInputParam, i)) }
    }
    val rest = net.toBuilder.clearInput().clearInputShape().clearInputDim().clearLayer().addAllLayer(others.asJava)
    (rest, old.toSeq ++ named)
  }

  private def fed(net: NetParameter.Builder, batch: Int, tops: Seq[TopBlob], blobs: Seq[String]): FedNet = {
    val data = CoSDataParameter.newBuilder.setSource("frame").setBatchSize(batch).addAllTop(tops.asJava).build()
    val layer = LayerParameter.newBuilder.setName("columns of a frame").setType("CoSData").setCosDataParam(data)
    tops.foreach(t => layer.addTop(t.getName))
    FedNet(net.addLayer(0, layer).build(), data, blobs)
  }

  /** The column is `data`, encoded. Pictures are resized so that the net's crop is 227/256 of them, as in training. */
  def ofPictures(net: NetParameter, path: String, mean: Seq[Float]): FedNet = {
    val (rest, inputs) = taken(net)
    val (name, batch, channels, side) = inputs match {
      case Seq(Input(n, Seq(b, c, h, w))) if h == w && b > 0 && (c == 1 || c == 3) => (n, b, c, h)
      case _ =>
        throw new CremaException(
          s"$path must have one input, pictures x channels x side x side; it has ${inputs.mkString(", ")}")
    }
    val full = math.round(side * 256.0 / 227).toInt
    val transform = TransformationParameter.newBuilder.setCropSize(side)
    mean.take(channels).foreach(v => transform.addMeanValue(v))
    val top = TopBlob.newBuilder.setName(name).setType(DataType.ENCODED_IMAGE_WITH_DIM).setChannels(channels)
      .setHeight(full).setWidth(full).setOutChannels(channels).setOutHeight(side).setOutWidth(side)
      .setTransformParam(transform).build()
    fed(rest, batch, Seq(top), Seq(features))
  }

  /** The columns are cont_sentence, input_sentence, image_features and the state of every LSTM, which the net is
    * changed to return: with the state in columns, each word is one step that any task can compute. (The net's own
    * batch size is not used, as 1000 rows of 1000 numbers could not be distinguished from time steps.)
    */
  def ofWords(net: NetParameter, path: String): FedNet = {
    val (rest, inputs) = taken(net)
    def of(name: String): Input = inputs.find(_.name == name)
      .getOrElse(throw new CremaException(s"$path has no input $name; it needs $cont, $input and $picture"))
    val (streams, given) = (of(cont).dims.last, of(picture).dims.drop(1).product)
    if (inputs.size != 3 || of(cont).dims != Seq(1, streams) || of(input).dims != Seq(1, streams) ||
      of(picture).dims.headOption != Some(streams))
      throw new CremaException(s"$path must take $cont and $input of 1 x N and $picture of N x ..., and nothing " +
        s"else; it takes ${inputs.mkString(", ")}")
    val lstms = rest.getLayerList.asScala.toSeq.filter(_.getType == "LSTM")
    if (lstms.isEmpty || lstms.exists(_.getRecurrentParam.getExposeHidden))
      throw new CremaException(s"$path must have LSTM layers without expose_hidden")
    val layers = rest.getLayerList.asScala.toSeq.map(l => if (l.getType == "LSTM") exposed(l) else l)
    val states = lstms.flatMap(l => Seq("h", "c").map(s => (s"${l.getName}_$s", l.getRecurrentParam.getNumOutput)))
    val words = Seq(cont, input).map(column(_, DataType.INT_ARRAY, 1).setTranspose(true).build())
    val numbers = (picture -> given) +: states.map { case (s, n) => (s"${s}_0", n) }
    val tops = words ++ numbers.map { case (name, n) => column(name, DataType.FLOAT_ARRAY, n).build() }
    val blobs = probabilities +: picture +: states.map { case (s, _) => s"${s}_T" }
    fed(rest.clearLayer().addAllLayer(layers.asJava), if (given == 64) 63 else 64, tops, blobs)
  }

  private def column(name: String, kind: DataType, values: Int) =
    TopBlob.newBuilder.setName(name).setType(kind).setChannels(values).setSampleNumAxes(1)

  private def exposed(l: LayerParameter): LayerParameter = {
    val made = l.toBuilder.setRecurrentParam(l.getRecurrentParam.toBuilder.setExposeHidden(true))
    for (s <- Seq("h", "c")) made.addBottom(s"${l.getName}_${s}_0").addTop(s"${l.getName}_${s}_T")
    made.build()
  }
}
