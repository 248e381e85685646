package com.yahoo.ml.jcaffe

import java.awt.image.BufferedImage
import java.io.ByteArrayOutputStream
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path, Paths}
import javax.imageio.ImageIO

import org.apache.hadoop.fs.FileUtil

/** Pictures and nets for the suites of this package.
  *
  * What CaffeOnSpark's 38 Java tests and its SourceTest assert is asserted here as well; the originals themselves run
  * with tests/compat/run_jcaffe_tests. Theirs, and the test of ours that asserts the same:
  *
  * {{{
  * FloatArrayTest floatarraygetnegative, floatarraysetinvalid
  *     BlobSuite "an array's index"
  * FloatBlobTest  testAllocate, setcpudatanull, copyfromnull, floatblobnull, reshapeinvalid
  *     BlobSuite "what is null or of another size is refused"
  *                testBasic, testCopy
  *     BlobSuite "values go in, out and across"
  * MatTest        matNull, getMatDecodeWithInvalidFlag, matResizeInvalid
  *     MatSuite "what cannot be done says so"
  *                basicTest, basicDataTest
  *     MatSuite "a vector hands back what it replaces, and nobody frees what is in use"
  *                matResizeDecodeTest
  *     MatSuite "bytes may be resized before they are decoded"
  *                matChannelsTest
  *     MatSuite "sizes and channels are as given"
  * MatVectorTest  matVecNegativeIndex, matNullInMatVec, matOnWrongMatVecIndex, getMatVecDatafromInvalidIndex,
  *                invalidheight, invalidwidth, invalidchannel
  *     MatSuite "places that are not there"
  * ProtoTest      testParse
  *     TransformSuite "prototxts are read as they are written"
  * TransformTest  floatdatatransformernull, transformnull
  *     TransformSuite "what is null or does not fit is refused"
  *                testTransform
  *     TransformSuite "a thousand batches", "TEST: ...", "TRAIN: ..."
  * CaffeNetTest   initinvalid, deviceIDinvalid, inititerinvalid, maxiterinvalid, snapshotfilenameinvalid
  *     CaffeNetSuite "negative indices"
  *                connectnull, testBasic
  *     CaffeNetSuite "what a net says of itself"
  *                connectbogus
  *     ClusterNetSuite "wrong addresses"
  *                trainnull, predictnull
  *     CaffeNetSuite "null and misshapen data"
  *                testTrain
  *     CaffeNetSuite "training and prediction", BigNetSuite (CaffeNet itself)
  * PerfTest       (nothing is enabled)
  * SourceTest     Config test, Training source, Test source
  *     SourceNetSuite
  * DataFrameTest  Vector Mean Test
  *     com.yahoo.ml.caffe.VectorMeanSuite
  * }}}
  */
object Fixtures {
  def inFolder[A](body: Path => A): A = {
    val folder = Files.createTempDirectory("jcaffe-suite-")
    try body(folder)
    finally FileUtil.fullyDelete(folder.toFile)
  }

  /** A picture that is different everywhere; blue, green and red are functions of the place. */
  def picture(width: Int, height: Int, kind: Int = 0): BufferedImage = {
    val image = new BufferedImage(width, height, BufferedImage.TYPE_3BYTE_BGR)
    for (y <- 0 until height; x <- 0 until width)
      image.setRGB(x, y, ((x * 5 + kind * 40) % 256) << 16 | ((y * 3 + x) % 256) << 8 | ((x * y + 7 * kind) % 256))
    image
  }

  def encoded(image: BufferedImage, format: String): Array[Byte] = {
    val out = new ByteArrayOutputStream
    assert(ImageIO.write(image, format, out))
    out.toByteArray
  }

  /** BVLC's example pictures where the shared test data are, else pictures of our own. */
  lazy val jpegs: Seq[Array[Byte]] = {
    val folders =
      sys.env.get("CREMA_SHARED_DATA").toSeq ++ Seq("../shared/data", "../../shared/data", "../../../shared/data")
    val names = Seq("cat.jpg", "fish-bike.jpg")
    folders.map(Paths.get(_, "images")).find(f => names.forall(n => Files.exists(f.resolve(n)))) match {
      case Some(f) => names.map(n => Files.readAllBytes(f.resolve(n)))
      case None => Seq(0, 1).map(k => encoded(picture(300, 240, k), "jpg"))
    }
  }

  def image(i: Int, side: Int): Mat = {
    val mat = new Mat(jpegs(i % jpegs.size))
    mat.decode(Mat.CV_LOAD_IMAGE_COLOR)
    mat.resize(side, side)
    mat
  }

  def blob(shape: Int*)(values: Int => Float): FloatBlob = {
    val b = new FloatBlob
    assert(b.reshape(shape.toArray))
    assert(b.set_cpu_data(Array.tabulate(b.count)(values)))
    b
  }

  def write(file: Path, text: String): String = Files.write(file, text.getBytes(UTF_8)).toString

  private def data(phase: String, batch: Int, side: Int, mirror: Boolean) =
    s"""layer { name: "data" type: "MemoryData" top: "data" top: "label" include { phase: $phase }
       |  transform_param { mirror: $mirror crop_size: $side mean_value: 104 mean_value: 117 mean_value: 123 }
       |  source_class: "com.yahoo.ml.caffe.SeqImageDataSource"
       |  memory_data_param {
       |    source: "file:target/images" batch_size: $batch channels: 3 height: $side width: $side
       |    share_in_parallel: false } }
       |""".stripMargin

  private val rates = "param { lr_mult: 1 decay_mult: 1 } param { lr_mult: 2 decay_mult: 0 }"

  private def conv(name: String, bottom: String, outputs: Int, more: String) =
    s"""layer { name: "$name" type: "Convolution" bottom: "$bottom" top: "$name" $rates
       |  convolution_param { num_output: $outputs $more
       |    weight_filler { type: "gaussian" std: 0.01 } bias_filler { type: "constant" value: 0.1 } } }
       |layer { name: "relu_$name" type: "ReLU" bottom: "$name" top: "$name" }\n""".stripMargin

  private def pool(name: String, bottom: String) =
    s"""layer { name: "$name" type: "Pooling" bottom: "$bottom" top: "$name"
       |  pooling_param { pool: MAX kernel_size: 3 stride: 2 } }
       |""".stripMargin

  private def norm(name: String, bottom: String) =
    s"""layer { name: "$name" type: "LRN" bottom: "$bottom" top: "$name"
       |  lrn_param { local_size: 5 alpha: 0.0001 beta: 0.75 } }
       |""".stripMargin

  private def full(name: String, bottom: String, outputs: Int, std: Double) =
    s"""layer { name: "$name" type: "InnerProduct" bottom: "$bottom" top: "$name" $rates
       |  inner_product_param { num_output: $outputs
       |    weight_filler { type: "gaussian" std: $std } bias_filler { type: "constant" value: 0 } } }
       |""".stripMargin

  private def dropped(name: String) =
    s"""layer { name: "relu_$name" type: "ReLU" bottom: "$name" top: "$name" }
       |layer { name: "drop_$name" type: "Dropout" bottom: "$name" top: "$name" dropout_param { dropout_ratio: 0.5 } }
       |""".stripMargin

  private val losses =
    """layer { name: "accuracy" type: "Accuracy" bottom: "fc8" bottom: "label" top: "accuracy" include { phase: TEST } }
      |layer { name: "loss" type: "SoftmaxWithLoss" bottom: "fc8" bottom: "label" top: "loss" }""".stripMargin

  /** Krizhevsky's net as Caffe has it, for two classes; or its first and last layers, smaller. */
  def caffenet(big: Boolean, side: Int, train: Int = 4, test: Int = 2): String = {
    val head =
      "name: \"CaffeNet\"\n" + data("TRAIN", train, side, mirror = true) + data("TEST", test, side, mirror = false)
    if (!big)
      head + conv("conv1", "data", 8, "kernel_size: 5 stride: 2") + pool("pool1", "conv1") + norm("norm1", "pool1") +
        full("fc7", "norm1", 16, 0.05) + dropped("fc7") + full("fc8", "fc7", 2, 0.1) + losses
    else
      head + conv("conv1", "data", 96, "kernel_size: 11 stride: 4") + pool("pool1", "conv1") + norm("norm1", "pool1") +
        conv("conv2", "norm1", 256, "pad: 2 kernel_size: 5 group: 2") +
        pool("pool2", "conv2") + norm("norm2", "pool2") +
        conv("conv3", "norm2", 384, "pad: 1 kernel_size: 3") +
        conv("conv4", "conv3", 384, "pad: 1 kernel_size: 3 group: 2") +
        conv("conv5", "conv4", 256, "pad: 1 kernel_size: 3 group: 2") + pool("pool5", "conv5") +
        full("fc6", "pool5", 4096, 0.005) + dropped("fc6") + full("fc7", "fc6", 4096, 0.005) + dropped("fc7") +
        full("fc8", "fc7", 2, 0.01) + losses
  }

  /** A solver beside its net; snapshots stay in the folder. */
  def solver(folder: Path, net: String, more: String = "random_seed: 7"): String = {
    write(folder.resolve("net.prototxt"), net)
    val text = s"""net: "$folder/net.prototxt" test_initialization: false test_iter: 10 test_interval: 100
                  |base_lr: 0.001 momentum: 0.9 weight_decay: 0.0005 lr_policy: "step" gamma: 0.1 stepsize: 10000
                  |display: 20 max_iter: 10000 snapshot: 5000 snapshot_prefix: "$folder/caffenet" solver_mode: CPU
                  |$more""".stripMargin
    write(folder.resolve("solver.prototxt"), text)
  }

  def net(solver: String, training: Boolean = true, nodes: Int = 1, rank: Int = 0, connection: Int = CaffeNet.NONE,
      model: String = "", state: String = ""): CaffeNet =
    new CaffeNet(solver, model, state, 1, nodes, rank, training, connection, -1, 0)

  def using[A](net: CaffeNet)(body: CaffeNet => A): A =
    try body(net)
    finally net.deallocate()
}
