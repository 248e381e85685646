package com.yahoo.ml.caffe

import com.crema.JarCheck
import org.apache.spark.SparkContext
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.expressions.UserDefinedFunction

/** Training, testing and feature extraction of Caffe networks in a Spark job.
  *
  * This class only delegates. The JVM verifies it before it runs `main`, and if it used classes of another Scala
  * version, that would end the JVM with a NoClassDefFoundError before JarCheck can say which jar to take. For the same
  * reason Serializable is Java's.
  */
class CaffeOnSpark(@transient val sc: SparkContext) extends java.io.Serializable {
  @transient private val runs = new Runs(sc)

  /** The first value of an array<float> column; the whole array as a vector. */
  def floatarray2doubleUDF: UserDefinedFunction = Runs.floatarray2double
  def floatarray2doublevectorUDF: UserDefinedFunction = Runs.floatarray2doublevector

  /** Trains to max_iter and writes the model to exactly conf.modelPath.
    *
    * @throws IllegalArgumentException for errors that are found before the start
    * @throws CremaException with the worker's error when the run fails
    */
  def train[T1, T2](source: DataSource[T1, T2]): Unit = runs.train(source)

  /** The same, with the TEST net computed every test_interval iterations. Returns one array<float> column per output
    * blob and one row per test: at every iteration 0 < it < max_iter that is a multiple of test_interval, as in
    * CaffeOnSpark. The test after the last step is only printed.
    */
  def trainWithValidation[T1, T2](source: DataSource[T1, T2], validation: DataSource[T1, T2]): DataFrame =
    runs.trainWithValidation(source, validation)

  /** One row per record of the TEST source: SampleID, then one array<float> column per blob of conf.features. */
  def features[T1, T2](source: DataSource[T1, T2]): DataFrame = runs.features(source)

  /** The mean of every output blob of the TEST net over all records. */
  def test[T1, T2](source: DataSource[T1, T2]): Map[String, Seq[Double]] = runs.test(source)
}

/** Java's Serializable is named because the compiler would else give the companion of a serializable class Scala's. */
object CaffeOnSpark extends java.io.Serializable {
  def main(args: Array[String]): Unit = { JarCheck.orEnd(); Program.main(args) }
}
