package org.apache.spark.crema

import org.apache.spark.TaskContext

/** The one thing that Spark keeps to itself and a second thread of a task needs: operators ask the thread for its
  * TaskContext. Spark's own Python and R runners do the same.
  */
object TaskThread {
  def as[A](context: TaskContext)(body: => A): A = {
    TaskContext.setTaskContext(context)
    try body
    finally TaskContext.unset()
  }
}
