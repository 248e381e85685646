package com.crema

import java.io.{File, RandomAccessFile}
import java.nio.file.{Files, Path}

import scala.collection.mutable

import org.apache.hadoop.conf.Configuration
import org.scalatest.BeforeAndAfterEach
import org.scalatest.funsuite.AnyFunSuite

/** Which snapshot `-resume auto` takes, of copies of one that Caffe wrote. */
class SnapshotsSuite extends AnyFunSuite with BeforeAndAfterEach {
  private val golden = Iterator.iterate(new File("").getAbsoluteFile)(_.getParentFile)
    .map(new File(_, "tests/goldens/caffe_snapshots")).find(_.exists()).get.toPath
  private var folder: Path = _
  override def beforeEach(): Unit = folder = Files.createTempDirectory("snapshots-suite-")
  override def afterEach(): Unit = org.apache.hadoop.fs.FileUtil.fullyDelete(folder.toFile)

  private def taken(iteration: Int, end: String): Unit =
    for (kind <- Seq("caffemodel", "solverstate"))
      Files.copy(golden.resolve(s"tiny_iter_2.$kind$end"), folder.resolve(s"snap_iter_$iteration.$kind$end"))
  private def newest: (Option[Int], Seq[String]) = {
    val said = mutable.Buffer[String]()
    (Snapshots.newest(s"file:$folder", "snap", new Configuration(), said += _).map(_.iteration), said.toSeq)
  }
  private def changed(name: String)(change: RandomAccessFile => Unit): Unit = {
    val file = new RandomAccessFile(folder.resolve(name).toFile, "rw")
    try change(file)
    finally file.close()
  }

  for (end <- Seq("", ".h5"); kind <- Seq("caffemodel", "solverstate"))
    test(s"a .$kind$end that was cut short is passed over for an older snapshot") {
      for (n <- Seq(2, 4, 10)) taken(n, end)
      assert(newest == (Some(10), Nil))
      val name = s"snap_iter_10.$kind$end"
      changed(name)(f => f.setLength(f.length / 2))
      val (found, said) = newest
      assert(found.contains(4) && said.size == 1 && said.head.contains(s"$folder/$name is damaged"), said)
      changed(name)(_.setLength(0))
      assert(newest._1.contains(4))
    }

  test("a file that ends in zeros is passed over, and where all are damaged it is said what to do") {
    for (n <- Seq(2, 4)) taken(n, "")
    changed("snap_iter_4.solverstate") { f =>
      val all = f.length; f.setLength(all / 2); f.setLength(all)
    }
    assert(newest._1.contains(2))
    changed("snap_iter_2.caffemodel")(_.setLength(5))
    val e = intercept[WrongInput](newest)
    assert(e.getMessage.contains("of the newest, " + folder + "/snap_iter_4.solverstate is damaged"), e.getMessage)
    assert(e.getMessage.contains("move these files away to begin anew"))
  }

  test("a state whose model is missing is passed over, and nothing begins anew over it") {
    for (n <- Seq(2, 4)) taken(n, "")
    Files.delete(folder.resolve("snap_iter_4.caffemodel"))
    val (found, said) = newest
    assert(
      found.contains(2) && said.size == 1 && said.head.contains(s"its model $folder/snap_iter_4.caffemodel is missing"))
    Files.delete(folder.resolve("snap_iter_2.caffemodel"))
    assert(intercept[WrongInput](newest).getMessage.contains("snap_iter_4.caffemodel is missing"))
  }

  // The last of them, a layer, is 51 bytes long.
  test("a file whose zeros begin in its last field is passed over, one that ends in a field with a zero is not") {
    for (n <- Seq(2, 4)) taken(n, "")
    changed("snap_iter_4.caffemodel") { f =>
      f.seek(f.length); f.write(Array(0xa2, 0x06, 5, 0x2d, 0, 0, 0, 0).map(_.toByte)) // a layer with loss_weight: 0
    }
    assert(newest == (Some(4), Nil))
    taken(6, "")
    changed("snap_iter_6.caffemodel") { f => f.seek(f.length - 20); f.write(new Array[Byte](20)) }
    assert(newest._1.contains(4) && newest._2.size == 1)
  }
}
