package org.apache.spark.crema

import org.apache.spark.TaskContext

/** Sets the TaskContext, which is private to Spark, in a second thread of a task: operators that compute rows there ask
  * for it. Spark's own Python and R runners do the same.
  */
object TaskThread {
  def as[A](context: TaskContext)(body: => A): A = {
    TaskContext.setTaskContext(context)
    try body
    finally TaskContext.unset()
  }
}
