package com.crema.tensorflow

import java.io.File
import java.nio.file.Files

import scala.collection.mutable
import scala.util.control.NonFatal

import com.crema.{CremaException, HadoopSettings, Storage, WrongInput}
import org.apache.spark.TaskContext
import org.tensorflow.SavedModelBundle

/** The SavedModels that this JVM has loaded, shared by its tasks. Those in use stay, and of the others the `Kept` used
  * last. A model is known by its place, its tags and the state of its files: one that was written anew is loaded anew.
  */
private[tensorflow] object LoadedModels {
  val Kept = 2

  private case class Key(folder: String, tags: Set[String], state: Seq[Any])
  private class Held(val bundle: SavedModelBundle) { var tasks = 0 }
  private val held = mutable.LinkedHashMap[Key, Held]() // the one used last is last

  /** The model, which stays loaded until the task has ended. A folder on another file system is copied once. */
  def of(uri: String, tags: Set[String], settings: HadoopSettings, context: TaskContext): SavedModelBundle =
    synchronized {
      val folder = Storage.fetch(uri, settings.configuration)
      val key = Key(folder, tags, state(folder))
      val model = held.remove(key).getOrElse(new Held(load(uri, folder, tags)))
      held(key) = model
      model.tasks += 1
      context.addTaskCompletionListener[Unit](_ => release(model))
      model.bundle
    }

  def count: Int = synchronized(held.size)

  private def release(model: Held): Unit = synchronized {
    model.tasks -= 1
    for ((key, unused) <- held.toSeq.filter(_._2.tasks == 0).dropRight(Kept)) {
      held.remove(key)
      unused.bundle.close()
    }
  }

  /** Since TensorFlow 2.11 a fingerprint is written beside a model, another one for each export. */
  private def state(folder: String): Seq[Any] = {
    val (graph, print) = (new File(folder, "saved_model.pb"), new File(folder, "fingerprint.pb"))
    val mark = if (print.exists()) Files.readAllBytes(print.toPath).toSeq else Nil
    Seq(graph.lastModified, graph.length, mark)
  }

  private def load(uri: String, folder: String, tags: Set[String]): SavedModelBundle = {
    if (!new File(folder, "saved_model.pb").exists()) throw new WrongInput(
      s"there is no SavedModel in $folder on this executor; write the model to a file system that all of them reach")
    try SavedModelBundle.loader(folder).withTags(tags.toSeq.sorted: _*).load()
    catch {
      case NonFatal(e) => throw new CremaException(s"the SavedModel in $uri cannot be loaded: ${Storage.cause(e)}", e)
    }
  }
}
