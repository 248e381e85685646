package com.yahoo.ml.caffe

import com.crema.JarCheck
import org.apache.spark.SparkContext
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.expressions.UserDefinedFunction

/** Training, testing and feature extraction of Caffe networks in a Spark job.
  *
  * Nothing but calls stands here: the JVM looks this class over before it runs `main`, and code for another Scala would
  * end it there with the name of a class, before JarCheck can say which jar to take. For the same reason Serializable
  * is Java's.
  */
class CaffeOnSpark(@transient val sc: SparkContext) extends java.io.Serializable {
  @transient private val runs = new Runs(sc)

  /** The first value of an array<float> column; the whole array as a vector. */
  def floatarray2doubleUDF: UserDefinedFunction = Runs.floatarray2double
  def floatarray2doublevectorUDF: UserDefinedFunction = Runs.floatarray2doublevector

  /** Trains to max_iter and writes the model to exactly conf.modelPath.
    *
    * @throws IllegalArgumentException when something can be seen to be wrong before the start
    * @throws CremaException with the worker's story when the run fails
    */
  def train[T1, T2](source: DataSource[T1, T2]): Unit = runs.train(source)

  /** The same with the TEST net every test_interval iterations; one array<float> column per output blob, one row per
    * test: at every iteration 0 < it < max_iter that is a multiple of test_interval, as it always was. The test after
    * the last step is only shown.
    */
  def trainWithValidation[T1, T2](source: DataSource[T1, T2], validation: DataSource[T1, T2]): DataFrame =
    runs.trainWithValidation(source, validation)

  /** One row per record of the TEST source: SampleID, then one array<float> column per blob of conf.features. */
  def features[T1, T2](source: DataSource[T1, T2]): DataFrame = runs.features(source)

  /** The mean of every output blob of the TEST net over all records. */
  def test[T1, T2](source: DataSource[T1, T2]): Map[String, Seq[Double]] = runs.test(source)
}

/** Without saying so, the companion of a serializable class would be of Scala's Serializable. */
object CaffeOnSpark extends java.io.Serializable {
  def main(args: Array[String]): Unit = { JarCheck.orEnd(); Program.main(args) }
}
