package com.yahoo.ml.caffe.examples

import com.crema.CremaException
import com.yahoo.ml.caffe.{CaffeOnSpark, Config, DataSource}
import org.apache.spark.ml.classification.LogisticRegression
import org.apache.spark.ml.linalg.{Vector, Vectors}
import org.apache.spark.sql.functions.{col, udf}
import org.apache.spark.{SparkConf, SparkContext}

/** Deep learning and then ordinary learning in one job: trains the net of -conf, extracts the first blob of -features
  * over the TEST source, fits a logistic regression from it to -label, and saves that at -output.
  */
object MyMLPipeline {
  private val first = udf((values: scala.collection.Seq[Float]) => values.head.toDouble)
  private val vector =
    udf((values: scala.collection.Seq[Float]) => Vectors.dense(values.map(_.toDouble).toArray): Vector)

  def main(args: Array[String]): Unit = {
    val sc = SparkContext.getOrCreate(new SparkConf().setIfMissing("spark.app.name", "MyMLPipeline"))
    try run(sc, new Config(sc, args))
    finally sc.stop()
  }

  private[caffe] def run(sc: SparkContext, conf: Config): Unit = {
    if (!conf.isFeature) throw new CremaException(
      "no blob is given to learn from; name one with -features, for example -features ip1 -label label")
    val caffe = new CaffeOnSpark(sc)
    caffe.train(DataSource.getSource(conf, isTraining = true))
    val features = caffe.features(DataSource.getSource(conf, isTraining = false))
    val rows = features.select(first(col(conf.label)).as("Label"), vector(col(conf.features.head)).as("Feature"))
    val model = new LogisticRegression().setLabelCol("Label").setFeaturesCol("Feature").fit(rows)
    model.write.overwrite().save(conf.at(conf.outputPath))
  }
}
