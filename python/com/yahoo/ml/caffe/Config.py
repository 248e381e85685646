"""The settings of a run."""

from py4j.protocol import Py4JError, Py4JJavaError

from com.yahoo.ml.caffe._jvm import in_words, java_class, nearest, strings
from com.yahoo.ml.caffe.RegisterContext import registerContext

_SWITCHES = {"train", "test", "persistent", "resize"}
_READ_ONLY = {"train_data_layer_id", "test_data_layer_id", "solverParameter", "netParam", "ranks"}


def _words(flag, value):
    """The command line words for one entry of a dict. A switch is on for True, None or any text but 'false', as old
    scripts give dummy values.
    """
    name = flag.lstrip("-")
    if name in _SWITCHES:
        if isinstance(value, str) and value.startswith("-"):
            raise ValueError(
                f"-{name} takes no value, and '{value}' looks like the next flag; give Config the whole line instead "
                "of a dict"
            )
        return [] if value is False or str(value).lower() == "false" else ["-" + name]
    if value is None:
        raise ValueError(f"-{name} needs a value")
    return ["-" + name, ",".join(value) if isinstance(value, (list, tuple)) else str(value)]


def _flags(args):
    if isinstance(args, str):
        return args.split()
    if isinstance(args, dict):
        return [word for flag, value in args.items() for word in _words(flag, value)]
    return [str(word) for word in args]


class Config:
    """CaffeOnSpark's flags, and settings one by one: `cfg.devices = 2`, `cfg.modelPath`.

    :param sc: SparkContext, or SparkSession
    :param args: flags: a dict ({'conf': 'solver.prototxt', 'train': True}), a line as in spark.pythonargs, or a list
        of words
    """

    def __init__(self, sc, args=None):
        sc = registerContext(sc)
        made = java_class(sc, "com.yahoo.ml.caffe.Config")
        with in_words():
            config = made(sc._jsc.sc()) if args is None else made(sc._jsc.sc(), strings(sc, _flags(args)))
        setters = {name[:-4] for name in dir(config) if name.endswith("_$eq")}
        self.__dict__.update(config=config, _sc=sc, _setters=setters)

    def _check(self, name, valid):
        if name not in valid:
            raise AttributeError(f"Config has no attribute '{name}'{nearest(name, valid)}")

    def __getattr__(self, name):
        if name.startswith("__") or "config" not in self.__dict__:
            raise AttributeError(name)
        self._check(name, self._setters | _READ_ONLY)
        with in_words():
            value = getattr(self.config, name)()
        return list(value) if name == "features" else value

    def __setattr__(self, name, value):
        if name in _READ_ONLY:
            raise AttributeError(f"Config's {name} follows from the solver's file; change that")
        self._check(name, self._setters)
        if name == "features":
            value = strings(self._sc, value.split(",") if isinstance(value, str) else list(value))
        with in_words():
            try:
                getattr(self.config, name + "_$eq")(value)
            except Py4JJavaError:
                raise
            except Py4JError:
                raise TypeError(
                    f"Config's {name} cannot be {value!r}: it is a {type(getattr(self, name)).__name__}"
                ) from None

    def __dir__(self):
        return sorted(self._setters | _READ_ONLY)

    def __repr__(self):
        return f"Config({self.config.toString()})"
