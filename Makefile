# CaffeOnSpark's make targets. The scripts do the work; each does only what is missing.
SHELL := /bin/bash
.PHONY: build dist wheel tensorflow test clean

build: ## the executable and the jar
	@source scripts/lib.sh && ensure_packages run && ensure_python && build_engine OFF && build_jar

dist: build ## build/dist, usable as CAFFE_ON_SPARK
	@scripts/dist build/dist && echo "export CAFFE_ON_SPARK=$(CURDIR)/build/dist"

wheel: ## build/dist/crema_spark-*.whl: executable, libcrema, jars of both lines of Spark, caffe, com.yahoo.ml.caffe, crema.ml, tensorflowonspark
	@scripts/wheel build/dist

tensorflow: build ## the jar for SavedModels (TFModel, Inference), and TensorFlow Java's jars in the folder tensorflow-java beside it
	@source scripts/lib.sh && build_tensorflow_jar && echo "$$TENSORFLOW_JAR"

test:
	@./runtests

clean: ## what was built; data/ and .venv/ stay
	rm -rf build/release build/dist spark/target spark/tensorflow/target
