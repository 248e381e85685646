package com.crema

import java.io.File
import java.nio.file.Files

import com.yahoo.ml.caffe.{CaffeOnSpark, Config, DataSource, SourceRuns, TestRecords}
import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

/** A file system that notes what lies beside each local file that is copied to it. */
class Noting extends SharedFolder {
  override def copyFromLocalFile(delete: Boolean, over: Boolean, from: Path, to: Path): Unit = {
    Noting.beside = new File(from.toUri.getPath).getParentFile.list.toSet
    super.copyFromLocalFile(delete, over, from, to)
  }
}
object Noting { @volatile var beside = Set[String]() }

class TrainTaskSuite extends AnyFunSuite {
  test("snapshots do not stay in the task's folder when they are published") {
    val home = Files.createTempDirectory("train-task-suite-")
    val spark = TestRecords.spark("local[1]", "spark.hadoop.fs.shared.impl" -> classOf[Noting].getName)
    try {
      def data(source: String) =
        s"""type: "MemoryData" source_class: "com.yahoo.ml.caffe.LMDB"
           |memory_data_param { source: "$source" batch_size: 16 channels: 1 height: 12 width: 12 }""".stripMargin
      val net = TestRecords.net(data(SourceRuns.train.lmdb), data(SourceRuns.test.lmdb))
      val solver = TestRecords.solver(home, net, "snapshot: 5")
      val conf = new Config(spark.sparkContext,
        Array("-conf", solver, "-model", s"shared:$home/model", "-connection", "ethernet", "-train"))
      new CaffeOnSpark(spark.sparkContext).train(DataSource.getSource(conf, isTraining = true))
      val published = home.toFile.list.toSet.filter(_.startsWith("snap_iter_"))
      assert(published == (for (n <- 5 to 30 by 5; end <- Seq("caffemodel", "solverstate"))
        yield s"snap_iter_$n.$end").toSet)
      // The model comes when all of them are published.
      assert(Noting.beside("final.caffemodel") && !Noting.beside.exists(_.startsWith("snap_iter_")), Noting.beside)
    } finally { spark.stop(); org.apache.hadoop.fs.FileUtil.fullyDelete(home.toFile) }
  }
}
