#!/usr/bin/env bash
# The command of the Azure article, word for word: eight executors on YARN, data, model and rows in the cluster's blob storage.
# CAFFE_ON_SPARK: what `make dist` lays out, with the data layers' `source` edited to where the records are, such as
# wasb:///projects/machine_learning/image_dataset/mnist_train_lmdb. What the whole cluster shares (file system, jars, memory) is in
# HADOOP_CONF_DIR and SPARK_CONF_DIR.
export LD_LIBRARY_PATH=${CAFFE_ON_SPARK}/caffe-public/distribute/lib:${CAFFE_ON_SPARK}/caffe-distri/distribute/lib
spark-submit --master yarn --deploy-mode cluster --num-executors 8 --files ${CAFFE_ON_SPARK}/data/lenet_memory_solver.prototxt,${CAFFE_ON_SPARK}/data/lenet_memory_train_test.prototxt --conf spark.driver.extraLibraryPath="${LD_LIBRARY_PATH}" --conf spark.executorEnv.LD_LIBRARY_PATH="${LD_LIBRARY_PATH}" --class com.yahoo.ml.caffe.CaffeOnSpark ${CAFFE_ON_SPARK}/caffe-grid/target/caffe-grid-0.1-SNAPSHOT-jar-with-dependencies.jar -train -features accuracy,loss -label label -conf lenet_memory_solver.prototxt -devices 1 -connection ethernet -model wasb:///mnist.model -output wasb:///mnist_features_result
