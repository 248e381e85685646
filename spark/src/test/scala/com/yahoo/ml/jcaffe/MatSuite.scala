package com.yahoo.ml.jcaffe

import java.util.concurrent.{Callable, Executors, TimeUnit}

import com.crema.CremaException
import com.crema.wire.Engine.Request
import org.scalatest.funsuite.AnyFunSuite

class MatSuite extends AnyFunSuite {
  import Fixtures._

  private def png(width: Int, height: Int, kind: Int = 0) =
    (picture(width, height, kind), new Mat(encoded(picture(width, height, kind), "png")))

  test("what cannot be done says so") {
    intercept[Exception](new Mat(null))
    val mat = new Mat(jpegs.head)
    val e = intercept[Exception](mat.resize(-1, -1))
    assert(e.getMessage.contains("invalid dimensions to resize"))
    mat.decode(-1)
    assert(mat.width > 1 && mat.height > 1)
    val broken = new Mat(jpegs.head.take(jpegs.head.length / 2))
    broken.decode(Mat.CV_LOAD_IMAGE_COLOR)
    assert((broken.width, broken.height, broken.data.length) === ((0, 0, 0)))
    intercept[Exception](broken.resize(5, 5))
  }

  test("a PNG becomes the pixels that Java sees, in every flag") {
    val (image, colour) = png(37, 23)
    colour.decode(Mat.CV_LOAD_IMAGE_COLOR)
    assert((colour.channels, colour.height, colour.width) === ((3, 23, 37)))
    for (y <- 0 until 23; x <- 0 until 37; c <- 0 until 3)
      assert((colour.data()((y * 37 + x) * 3 + c) & 255) === ((image.getRGB(x, y) >> (8 * c)) & 255),
        s"($x, $y), $c") // B, G, R
    for (flags <- Seq(Mat.CV_LOAD_IMAGE_UNCHANGED, Mat.CV_LOAD_IMAGE_ANYCOLOR,
        Mat.CV_LOAD_IMAGE_COLOR | Mat.CV_LOAD_IMAGE_ANYDEPTH)) {
      val (_, again) = png(37, 23)
      again.decode(flags)
      assert(again.data === colour.data, s"flags $flags")
    }
    for (flags <- Seq(Mat.CV_LOAD_IMAGE_GRAYSCALE, Mat.CV_LOAD_IMAGE_ANYDEPTH)) {
      val (_, grey) = png(37, 23)
      grey.decode(flags)
      assert(grey.channels === 1 && grey.data.length === 37 * 23)
      for (i <- grey.data.indices) {
        val Seq(b, g, r) = Seq(0, 1, 2).map(c => colour.data()(3 * i + c) & 255)
        assert(math.abs((grey.data()(i) & 255) - (0.299 * r + 0.587 * g + 0.114 * b)) <= 1.01, s"pixel $i")
      }
    }
  }

  test("resizing is bilinear with half-pixel centres") {
    val (_, mat) = png(20, 10)
    mat.decode(Mat.CV_LOAD_IMAGE_COLOR)
    val before = mat.data
    mat.resize(15, 33)
    assert((mat.channels, mat.height, mat.width) === ((3, 15, 33)))
    def at(y: Int, x: Int, c: Int) = before((y * 20 + x) * 3 + c) & 255
    for (y <- 0 until 15; x <- 0 until 33; c <- 0 until 3) {
      val fy = math.min(math.max((y + 0.5) * 10 / 15 - 0.5, 0), 9)
      val fx = math.min(math.max((x + 0.5) * 20 / 33 - 0.5, 0), 19)
      val (y0, x0) = (fy.toInt, fx.toInt)
      val (y1, x1) = (math.min(y0 + 1, 9), math.min(x0 + 1, 19))
      val (v, u) = (fy - y0, fx - x0)
      val want =
        (1 - v) * ((1 - u) * at(y0, x0, c) + u * at(y0, x1, c)) + v * ((1 - u) * at(y1, x0, c) + u * at(y1, x1, c))
      assert(math.abs((mat.data()((y * 33 + x) * 3 + c) & 255) - want) < 1.2, s"($x, $y), $c")
    }
  }

  test("a vector hands back what it replaces, and nobody frees what is in use") {
    val vector = new MatVector(1)
    val (first, second) = (new Mat(jpegs(0)), new Mat(jpegs(1)))
    assert(vector.put(0, first) === null)
    assert((vector.width(0), vector.height(0)) === ((first.width, first.height)))
    assert(vector.data(0) === jpegs(0))
    second.decode(Mat.CV_LOAD_IMAGE_COLOR)
    second.resize(228, 228)
    val old = vector.put(0, second)
    assert(old eq first)
    old.deallocate()
    second.deallocate() // it stays in the vector
    assert((vector.width(0), vector.height(0), vector.channels(0), vector.data(0).length) === ((228, 228, 3,
      3 * 228 * 228)))
    vector.deallocate()
    assert(old.data === jpegs(0))
  }

  test("bytes may be resized before they are decoded") {
    val mat = new Mat(jpegs(0))
    mat.resize(227, 227) // a picture of one row, for all that is known
    assert((mat.channels, mat.height, mat.width) === ((1, 227, 227)))
    mat.decode(Mat.CV_LOAD_IMAGE_COLOR)
    assert(mat.width === 0)
    mat.deallocate()
  }

  test("sizes and channels are as given") {
    val mat = new Mat(3, 9, 9, jpegs(0))
    assert((mat.channels, mat.height, mat.width) === ((3, 9, 9)))
    assert(intercept[Exception](mat.resize(4, 4)).getMessage
        .contains("is announced with")) // the bytes are no 3 x 9 x 9
  }

  test("places that are not there") {
    intercept[Exception](new MatVector(-1))
    val vector = new MatVector(1)
    intercept[Exception](vector.put(0, null))
    intercept[Exception](vector.put(1, new Mat(jpegs(0))))
    vector.put(0, new Mat(jpegs(0)))
    for (i <- Seq(-1, 1))
      assert(vector.data(i) === null && vector.height(i) === -1 && vector.width(i) === -1 && vector.channels(i) === -1)
  }

  test("many threads, one process; a new one when it has died") {
    val pool = Executors.newFixedThreadPool(4)
    try {
      val want = (0 until 4).map(k => { val m = png(64, 48, k)._2; m.decode(1); m.resize(31, 29); m.data })
      val jobs = (0 until 40).map(i =>
        pool.submit(new Callable[(Int, Array[Byte])] {
          override def call() = { val m = png(64, 48, i % 4)._2; m.decode(1); m.resize(31, 29); (i % 4, m.data) }
        }))
      jobs.foreach { j =>
        val (k, got) = j.get(60, TimeUnit.SECONDS)
        assert(got === want(k))
      }
      val pid = EngineChild.images().pid()
      assert(ProcessHandle.of(pid).get.destroyForcibly())
      val m = png(64, 48)._2
      m.decode(1)
      assert(m.width === 64 && EngineChild.images().pid() != pid)
    } finally pool.shutdownNow()
  }

  test("a question without an answer ends the process at its deadline") {
    val child = new EngineChild
    val stopped = new ProcessBuilder("kill", "-STOP", child.pid().toString).start()
    assert(stopped.waitFor() === 0)
    val start = System.nanoTime
    val e = intercept[CremaException](
      child.ask(Request.newBuilder.setHello(com.crema.wire.Engine.Nothing.getDefaultInstance).build(), 1))
    assert(e.getMessage.contains("did not answer 'hello' within 1 s") && (System.nanoTime - start) / 1e9 < 10)
    assert(intercept[CremaException](child.ask(Request.getDefaultInstance, 5)).getMessage.contains("is gone"))
  }
}
