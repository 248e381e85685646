"""The params of TFEstimator and TFModel: for each group a class Has<Group> with Params, setters and getters.

The names are TensorFlowOnSpark's; those of _CLUSTER are arguments of TFCluster.run, train and shutdown that its
estimator could not reach.
"""

import argparse
import copy

try:
    from pyspark.ml.param import Param, Params, TypeConverters
    from pyspark.ml.pipeline import Estimator, Model

    NO_SPARK = None
except (
    ImportError
) as e:  # without PySpark, or without the numpy that pyspark.ml needs, this still is an importable module
    NO_SPARK = str(e)
    if "distutils" in NO_SPARK:
        NO_SPARK += "; PySpark 3.5 takes it from setuptools on Python 3.12 and newer: pip install setuptools"

    class Params:
        """Stands for pyspark's; none can be made."""

        def __init__(self):
            raise ImportError(f"estimators and models need PySpark and numpy where they are made: {NO_SPARK}")

        _dummy = staticmethod(lambda: None)

    class Estimator(Params):
        pass

    class Model(Params):
        pass

    class TypeConverters:
        toInt = toString = toBoolean = toListString = None

    def Param(parent, name, doc, typeConverter=None):  # noqa: N802
        return name


class TFTypeConverters:
    @staticmethod
    def toDict(value):
        if type(value) is not dict:
            raise TypeError("Could not convert %s to OrderedDict" % (value,))
        return value


INT, TEXT, YES, DICT = TypeConverters.toInt, TypeConverters.toString, TypeConverters.toBoolean, TFTypeConverters.toDict
TEXTS = TypeConverters.toListString


def _setter(name):
    return lambda self, value: self._set(**{name: value})


def _getter(name):
    return lambda self: self.getOrDefault(name)


def _group(group, **params):
    """Class Has<group>; params: name=(X of setX and getX, meaning, converter)."""
    body = {"__module__": __name__, "__doc__": "; ".join(f"{name}: {p[1]}" for name, p in params.items())}
    for name, (suffix, doc, converter) in params.items():
        body[name] = Param(Params._dummy(), name, doc, typeConverter=converter)
        body[f"set{suffix}"], body[f"get{suffix}"] = _setter(name), _getter(name)
    return type(f"Has{group}", (Params,), body)


HasBatchSize = _group("BatchSize", batch_size=("BatchSize", "rows in a batch", INT))
HasClusterSize = _group("ClusterSize", cluster_size=("ClusterSize", "nodes of the cluster", INT))
HasEpochs = _group("Epochs", epochs=("Epochs", "how many times the rows are fed", INT))
HasGraceSecs = _group("GraceSecs", grace_secs=("GraceSecs", "seconds for what nodes do after their last row", INT))
HasInputMapping = _group("InputMapping", input_mapping=("InputMapping", "{column: tensor}", DICT))
HasMasterNode = _group("MasterNode", master_node=("MasterNode", "job name of the chief", TEXT))
HasModelDir = _group("ModelDir", model_dir=("ModelDir", "folder of checkpoints", TEXT))
HasNumPS = _group(
    "NumPS",
    num_ps=("NumPS", "parameter servers among the nodes", INT),
    driver_ps_nodes=("DriverPSNodes", "parameter servers run on the driver", YES),
)
HasOutputMapping = _group("OutputMapping", output_mapping=("OutputMapping", "{tensor: column}", DICT))
HasProtocol = _group("Protocol", protocol=("Protocol", "for the program's own use", TEXT))
HasReaders = _group("Readers", readers=("Readers", "for the program's own use", INT))
HasSteps = _group("Steps", steps=("Steps", "for the program's own use", INT))
HasTensorboard = _group("Tensorboard", tensorboard=("Tensorboard", "TensorBoard runs beside the chief", YES))
HasTFRecordDir = _group("TFRecordDir", tfrecord_dir=("TFRecordDir", "for the program's own use", TEXT))
HasExportDir = _group("ExportDir", export_dir=("ExportDir", "folder of the SavedModel", TEXT))
HasTagSet = _group("TagSet", tag_set=("TagSet", "tags of a graph in the SavedModel, with commas between", TEXT))
HasPassThrough = _group(
    "PassThrough", pass_through=("PassThrough", "input columns that stay beside the output, ['*'] for all", TEXTS)
)
_CLUSTER = {
    "feed_timeout": ("FeedTimeout", "seconds that feeding a partition may take", INT, 600),
    "reservation_timeout": ("ReservationTimeout", "seconds for all nodes to join", INT, 600),
    "log_dir": ("LogDir", "folder that TensorBoard shows", TEXT, None),
    "eval_node": ("EvalNode", "one node is an evaluator", YES, False),
    "release_port": ("ReleasePort", "the port of a node is free when the program starts", YES, True),
    "shutdown_timeout": ("ShutdownTimeout", "seconds for all nodes to end; 0: no limit", INT, 259200),
}
CLUSTER_DEFAULTS = {name: default for name, (_, _, _, default) in _CLUSTER.items()}
HasClusterOptions = _group("ClusterOptions", **{name: parts[:3] for name, parts in _CLUSTER.items()})


class HasSignatureDefKey(_group("SignatureDefKey", signature_def_key=("SignatureDefKey", "name of a signature", TEXT))):
    def __init__(self):
        super().__init__()
        self._setDefault(signature_def_key=None)


class HasInputMode(_group("InputMode", input_mode=("InputMode", "1 (SPARK): rows are fed by Spark", INT))):
    def setInputMode(self, value):
        if value == 0:
            raise Exception("InputMode.TENSORFLOW is deprecated")
        return self._set(input_mode=value)


class Namespace:
    """Arguments of a program: a dict or an argparse.Namespace as attributes, or a list of words as `argv`."""

    argv = None

    def __init__(self, d):
        if isinstance(d, list):
            self.argv = d
        elif isinstance(d, dict):
            self.__dict__.update(d)
        elif isinstance(d, (argparse.Namespace, Namespace)):
            self.__dict__.update(vars(d))
        else:
            raise Exception(f"Unsupported Namespace args: {d}")

    def __iter__(self):
        return iter(self.argv or list(vars(self)))

    def __repr__(self):
        if self.argv:
            return str(self.argv)
        return f"Namespace({', '.join(f'{key}={value!r}' for key, value in sorted(vars(self).items()))})"

    def __eq__(self, other):
        if self.argv:
            return self.argv == (other.argv if isinstance(other, Namespace) else other)
        return isinstance(other, Namespace) and vars(self) == vars(other)

    __hash__ = None  # it can change


class TFParams(Params):
    """Has `args`, a Namespace of the program's own arguments, beside the params."""

    args = None

    def merge_args_params(self):
        """A copy of args with the values of all params, defaults included, which replace arguments of the same name.
        Options of the cluster only replace them when they were set: a program may have a log_dir of its own.
        """
        merged = copy.copy(self.args)
        values = vars(merged)
        for param in self.params:
            if param.name not in values or self.isSet(param) or param.name not in CLUSTER_DEFAULTS:
                values[param.name] = self.getOrDefault(param.name)
        return merged
