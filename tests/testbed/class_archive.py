#!/usr/bin/env python3
"""class_archive.py SPARK_HOME FOLDER PYTHON: runs itself as a job that uses of Spark what tests use, and whose driver
leaves FOLDER/classes.jsa: the classes that it has loaded, as they are in memory. Ends well without that file where a
job cannot run; what was said tells why.
"""

import contextlib
import os
import pathlib
import subprocess
import sys

from jvm import BRIEF

HERE = pathlib.Path(__file__).resolve()
QUIET = f"-Dlog4j2.configurationFile=file:{HERE.parents[2]}/scripts/log4j2-quiet.properties"
NOWHERE = "127.0.0.1:1"
REFUSED_AT_ONCE = {
    "ipc.client.connect.max.retries": "0",
    "yarn.resourcemanager.address": NOWHERE,
    "yarn.resourcemanager.connect.max-wait.ms": "1",
    "yarn.resourcemanager.connect.retry-interval.ms": "1",
}
YARN = (
    "deploy.yarn.ApplicationMaster",
    "deploy.yarn.Client",
    "deploy.yarn.YarnAllocator",
    "executor.YarnCoarseGrainedExecutorBackend",
)


def submit(home, folder, python):
    archive = f"{BRIEF} -XX:ArchiveClassesAtExit={folder}/classes.jsa -Xlog:cds*=off"
    names = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": python}
    command = [home / "bin/spark-submit", "--conf", "spark.ui.enabled=false", "--driver-java-options", QUIET]
    environment = {**os.environ, **names, "PYTHONPATH": str(home.parent), "SPARK_SUBMIT_OPTS": archive}
    try:
        subprocess.run([*command, HERE, "--job", folder], env=environment, check=True, timeout=600)
    except subprocess.SubprocessError as e:
        print(e)
        pathlib.Path(folder, "classes.jsa").unlink(missing_ok=True)


def job(master, folder):
    """Frames, files and Python's rows. On local[2] the driver is an executor, on a local cluster the cluster."""
    from pyspark.sql import SparkSession, functions

    spark = SparkSession.builder.master(master).config("spark.sql.shuffle.partitions", "2").getOrCreate()
    rows = [(i, str(i), [float(i)], bytearray(b"bytes")) for i in range(20)]
    frame = spark.createDataFrame(rows, ["number", "text", "floats", "bytes"]).cache()
    for kind in ("parquet", "json"):
        frame.write.format(kind).mode("overwrite").save(f"{folder}/{kind}")
        read = spark.read.format(kind).load(f"{folder}/{kind}")
        read.groupBy("text").agg(functions.avg("number")).sort("text").collect()
    frame.rdd.map(lambda row: (row.text, 1)).reduceByKey(lambda a, b: a + b).collect()
    use_hadoop(spark.sparkContext)
    spark.stop()


def use_hadoop(context):
    """Asks an HDFS and a YARN that are not there, which takes the same classes as asking real ones."""
    hadoop = context._jvm.org.apache.hadoop
    conf = context._jsc.hadoopConfiguration()
    for key, value in REFUSED_AT_ONCE.items():
        conf.set(key, value)
    path = hadoop.fs.Path(f"hdfs://{NOWHERE}/")
    with contextlib.suppress(Exception):
        path.getFileSystem(conf).exists(path)
    client = hadoop.yarn.client.api.YarnClient.createYarnClient()
    client.init(conf)
    client.start()
    with contextlib.suppress(Exception):
        client.getYarnClusterMetrics()
    client.stop()
    for name in YARN:
        context._jvm.java.lang.Class.forName(f"org.apache.spark.{name}")


if __name__ == "__main__":
    if sys.argv[1] == "--job":
        for master in ("local[2]", "local-cluster[1,1,1024]"):
            job(master, sys.argv[2])
    else:
        submit(pathlib.Path(os.path.realpath(sys.argv[1])), *sys.argv[2:])
