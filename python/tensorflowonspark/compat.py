"""For programs that should run with TensorFlow 2 whatever its Keras: Keras 3, or tf_keras (Keras 2)."""

import shutil
import sys
import tempfile


def export_saved_model(model, export_dir, is_chief=False):
    """Writes a Keras model, or a tf.Module, to `export_dir` as a SavedModel with signature serving_default.

    All workers of a strategy must call it, as saving sums variables over them; those that are not the chief write to
    a temporary folder of their host, which is removed again.
    """
    if is_chief:
        _save(model, export_dir)
        return
    folder = tempfile.mkdtemp(prefix="worker_model-")
    try:
        _save(model, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _save(model, folder):
    keras = next((c.__module__.partition(".")[0] for c in type(model).__mro__ if c.__name__ == "Model"), None)
    if keras in ("keras", "tf_keras"):
        if int(sys.modules[keras].__version__.partition(".")[0]) >= 3:
            model.export(folder)
        else:
            model.save(folder, save_format="tf")  # its export() would name inputs and outputs otherwise
        return
    import tensorflow as tf

    if not isinstance(model, tf.Module):
        raise TypeError(f"a {type(model).__name__} is neither a Keras model nor a tf.Module; it cannot be exported")
    tf.saved_model.save(model, folder)


def disable_auto_shard(options):
    """tf.data.Options: every worker reads its whole data set, as that is its own share already."""
    import tensorflow as tf

    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF


def is_gpu_available():
    """Whether TensorFlow sees a GPU."""
    import tensorflow as tf

    return len(tf.config.list_physical_devices("GPU")) > 0
