"""Stages of a Spark pipeline that save themselves: params as Spark's own stages do, beside them the program's arguments
and, for an estimator, its functions (cloudpickle: loading them runs code of whoever wrote the folder, and needs the
same Python). The model itself stays in its export_dir, whose path is among the params.
"""

import base64
import json
import sys

from .params import Namespace

try:
    from pyspark.ml.util import (
        DefaultParamsReader,
        DefaultParamsWriter,
        MLReadable,
        MLReader,
        MLWritable,
        MLWriter,
    )
except ImportError:  # params.py says so when a stage is made
    MLReadable, MLReader, MLWritable, MLWriter = (type("Absent", (), {}) for _ in range(4))

_KEY = "tensorflowonspark"


class Saveable(MLReadable, MLWritable):
    """A stage that is made by cls(tf_args=args, ...); attributes that `functions` names are further arguments."""

    functions = ()

    def write(self):
        return _Writer(self)

    @classmethod
    def read(cls):
        return _Reader(cls)


class _Writer(MLWriter):
    def __init__(self, stage):
        super().__init__()
        self.stage = stage

    def saveImpl(self, path):
        extra = {_KEY: {"args": _plain(self.stage.args), "functions": _pickled(self.stage)}}
        DefaultParamsWriter.saveMetadata(self.stage, path, _session(self), extraMetadata=extra)


class _Reader(MLReader):
    def __init__(self, cls):
        super().__init__()
        self.cls = cls

    def load(self, path):
        metadata = DefaultParamsReader.loadMetadata(path, _session(self))
        if _KEY not in metadata:
            raise ValueError(f"{path} holds a {metadata['class']}, which is no {self.cls.__name__}")
        saved = metadata[_KEY]
        args = saved["args"].get("argv", saved["args"].get("values"))
        stage = self.cls(tf_args=args, **_unpickled(saved["functions"], path))
        stage._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(stage, metadata)
        return stage


def _session(io):
    """What Spark's functions for metadata take: a session since Spark 4, a SparkContext before."""
    import pyspark

    return io.sc if pyspark.__version__.startswith("3.") else io.sparkSession


def _plain(args):
    values = vars(Namespace(args))
    for name, value in values.items():
        try:
            json.dumps(value)
        except (TypeError, ValueError) as e:
            raise ValueError(
                f"argument '{name}' of the program is a {type(value).__name__}, which cannot be saved ({e}); keep "
                "numbers, texts, lists and dicts in tf_args, or leave it out before saving"
            ) from None
    return {"argv": args.argv} if args.argv else {"values": values}


def _pickled(stage):
    from pyspark import cloudpickle

    made = {name: getattr(stage, name) for name in stage.functions}
    return {
        "python": list(sys.version_info[:2]),
        **{name: f and base64.b64encode(cloudpickle.dumps(f)).decode() for name, f in made.items()},
    }


def _unpickled(saved, path):
    from pyspark import cloudpickle

    python = saved.pop("python")
    if any(saved.values()) and python != list(sys.version_info[:2]):
        raise ValueError(
            f"the functions in {path} were saved by Python {python[0]}.{python[1]} and this is "
            f"{sys.version_info[0]}.{sys.version_info[1]}; load them with that one, or save the estimator anew"
        )
    return {name: f and cloudpickle.loads(base64.b64decode(f)) for name, f in saved.items()}
