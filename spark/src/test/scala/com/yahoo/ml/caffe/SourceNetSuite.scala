package com.yahoo.ml.caffe

import java.nio.file.Files

import com.yahoo.ml.caffe.tools.Tool.serialised
import com.yahoo.ml.jcaffe.{CaffeNet, FloatDataTransformer, Fixtures}
import org.apache.hadoop.io.BytesWritable
import org.scalatest.funsuite.AnyFunSuite

/** A source, a transformer and a net in a user's own loop: what CaffeOnSpark's SourceTest does. */
class SourceNetSuite extends AnyFunSuite {
  import Fixtures._

  test("images of a SequenceFile are decoded, transformed, trained on, and the model is published") {
    val spark = TestRecords.spark("local[1]")
    try {
      inFolder { folder =>
        val files = folder.resolve("images").toString
        val records = spark.sparkContext.parallelize((0 until 4).map(i => (i, jpegs(i % 2))), 2)
        records.map { case (i, bytes) =>
          (new BytesWritable(serialised(new com.yahoo.ml.dl.caffe.Pair(s"$i", s"${i % 2}"))),
            new BytesWritable(bytes))
        }.saveAsSequenceFile(files)
        val path = solver(folder, caffenet(big = false, 27).replace("file:target/images", s"file:$files"))
        val conf = TestRecords.config(spark.sparkContext, path, folder.resolve("model.h5"), "-resize")
        assert(conf.clusterSize >= 1 && conf.train_data_layer_id === 0 && conf.test_data_layer_id === 1)
        for (training <- Seq(true, false)) {
          val source =
            new SeqImageDataSource(conf, if (training) conf.train_data_layer_id else conf.test_data_layer_id, training)
          assert(source.init() && source.batchSize() === (if (training) 4 else 2) && source.isTrain === training)
          source.resetQueue()
          val rdd = source.makeRDD(spark.sparkContext).persist()
          val (data, holder, ids) =
            (source.dummyDataBlobs(), source.dummyDataHolder(), new Array[String](source.batchSize()))
          val transformer = new FloatDataTransformer(source.transformationParameter, training)
          def fill(): Unit = {
            assert(rdd.take(source.batchSize()).map(r => source.offer(r)).forall(identity))
            assert(source.nextBatch(ids, holder))
            transformer.transform(holder._1, data(0))
            assert(data(1).copyFrom(holder._2))
          }
          using(new CaffeNet(conf.protoFile, "", "", 1, 1, 0, training, 0, -1, 0)) { net =>
            assert(net.connect(null))
            if (training) {
              for (_ <- 0 until 5) { fill(); assert(net.train(0, data)) }
              FSUtils.GenModelOrState(net, conf.modelPath, false)
              val written = FSUtils.likeSnapshot(net.snapshotFilename(5, false), folder.resolve("model.h5").toString)
              assert(Files.size(java.nio.file.Paths.get(written)) > 0)
              assert(!Files.exists(java.nio.file.Paths.get(net.snapshotFilename(5, false))))
              FSUtils.GenModelOrState(net, s"${FSUtils.localfsPrefix}$folder/published/model", true)
              for (state <- Seq(true, false)) {
                val name = new java.io.File(net.snapshotFilename(5, state)).getName
                assert(Files.exists(folder.resolve("published").resolve(name)))
              }
            } else {
              fill()
              for (b <- net.predict(0, data, Array("accuracy", "loss"))) assert(b.cpu_data().get(0) < 50f)
            }
          }
        }
      }
    } finally spark.stop()
  }

  test(".h5 follows the snapshot") {
    assert(FSUtils.likeSnapshot("a.caffemodel.h5", "m") === "m.h5" &&
      FSUtils.likeSnapshot("a.caffemodel", "m.h5") === "m")
    assert(FSUtils.likeSnapshot("a.caffemodel.h5", "m.h5") === "m.h5" &&
      FSUtils.likeSnapshot("a.caffemodel", "m.caffemodel") === "m.caffemodel")
  }
}
