package com.yahoo.ml.jcaffe

import caffe.Caffe.TransformationParameter
import com.google.protobuf.TextFormat
import org.scalatest.funsuite.AnyFunSuite

class TransformSuite extends AnyFunSuite {
  import Fixtures._

  private def parameter(text: String): TransformationParameter = {
    val builder = TransformationParameter.newBuilder
    TextFormat.merge(text, builder)
    builder.build()
  }
  private val (side, crop, n) = (20, 13, 4)
  private val means = Seq(104f, 117f, 123f)
  private def cropping(mirror: Boolean) =
    parameter(s"mirror: $mirror crop_size: $crop scale: 0.5 mean_value: 104 mean_value: 117 mean_value: 123")

  private def images(n: Int, side: Int): MatVector = {
    val vector = new MatVector(n)
    for (i <- 0 until n) vector.put(i, image(i, side))
    vector
  }
  private def value(m: Mat, c: Int, y: Int, x: Int): Float =
    ((m.data()((y * m.width + x) * 3 + c) & 255) - means(c)) * 0.5f
  private def window(m: Mat, oy: Int, ox: Int, mirrored: Boolean): Seq[Float] =
    for (c <- 0 until 3; y <- 0 until crop; x <- 0 until crop)
      yield value(m, c, oy + y, ox + (if (mirrored) crop - 1 - x else x))
  private def placesOf(m: Mat, got: Seq[Float]) =
    for (oy <- 0 to side - crop; ox <- 0 to side - crop; mirrored <- Seq(false, true)
      if window(m, oy, ox, mirrored) == got) yield (oy, ox, mirrored)

  test("prototxts are read as they are written") {
    inFolder { folder =>
      val path = solver(folder, caffenet(big = false, side = 227))
      val written = Utils.GetSolverParam(path)
      assert(written.getNet === folder.resolve("net.prototxt").toString)
      val layer = Utils.GetNetParam(written.getNet).getLayer(0)
      assert(layer.getName === "data" && layer.hasTransformParam)
      val param = layer.getTransformParam
      assert(param.getMirror && param.getCropSize === 227 && param.getMeanValueCount === 3 && (0 until 3)
        .map(param.getMeanValue(_)) === means)
      assert(parameter(param.toString) === param)
      intercept[java.io.IOException](Utils.GetSolverParam(path + ".none"))
      write(folder.resolve("bad.prototxt"), "net: \"x\"\nbase_lr: fast")
      assert(intercept[java.io.IOException](Utils.GetSolverParam(folder.resolve("bad.prototxt").toString)).getMessage
          .contains("bad.prototxt:2:"))
    }
  }

  test("what is null or does not fit is refused") {
    intercept[Exception](new FloatDataTransformer(null, false))
    val transformer = new FloatDataTransformer(cropping(true), true)
    intercept[Exception](transformer.transform(null.asInstanceOf[MatVector], null))
    intercept[Exception](transformer.transform(images(1, side), null))
    intercept[Exception](transformer.transform(new MatVector(2), blob(2, 3, crop, crop)(_ => 0f)))
    assert(intercept[Exception](transformer.transform(images(2, side), blob(2, 3, side, side)(_ => 0f))).getMessage
        .contains("[2, 3, 13, 13]"))
    assert(intercept[Exception](transformer.transform(images(2, side), blob(1, 3, crop, crop)(_ => 0f))).getMessage
        .contains("[2, 3, 13, 13]"))
    assert(intercept[Exception](transformer.transform(images(2, 9), blob(2, 3, crop, crop)(_ => 0f))).getMessage
        .contains("crop"))
    assert(intercept[Exception](transformer.transform(new FloatBlob, new FloatBlob)).getMessage.contains("4 axes"))
    transformer.deallocate()
  }

  test("a blob is transformed as images are") {
    val transformer = new FloatDataTransformer(
      caffe.Caffe.TransformationParameter.newBuilder.setCropSize(3).setScale(0.5f).addMeanValue(2).build(), false)
    val (from, to) = (new FloatBlob, new FloatBlob)
    from.reshape(2, 2, 5, 5)
    from.set_cpu_data(Array.tabulate(100)(_.toFloat))
    to.reshape(2, 2, 3, 3)
    transformer.transform(from, to)
    val wanted = for (n <- 0 to 1; c <- 0 to 1; y <- 1 to 3; x <- 1 to 3)
      yield (((n * 2 + c) * 5 + y) * 5 + x - 2) * 0.5f
    assert(to.values.toSeq == wanted)
    transformer.deallocate()
  }

  test("TEST: the centre, less the mean, times the scale; further places of the blob stay") {
    val (vector, out) = (images(n, side), blob(n + 1, 3, crop, crop)(_ => -7f))
    new FloatDataTransformer(cropping(false), false).transform(vector, out)
    val size = 3 * crop * crop
    for (i <- 0 until n) assert(out.values().slice(i * size, (i + 1) * size).toSeq === window(vector.get(i),
      (side - crop) / 2, (side - crop) / 2, mirrored = false))
    assert(out.values().drop(n * size).forall(_ == -7f))
  }

  test("TRAIN: a window somewhere, mirrored half of the time, drawn anew") {
    val (vector, out) = (images(1, side), blob(1, 3, crop, crop)(_ => 0f))
    val transformer = new FloatDataTransformer(cropping(true), true)
    val places = for (_ <- 0 until 300) yield {
      transformer.transform(vector, out)
      val p = placesOf(vector.get(0), out.values().toSeq)
      assert(p.size === 1)
      p.head
    }
    val mirrored = places.count(_._3)
    assert(mirrored > 105 && mirrored < 195) // 150 +- 5 deviations of a fair coin
    assert(places.map(_._1).distinct.size === side - crop + 1 && places.map(_._2).distinct.size === side - crop + 1)
    val other = new FloatDataTransformer(cropping(true), true) // another object, other draws
    assert(
      (0 until 20)
        .map { _ => other.transform(vector, out); placesOf(vector.get(0), out.values().toSeq).head } !==
        places.take(20))
  }

  test("a thousand batches") {
    val (param, out) = (parameter("mirror: true crop_size: 227 mean_value: 104 mean_value: 117 mean_value: 123"),
      blob(4, 3, 227, 227)(_ => 0f))
    val vector = images(4, 227)
    for (train <- Seq(true, false)) {
      val transformer = new FloatDataTransformer(param, train)
      for (_ <- 0 until 1000) transformer.transform(vector, out)
      assert(out.count === 4 * 3 * 227 * 227 && out.cpu_data().get(0).abs <= 255)
      transformer.deallocate()
    }
  }
}
