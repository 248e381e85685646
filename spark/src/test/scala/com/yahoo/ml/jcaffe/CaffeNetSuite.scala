package com.yahoo.ml.jcaffe

import java.io.{File, IOException}
import java.nio.file.{Files, Path}

import org.scalatest.funsuite.AnyFunSuite

class CaffeNetSuite extends AnyFunSuite {
  import Fixtures._

  private val side = 27
  private def small(folder: Path, more: String = "random_seed: 7") = solver(folder, caffenet(big = false, side), more)
  private def batch(i: Int, n: Int = 5): Array[FloatBlob] = {
    val (mats, data) = (new MatVector(n), blob(n, 3, side, side)(_ => 0f))
    for (k <- 0 until n) mats.put(k, image(i * n + k, side))
    // Not mirrored, which is drawn anew in each run: what training gives is judged here.
    val transform =
      Utils.GetNetParam(netFile.toString).getLayer(0).getTransformParam.toBuilder.setMirror(false).build()
    new FloatDataTransformer(transform, true).transform(mats, data)
    Array(data, blob(n, 1, 1, 1)(k => ((i * n + k) % 2).toFloat))
  }
  private lazy val netFile = {
    val f = Files.createTempFile("jcaffe-net-", ".prototxt")
    f.toFile.deleteOnExit()
    write(f, caffenet(big = false, side))
    f
  }

  test("negative indices") {
    inFolder { folder =>
      using(net(small(folder))) { n =>
        assert(!n.init(-1) && n.deviceID(-1) === -1 && n.getInitIter(-1) === -1 && n.getMaxIter(-1) === -1 &&
          n.getTestIter(-1) === -1)
        assert(n.snapshotFilename(-1, false) === null && !n.train(-1, batch(0)) &&
          n.predict(-1, batch(0), Array("loss")) === null)
        val e = intercept[Exception](n.init(1)).getMessage
        assert(e.contains("solver_index must be 0 for local CaffeNet in CPU mode"), e)
      }
    }
  }

  test("what a net says of itself") {
    inFolder { folder =>
      val path = small(folder)
      using(net(path)) { n =>
        assert(n.localAddresses().length === 0 && n.connect(n.localAddresses()) && n.connect(null) && n.sync())
        assert(n.deviceID(0) === 0 && n.init(0) && n.init(0, true))
        val most = Utils.GetSolverParam(path).getMaxIter
        assert((n.getInitIter(0), n.getMaxIter(0), n.getTestIter(0), n.getTestInterval) === ((0, most, 10, 100)))
        assert(n.snapshot() === 0)
        for (state <- Seq(true, false)) {
          val file = n.snapshotFilename(0, state)
          assert(file.startsWith(s"$folder/caffenet_iter_0." + (if (state) "solverstate" else "caffemodel")))
          assert(new File(file).length > 0)
        }
      }
      using(net(path, training = false))(n => assert(n.getValidationOutputBlobNames.toSeq === Seq("accuracy", "loss")))
    }
  }

  test("null and misshapen data") {
    inFolder { folder =>
      using(net(small(folder))) { n =>
        assert(intercept[Exception](n.train(0, null)).getMessage === "data is NULL")
        assert(intercept[Exception](n.predict(0, null, Array("loss"))).getMessage === "data is NULL")
        assert(n.predict(0, batch(0), Array()) === null)
        def refused(data: FloatBlob*) = intercept[Exception](n.train(0, data.toArray)).getMessage
        assert(refused(batch(0)(0)).contains("1 blob(s) are given, this layer has 2 tops"))
        assert(refused(batch(0, 3): _*).contains("blob 0 is 3x3x27x27, this layer takes 4x3x27x27"))
        assert(refused(blob(4, 3, 20, 20)(_ => 0f), batch(0)(1)).contains("layer 'data' (MemoryData)"))
        assert(intercept[Exception](n.predict(0, batch(0), Array("fc9"))).getMessage.contains("fc9"))
        assert(n.train(0, batch(0))) // none of that did harm
      }
    }
  }

  test("training and prediction") {
    inFolder { folder =>
      using(net(small(folder))) { n =>
        for (i <- 0 until 20) assert(n.train(0, batch(i)))
        for (i <- 0 until 20; b <- n.predict(0, batch(i), Array("loss", "fc8")))
          assert(b.values().forall(v => !v.isNaN && v < 50f))
        assert(n.predict(0, batch(0), Array("fc8")).head.shape() === Array(4, 2))
        assert(n.snapshot() === 20)
      }
    }
  }

  private val linear =
    """name: "linear"
      |layer { name: "data" type: "MemoryData" top: "data" top: "label"
      |  memory_data_param { batch_size: 2 channels: 1 height: 1 width: 3 } }
      |layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
      |  inner_product_param { num_output: 2 weight_filler { type: "constant" value: 0 } } }
      |layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }""".stripMargin

  test("steps of softmax regression, by hand in double") {
    inFolder { folder =>
      val path = write(folder.resolve("linear.prototxt"), linear)
      val solver = write(
        folder.resolve("solver.prototxt"),
        s"""net: "$path" base_lr: 0.5 lr_policy: "fixed"
        momentum: 0.9 max_iter: 9 test_iter: 2 snapshot_prefix: "$folder/s" """
      )
      val (x, labels) = (Array(Array(1.0, -2, 0.5), Array(0.25, 3, -1)), Array(1, 0))
      val (w, b) = (Array.fill(2, 3)(0.0), Array(0.0, 0.0))
      val (hw, hb) = (Array.fill(2, 3)(0.0), Array(0.0, 0.0))
      def scores(s: Array[Double]) = w.indices.map(o => b(o) + s.indices.map(i => w(o)(i) * s(i)).sum)
      def softmax(z: Seq[Double]) = z.map(v => math.exp(v) / z.map(math.exp).sum)
      def loss = x.indices.map(k => -math.log(softmax(scores(x(k)))(labels(k)))).sum / x.length
      val data = Array(blob(2, 1, 1, 3)(i => x(i / 3)(i % 3).toFloat), blob(2, 1, 1, 1)(i => labels(i).toFloat))
      using(net(solver)) { n =>
        assert(n.getTestInterval === 0)
        for (_ <- 0 until 5) {
          assert(n.train(0, data))
          val gradient = x.indices.map(k =>
            softmax(scores(x(k))).zipWithIndex.map { case (p, o) => (p - (if (o == labels(k)) 1 else 0)) / 2 })
          for (o <- 0 until 2) {
            for (i <- 0 until 3) {
              hw(o)(i) = 0.9 * hw(o)(i) + 0.5 * x.indices.map(k => gradient(k)(o) * x(k)(i)).sum
              w(o)(i) -= hw(o)(i)
            }
            hb(o) = 0.9 * hb(o) + 0.5 * x.indices.map(k => gradient(k)(o)).sum; b(o) -= hb(o)
          }
          val Array(ip, l) = n.predict(0, data, Array("ip", "loss"))
          for (k <- 0 until 2; o <- 0 until 2) assert(math.abs(ip.cpu_data().get(2 * k + o) - scores(x(k))(o)) < 1e-5)
          assert(math.abs(l.cpu_data().get(0) - loss) < 1e-5)
        }
        // Validation on the batch and on it with the labels exchanged: the mean of both losses is logged, the last
        // one's output is there.
        n.validation(data)
        assert(math.abs(n.getValidationOutputBlobs(1)(0).cpu_data().get(0) - loss) < 1e-5 &&
          n.getValidationOutputBlobs(3)(1) === null)
        n.aggregateValidationOutputs()
        assert(intercept[Exception](n.aggregateValidationOutputs()).getMessage.contains("no validation batch"))
      }
    }
  }

  test("a restored state goes on to the same bits; a model alone starts anew") {
    inFolder { folder =>
      val path = small(folder)
      val (model, state, want) = using(net(path)) { n =>
        for (i <- 0 until 3) n.train(0, batch(i).map(identity))
        assert(n.snapshot() === 3)
        (n.snapshotFilename(3, false), n.snapshotFilename(3, true), n.weightsDigest())
      }
      def later(n: CaffeNet) = { for (i <- 0 until 2) n.train(0, fixed(i)); n.weightsDigest() }
      def fixed(i: Int) =
        Array(blob(4, 3, side, side)(k => ((k * 7 + i) % 31 - 15).toFloat), blob(4, 1, 1, 1)(k => (k % 2).toFloat))
      val whole = using(net(path, model = model, state = state)) { n =>
        assert(n.getInitIter(0) === 3 && n.weightsDigest() === want)
        later(n)
      }
      using(net(path, state = state)) { n => assert(later(n) === whole) }
      using(net(path, model = model)) { n =>
        assert(n.getInitIter(0) === 0 && n.weightsDigest() === want)
        assert(later(n) !== whole)
      }
    }
  }

  test("what is not offered or wrong is told before anything is left behind") {
    inFolder { folder =>
      val path = small(folder)
      def refused(make: => CaffeNet) = intercept[RuntimeException](make).getMessage
      def made(devices: Int = 1, nodes: Int = 1, rank: Int = 0, connection: Int = 0, test: Int = 0) =
        new CaffeNet(path, "", "", devices, nodes, rank, true, connection, -1, test)
      intercept[IOException](net(path + ".none"))
      assert(refused(made(devices = 0)).contains("number of local Devices must be greater than or equal to 1"))
      assert(refused(made(devices = 2)).contains("CPU mode only allow single device"))
      assert(refused(made(nodes = 2, connection = CaffeNet.RDMA)).contains("RDMA is not offered"))
      assert(refused(made(nodes = 2)).contains("needs a connection") && refused(made(nodes = 2, connection = 7))
        .contains("7 is unknown"))
      assert(refused(made(nodes = 2, rank = 2, connection = CaffeNet.SOCKET)).contains("ranks 0 to 1"))
      assert(refused(made(test = 1)).contains("there is no test net 1"))
      assert(refused(net(path, model = s"$folder/none.caffemodel")).contains("none.caffemodel"))
      assert(refused(net(small(folder, "solver_mode: GPU".replace("solver_mode", "device_id: 0 type: \"Nonsense\" #"))))
          .contains("Unknown solver type"))
      assert(!ProcessHandle.current.children.anyMatch(p => p.info.commandLine.orElse("").contains("none.caffemodel")))
    }
  }

  test("given up: the process ends, and later calls say so") {
    inFolder { folder =>
      val before = ProcessHandle.current.children.map[Long](_.pid).toArray.toSet
      val n = net(small(folder))
      val mine = ProcessHandle.current.children.toArray.toSeq
        .collect { case p: ProcessHandle if !before(p.pid: java.lang.Long) => p }
      assert(mine.size === 1)
      n.deallocate()
      n.deallocate()
      assert((0 until 100).exists { _ =>
        val gone = !mine.head.isAlive
        if (!gone) Thread.sleep(50)
        gone
      })
      assert(intercept[Exception](n.train(0, batch(0))).getMessage.contains("is gone"))
    }
  }
}
