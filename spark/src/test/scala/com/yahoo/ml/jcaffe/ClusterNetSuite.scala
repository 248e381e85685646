package com.yahoo.ml.jcaffe

import java.nio.file.{Files, Path}
import java.util.concurrent.{Callable, Executors, TimeUnit}

import com.crema.Command
import com.yahoo.ml.caffe.TestRecords
import org.scalatest.funsuite.AnyFunSuite

/** Several nodes on loopback: each CaffeNet has a real process. */
class ClusterNetSuite extends AnyFunSuite {
  import Fixtures._

  private val (batch, side, steps) = (4, 12, 6)

  /** Runs the body for all nodes at once, in a thread for each. */
  private def together[A](nodes: Seq[CaffeNet], seconds: Long = 120)(body: (CaffeNet, Int) => A): Seq[A] = {
    val pool = Executors.newFixedThreadPool(nodes.size)
    try nodes.zipWithIndex.map { case (n, r) => pool.submit(new Callable[A] { override def call(): A = body(n, r) }) }
        .map(_.get(seconds, TimeUnit.SECONDS))
    finally pool.shutdownNow()
  }

  private def withNodes[A](solver: Int => String, count: Int)(body: Seq[CaffeNet] => A): A = {
    val nodes = (0 until count).map(r => net(solver(r), nodes = count, rank = r, connection = CaffeNet.SOCKET))
    try body(nodes)
    finally nodes.foreach(_.deallocate())
  }

  /** What node `rank` hands to connect(): of each peer the address that the peer has for it. */
  private def addressesFor(nodes: Seq[CaffeNet], rank: Int): Array[String] =
    if (nodes.size == 1) null else nodes.map(_.localAddresses()(rank)).toArray

  /** With dropout: the ranks' random numbers must be the same as well. */
  private def netOver(source: String) = {
    val layer = s"""type: "MemoryData" memory_data_param {
      source: "$source" batch_size: $batch channels: 1 height: $side width: $side }"""
    def ip(bottom: String) = s"""layer { name: "ip" type: "InnerProduct" bottom: "$bottom" """
    val drop = """layer { name: "drop" type: "Dropout" bottom: "conv" top: "dropped" } """
    TestRecords.net(layer, layer).replace(ip("conv"), drop + ip("dropped")).ensuring(_.contains("Dropout"))
  }

  private def solverAt(folder: Path, name: String, source: String, seed: Int = 7) = {
    Files.createDirectories(folder.resolve(name))
    write(folder.resolve(s"$name/net.prototxt"), netOver(source))
    write(
      folder.resolve(s"$name/solver.prototxt"),
      s"""net: "$folder/$name/net.prototxt" base_lr: 0.05 momentum: 0.9 weight_decay: 0.01 clip_gradients: 2
         |lr_policy: "fixed" max_iter: $steps random_seed: $seed test_iter: 1 test_interval: 1000
         |test_initialization: false snapshot: $steps snapshot_prefix: "$folder/$name/snap" """.stripMargin
    )
  }

  private def batchOf(records: TestRecords, block: Int): Array[FloatBlob] = {
    val first = block * batch
    Array(blob(batch, 1, side, side)(i => (records.pixels(first + i / (side * side))(i % (side * side)) & 255).toFloat),
      blob(batch, 1, 1, 1)(i => records.labels(first + i).toFloat))
  }

  for (count <- Seq(1, 2, 3))
    test(s"$count node(s), the model of one `crema train -ranks $count` on the same batches, byte for byte") {
      inFolder { folder =>
        val records = new TestRecords(folder, batch * count * steps, 5, side)
        val solver = solverAt(folder, "alone", records.lmdb)
        val alone = Command.run(120, "train", "-solver", solver, "-ranks", count.toString)
        assert(alone.code === 0, alone.errors)
        val path = solverAt(folder, "nodes", records.lmdb)
        withNodes(_ => path, count) { nodes =>
          if (count > 1)
            assert(nodes.head.localAddresses().head === "" && nodes.head.localAddresses().tail.forall(_.contains(":")))
          assert(together(nodes)((n, r) => n.connect(addressesFor(nodes, r))).forall(identity))
          val digests = together(nodes) { (n, r) =>
            assert(n.sync())
            for (step <- 0 until steps) {
              assert(n.train(0, batchOf(records, step * count + r)))
              if (step == 3) assert(n.sync())
            }
            n.weightsDigest()
          }
          assert(digests.distinct.size === 1)
          assert(nodes.last.snapshot() === steps)
          def bytes(file: String) = Files.readAllBytes(java.nio.file.Paths.get(file))
          val mine = bytes(nodes.last.snapshotFilename(steps, false))
          assert(mine === bytes(s"$folder/alone/snap_iter_$steps.caffemodel"))
        }
      }
    }

  test("all start from rank 0's weights, whatever seed they have") {
    inFolder { folder =>
      withNodes(r => solverAt(folder, s"node$r", "unused", seed = r + 1), 2) { nodes =>
        val before = nodes.map(_.weightsDigest())
        assert(before.distinct.size === 2)
        assert(together(nodes)((n, r) => n.connect(addressesFor(nodes, r))).forall(identity))
        assert(nodes.map(_.weightsDigest()).distinct === Seq(before.head))
      }
    }
  }

  test("wrong addresses: false, soon, and then the right ones work") {
    inFolder { folder =>
      val path = solverAt(folder, "net", "unused")
      withNodes(_ => path, 2) { nodes =>
        def seconds(n: CaffeNet, addresses: String*) = {
          val start = System.nanoTime
          assert(!n.connect(addresses.toArray))
          (System.nanoTime - start) / 1e9
        }
        val wrongOnes = Seq(
          Seq("0x222", "0x333"),
          Seq("a:b", "c:d"),
          Seq("127.0.0.1:0", "127.0.0.1:99999"),
          Seq("", ""),
          Seq("127.0.0.1:5"),
          nodes.map(_.localAddresses().mkString.takeWhile(_ != '/'))
        )
        for (n <- nodes; wrong <- wrongOnes) assert(seconds(n, wrong: _*) < 5, wrong)
        assert(!nodes.head.connect(null))
        assert(seconds(nodes.head, "", "127.0.0.1:9") < 11) // nobody comes
        assert(seconds(nodes.last, "127.0.0.1:9", "") < 11) // nobody listens
        assert(intercept[Exception](nodes.head.sync()).getMessage.contains("is not connected"))
        val zeros = Array(blob(batch, 1, side, side)(_ => 0f), blob(batch, 1, 1, 1)(_ => 0f))
        assert(intercept[Exception](nodes.head.train(0, zeros)).getMessage.contains("is not connected"))
        assert(together(nodes)((n, r) => n.connect(addressesFor(nodes, r))).forall(identity))
      }
    }
  }

  test("who knows where a node listens, and not its key, is not let in") {
    inFolder { folder =>
      val path = solverAt(folder, "net", "unused")
      withNodes(_ => path, 2) { nodes =>
        val mine = nodes.head.localAddresses()(1)
        val guessed = mine.takeWhile(_ != '/') + "/" + "0" * 64
        assert(mine.length === guessed.length && mine != guessed)
        assert(!nodes.last.connect(Array(guessed, "")))
        assert(together(nodes)((n, r) => n.connect(addressesFor(nodes, r))).forall(identity))
      }
    }
  }

  test("another net's node is refused; a node that dies is told to the others") {
    inFolder { folder =>
      val path = solverAt(folder, "net", "unused")
      val other = solver(folder, caffenet(big = false, 27))
      withNodes(r => if (r == 0) path else other, 2) { nodes =>
        assert(together(nodes)((n, r) => n.connect(addressesFor(nodes, r))) === Seq(false, false))
      }
      withNodes(_ => path, 2) { nodes =>
        assert(together(nodes)((n, r) => n.connect(addressesFor(nodes, r))).forall(identity))
        val zeros = Array(blob(batch, 1, side, side)(_ => 0f), blob(batch, 1, 1, 1)(_ => 0f))
        val reasons = together(nodes, 30) { (n, r) =>
          if (r == 1) { Thread.sleep(300); n.deallocate(); "" }
          else intercept[Exception](n.train(0, zeros)).getMessage
        }
        assert(reasons.head.contains("worker 1"), reasons.head)
      }
    }
  }
}
