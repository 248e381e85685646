package com.yahoo.ml.jcaffe

import org.scalatest.funsuite.AnyFunSuite

/** CaffeNet as it is: 227 x 227, 56.9 million parameters; a few steps. */
class BigNetSuite extends AnyFunSuite {
  import Fixtures._

  test("CaffeNet trains and predicts on real pictures") {
    inFolder { folder =>
      using(net(solver(folder, caffenet(big = true, side = 227, train = 5)))) { n =>
        val (mats, data) = (new MatVector(5), blob(5, 3, 227, 227)(_ => 0f))
        for (k <- 0 until 5) mats.put(k, image(k, 227))
        new FloatDataTransformer(
          Utils.GetNetParam(folder.resolve("net.prototxt").toString).getLayer(0).getTransformParam, true)
          .transform(mats, data)
        val batch = Array(data, blob(5, 1, 1, 1)(k => (k % 2).toFloat))
        val before = n.weightsDigest()
        for (_ <- 0 until 3) assert(n.train(0, batch))
        assert(n.weightsDigest() !== before)
        val Array(loss, fc8, conv1) = n.predict(0, batch, Array("loss", "fc8", "conv1"))
        assert(conv1.shape() === Array(5, 96, 55, 55) && fc8.shape() === Array(5, 2))
        val want = (0 until 5).map { k => // the loss that belongs to these scores, in double
          val z = Seq(fc8.cpu_data().get(2 * k).toDouble, fc8.cpu_data().get(2 * k + 1).toDouble)
          math.log(z.map(math.exp).sum) - z(k % 2)
        }.sum / 5
        assert(math.abs(loss.cpu_data().get(0) - want) < 1e-4 && want < 50)
      }
    }
  }
}
