package com.yahoo.ml.caffe

import java.io.File

import com.crema.{CremaException, Storage}
import com.yahoo.ml.jcaffe.CaffeNet
import org.apache.hadoop.conf.Configuration

private[caffe] object FSUtils {
  /** Prefixes of local paths and of HDFS's, for users' classes in this package. */
  private[caffe] val localfsPrefix: String = "file:"
  private[caffe] val hdfsPrefix: String = "hdfs:"

  /** Takes a snapshot and publishes it: the model at exactly `modelFilename`, or, with `genState`, model and state
    * under the snapshot's own names in the folder of `modelFilename`. The ending `.h5` is added or removed as
    * snapshot_format says. The snapshot's local files are moved away.
    */
  def GenModelOrState(caffeNet: CaffeNet, modelFilename: String, genState: Boolean): Unit = {
    val iteration = caffeNet.snapshot()
    val model = new File(caffeNet.snapshotFilename(iteration, false))
    val state = new File(caffeNet.snapshotFilename(iteration, true))
    val folder = modelFilename.take(modelFilename.lastIndexOf('/') + 1)
    try {
      publish(model, if (genState) folder + model.getName else likeSnapshot(model.getName, modelFilename))
      if (genState) publish(state, folder + state.getName)
    } finally { model.delete(); state.delete() }
  }

  private[caffe] def likeSnapshot(snapshot: String, wanted: String): String =
    if (snapshot.endsWith(".h5") && !wanted.endsWith(".h5")) wanted + ".h5"
    else if (!snapshot.endsWith(".h5")) wanted.stripSuffix(".h5")
    else wanted

  private def publish(file: File, written: String): Unit = {
    val conf = new Configuration()
    val uri = Storage.resolve(written, conf)
    if (Storage.isLocal(uri) && new File(Storage.localPath(uri)).getAbsoluteFile == file.getAbsoluteFile)
      throw new CremaException(s"$written is the solver's own snapshot file; set another snapshot_prefix")
    Storage.publish(file.getPath, uri, conf)
  }
}
