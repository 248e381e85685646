"""Where a net's data layers get their records."""

from com.yahoo.ml.caffe._jvm import in_words, java_class
from com.yahoo.ml.caffe.RegisterContext import registerContext


class DataSource:
    """Makes the sources that a net's data layers name with `source_class`.

    :param sc: SparkContext, or SparkSession
    """

    def __init__(self, sc):
        self.dataSource = java_class(registerContext(sc), "com.yahoo.ml.caffe.DataSource")

    def getSource(self, conf, isTraining):
        """The source of the TRAIN or the TEST data layer of conf's net, for CaffeOnSpark's methods."""
        with in_words():
            return self.dataSource.getSource(conf.config, bool(isTraining))
