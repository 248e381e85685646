"""Caffe nets in Spark ML pipelines: the Python side of com.crema.ml.CaffeEstimator and CaffeModel (params and their
meaning: CaffeParams.scala).

    model = CaffeEstimator(solver="solver.prototxt", inputCol="image", outputBlobs=["ip2"]).fit(frame)
    model.transform(frame)          # one array<float> column for each blob

What goes wrong is a CaffeError, one sentence; its java_exception has the stack.
"""

from pyspark import keyword_only
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import HasLabelCol, HasSeed, HasValidationIndicatorCol
from pyspark.ml.util import JavaMLReadable, JavaMLReader, JavaMLWritable
from pyspark.ml.wrapper import JavaEstimator, JavaModel
from pyspark.sql import DataFrame, SparkSession

from com.yahoo.ml.caffe._jvm import CaffeError, in_words  # noqa: F401


def _param(name, doc, converter):
    return Param(Params._dummy(), name, doc, typeConverter=converter)


class _Reader(JavaMLReader):
    @classmethod
    def _java_loader_class(cls, clazz):
        return clazz._java_class

    def load(self, path):
        with in_words():
            return super().load(path)


class _Stage(JavaMLReadable, JavaMLWritable):
    @classmethod
    def read(cls):
        return _Reader(cls)

    @classmethod
    def _from_java(cls, java_stage):
        stage = cls()
        stage._java_obj = java_stage
        stage._resetUid(java_stage.uid())
        stage._transfer_params_from_java()
        return stage

    def __getattr__(self, name):
        """setX and getX of every param."""
        param, known = (
            name[3:4].lower() + name[4:],
            [n for n in dir(type(self)) if isinstance(getattr(type(self), n, None), Param)],
        )
        if name[:3] == "get" and param in known:
            return lambda: self.getOrDefault(param)
        if name[:3] == "set" and param in known:
            return lambda value: self._set(**{param: value})
        raise AttributeError(f"{type(self).__name__} has no attribute '{name}'; its params are {', '.join(known)}")


class _CaffeParams(HasLabelCol):
    inputCol = _param("inputCol", "column that feeds the first top of the data layer", TypeConverters.toString)
    encoded = _param("encoded", "binary input is JPEG or PNG, not pixels", TypeConverters.toBoolean)
    resize = _param("resize", "images take the data layer's height and width", TypeConverters.toBoolean)
    outputBlobs = _param("outputBlobs", "blobs that become columns", TypeConverters.toListString)
    outputCols = _param("outputCols", "columns of the blobs, in their order", TypeConverters.toListString)
    outputVectors = _param(
        "outputVectors", "blobs become vectors of doubles instead of array<float>", TypeConverters.toBoolean
    )


class CaffeModel(_Stage, JavaModel, _CaffeParams):
    """A trained net; made by CaffeEstimator.fit or CaffeModel.load."""

    _java_class = "com.crema.ml.CaffeModel"

    def __init__(self, java_model=None):
        super().__init__(java_model)
        self._setDefault(inputCol="features", encoded=False, resize=False, outputVectors=False)
        if java_model is not None:
            self._resetUid(java_model.uid())
            self._transfer_params_from_java()

    def _transform(self, dataset):
        with in_words():
            return super()._transform(dataset)

    @property
    def validation(self):
        """One row for each test while it was trained, or None; not saved with the model."""
        found = self._java_obj.validation()
        return DataFrame(found.get(), SparkSession.active()) if found.isDefined() else None

    @property
    def modelBytes(self):
        """The weights, a .caffemodel that any Caffe reads."""
        return bytes(self._java_obj.modelBytes())


class CaffeEstimator(_Stage, JavaEstimator, _CaffeParams, HasSeed, HasValidationIndicatorCol):
    """Trains a Caffe net on a frame's columns; see com.crema.ml.CaffeEstimator."""

    _java_class = "com.crema.ml.CaffeEstimator"
    solver = _param("solver", "solver prototxt", TypeConverters.toString)
    ranks = _param("ranks", "logical ranks", TypeConverters.toInt)
    maxIter = _param("maxIter", "number of steps", TypeConverters.toInt)
    weights = _param("weights", "model to fine-tune", TypeConverters.toString)
    snapshots = _param("snapshots", "folder of snapshots", TypeConverters.toString)

    @keyword_only
    def __init__(
        self,
        *,
        solver=None,
        inputCol=None,
        labelCol=None,
        encoded=None,
        resize=None,
        outputBlobs=None,
        outputCols=None,
        outputVectors=None,
        validationIndicatorCol=None,
        ranks=None,
        maxIter=None,
        seed=None,
        weights=None,
        snapshots=None,
    ):
        super().__init__()
        self._java_obj = self._new_java_obj(self._java_class, self.uid)
        self._setDefault(inputCol="features", encoded=False, resize=False, outputVectors=False, ranks=1)
        self._defaultParamMap.pop(self.seed, None)  # pyspark's own default would override the solver's random_seed
        self._set(**{k: v for k, v in self._input_kwargs.items() if v is not None})

    def _fit(self, dataset):
        with in_words():
            return super()._fit(dataset)

    def _create_model(self, java_model):
        return CaffeModel(java_model)
