"""Training, testing and feature extraction of Caffe networks in a Spark job."""

from com.yahoo.ml.caffe._jvm import frame, in_words, items, java_class
from com.yahoo.ml.caffe.RegisterContext import registerContext


class CaffeOnSpark:
    """Each method takes what `DataSource(sc).getSource(cfg, isTraining)` returns; errors are CaffeErrors.

    :param sc: SparkContext, or SparkSession
    """

    def __init__(self, sc):
        sc = registerContext(sc)
        self.cos = java_class(sc, "com.yahoo.ml.caffe.CaffeOnSpark")(sc._jsc.sc())

    def train(self, train_source):
        """Trains to max_iter; the model goes to cfg.modelPath."""
        with in_words():
            self.cos.train(train_source)

    def trainWithValidation(self, train_source, validation_source):
        """The same with tests during training: returns a data frame with a row for each test and a column (array of
        floats) for each output.
        """
        with in_words():
            return frame(self.cos.trainWithValidation(train_source, validation_source))

    def test(self, test_source):
        """{output blob: mean over all records, a list}"""
        with in_words():
            return {pair._1(): [float(v) for v in items(pair._2())] for pair in items(self.cos.test(test_source))}

    def features(self, source):
        """A data frame: SampleID, and a column (array of floats) for each blob of cfg.features."""
        with in_words():
            return frame(self.cos.features(source))
