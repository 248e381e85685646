"""SavedModels where TensorFlow cannot open them, as on HDFS: Hadoop's client copies them, once for all workers of an
executor and each state of the model.
"""

import contextlib
import fcntl
import functools
import glob
import hashlib
import os
import shutil

from tensorflowonspark import _hadoop, _machine


def _opens(path):
    """Whether TensorFlow has a file system for a path."""
    import tensorflow as tf

    if "://" not in path:
        return True
    try:
        tf.io.gfile.exists(path)
    except tf.errors.UnimplementedError:
        return False
    return True


@functools.lru_cache(maxsize=64)
def local(export_dir, number):
    """The folder of a SavedModel as TensorFlow opens it. number: of one transform(), in which it does not change.
    FileNotFoundError and OSError say what is wrong.
    """
    if _opens(export_dir):
        return export_dir
    url = export_dir.rstrip("/")
    state = _hadoop.stat_files(f"{url}/*")
    if not any(line.endswith("|saved_model.pb") for line in state):
        raise FileNotFoundError(f"there is no SavedModel in {export_dir}: it has no saved_model.pb")
    return _copy(url, hashlib.sha256("\n".join(state).encode()).hexdigest()[:16])


def _copy(url, state):
    """The path of the copy. Copies of earlier states are removed: who has loaded one needs it no more."""
    executor = hashlib.sha256(_machine.here().encode()).hexdigest()[:16]
    name = os.path.join(
        _machine.work_folder(), f"crema-model-{executor}-{hashlib.sha256(url.encode()).hexdigest()[:16]}"
    )
    to = f"{name}.{state}"
    with _alone(f"{name}.lock"):
        if not os.path.isdir(to):
            for old in glob.glob(f"{glob.escape(name)}.*"):
                if os.path.isdir(old):
                    shutil.rmtree(old, ignore_errors=True)
            _hadoop.get_folder(url, f"{to}.part")
            os.rename(f"{to}.part", to)
    return to


@contextlib.contextmanager
def _alone(path):
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # of a copy, which ends by itself when it moves nothing
        yield
