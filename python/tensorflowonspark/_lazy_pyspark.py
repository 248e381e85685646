"""pyspark in a program's process, imported when the program uses it.

Its import takes four times as long as all the rest that a program needs to begin (0.8 s of processor time against 0.2),
and most programs use nothing of it: but the map function was pickled by pyspark.cloudpickle, which can only be imported
as a part of it.
"""

import importlib.abc
import importlib.util
import sys
import threading


class _Loaded(importlib.abc.Loader):
    def __init__(self, module):
        self._module, self._spec = module, module.__spec__

    def create_module(self, spec):
        return self._module

    def exec_module(self, module):
        module.__spec__ = self._spec


class LazyPyspark(importlib.abc.MetaPathFinder):
    """Stands for the package until any other part of it than cloudpickle is used.

    Args:
      files: the folder of the application's files (SparkFiles), or None.
    """

    def __init__(self, files):
        self._files, self._lock, self._loaded = files, threading.RLock(), False

    def install(self):
        """Puts the package that does nothing yet in its place; nothing when it is there already, or nowhere."""
        spec = None if "pyspark" in sys.modules else importlib.util.find_spec("pyspark")
        if spec is None:
            return
        self._module = importlib.util.module_from_spec(spec)
        self._module.__getattr__ = self._attribute
        sys.modules["pyspark"] = self._module
        sys.meta_path.insert(0, self)

    def find_spec(self, name, path=None, target=None):
        if name.startswith("pyspark.") and not name.startswith("pyspark.cloudpickle"):
            self._load()
            if name in sys.modules:  # the whole has it by now, and this import must not make a second one
                return importlib.util.spec_from_loader(name, _Loaded(sys.modules.pop(name)))
        return None  # the finders after this one find it

    def _attribute(self, name):
        if name.startswith("__") and name not in ("__version__", "__all__"):
            raise AttributeError(f"module 'pyspark' has no attribute {name!r}")
        self._load()
        return getattr(self._module, name)

    def _load(self):
        with self._lock:
            if self._loaded:
                return
            self._loaded = True
            sys.meta_path.remove(self)
            del self._module.__getattr__
            self._module.__spec__.loader.exec_module(self._module)
            if self._files:
                files = self._module.SparkFiles
                files._root_directory, files._is_running_on_worker = self._files, True
