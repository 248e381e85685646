"""A job of test_tf_hadoop.py: a model is trained, exported, loaded and scored where TensorFlow opens nothing.

hadoop_job.py URL MODEL EXAMPLES     URL is such a folder, MODEL a local SavedModel that is in URL/model as well
"""

import argparse
import os
import sys

from pyspark import cloudpickle
from pyspark.sql import SparkSession

from tensorflowonspark import TFCluster, TFParallel
from tensorflowonspark.pipeline import TFModel

if __name__ == "__main__":
    url, examples = sys.argv[1:]
    sys.path.append(examples)
    import mnist_parallel
    import mnist_spark

    for module in (mnist_spark, mnist_parallel):
        cloudpickle.register_pickle_by_value(module)
    spark = SparkSession.builder.getOrCreate()
    sc = spark.sparkContext

    def transformed(folder):
        model = TFModel({}).setExportDir(folder).setInputMapping({"x": "x"}).setOutputMapping({"y": "y"})
        frame = spark.range(0, 100, 1, 4).selectExpr("cast(id as float) x").repartition(4)
        return sorted(row.y for row in model.transform(frame).collect())

    print("transformed:", transformed(f"{url}/model") == [3.0 * i for i in range(100)])
    try:
        transformed(f"{url}/nothing")
    except ValueError as e:
        print("refused:", e)

    rows = sc.parallelize(range(400), 2).map(lambda i: ([i % 10 * 20] * 784, i % 10))
    args = argparse.Namespace(export_dir=f"{url}/trained", batch_size=100)
    cluster = TFCluster.run(sc, mnist_spark.train, args, 1, 0, input_mode=TFCluster.InputMode.SPARK)
    cluster.train(rows, 1)
    cluster.shutdown()
    cluster = TFCluster.run(sc, mnist_spark.infer, args, 1, 0, input_mode=TFCluster.InputMode.SPARK)
    print("answered:", cluster.inference(rows).count())
    cluster.shutdown()

    lines = rows.map(lambda row: ",".join(map(str, [row[1], *row[0]])))
    lines.saveAsTextFile(f"{url}/csv")
    args = argparse.Namespace(images_labels=f"{url}/csv", output=f"{url}/out", **vars(args))
    TFParallel.run(spark, mnist_parallel.infer, args, 2, use_barrier=False)
    print("predicted:", sc.textFile(f"{url}/out").count())
    copies = sc.parallelize(range(8), 8).map(lambda _: os.environ["SPARK_EXECUTOR_DIRS"]).distinct().collect()
    found = [name for folder in copies for name in os.listdir(folder.split(":")[0]) if name.startswith("crema-model")]
    print("copies:", len(found), "of executors:", len(copies), "unfinished:", sum(".part" in name for name in found))
    spark.stop()
