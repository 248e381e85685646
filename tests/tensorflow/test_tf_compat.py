"""compat: models of Keras 3, of tf_keras and bare tf.Modules become SavedModels that TFModel scores."""

import tempfile

import numpy as np
import pytest
from tensorflow_session import spark, tf  # noqa: F401  fixture

from tensorflowonspark import compat
from tensorflowonspark.pipeline import TFModel

X = np.random.default_rng(3).random((40, 2), np.float32)


def trained(keras):
    model = keras.Sequential([keras.layers.InputLayer(shape=[2]), keras.layers.Dense(3)])
    return fitted(model, keras)


def fitted(model, keras):
    model.compile(optimizer=keras.optimizers.SGD(0.1), loss="mse")
    model.fit(X, X @ np.ones((2, 3), np.float32), epochs=2, verbose=0)
    return model


def keras3():
    import keras

    return trained(keras)


def keras2():
    import tf_keras as keras

    layers = [keras.layers.Dense(3, input_shape=[2])]
    return fitted(keras.Sequential(layers), keras)


class Bare(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = tf.Variable(np.arange(6, dtype=np.float32).reshape(2, 3))

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, "x")])
    def __call__(self, x):
        return {"y": x @ self.w}

    def predict(self, x, verbose=0):
        return x @ self.w.numpy()


@pytest.mark.parametrize("make", [keras3, keras2, Bare])
def test_export_and_score(spark, tmp_path, make):
    model, folder = make(), str(tmp_path / "export")
    compat.export_saved_model(model, folder, is_chief=True)
    signature = tf.saved_model.load(folder).signatures["serving_default"]
    ((tensor, _),) = signature.structured_input_signature[1].items()
    ((output, _),) = signature.structured_outputs.items()
    stage = TFModel({}).setExportDir(folder).setTagSet("serve").setInputMapping({"x": tensor})
    frame = spark.createDataFrame([(row.tolist(),) for row in X], "x array<float>")
    rows = stage.setOutputMapping({output: "y"}).transform(frame).collect()
    np.testing.assert_allclose([r.y for r in rows], model.predict(X, verbose=0), rtol=1e-5)


def test_keras_2_keeps_its_names(tmp_path):
    """The original's programs map columns to these."""
    import tf_keras as keras

    model = keras.Sequential([keras.layers.Dense(1, input_shape=[2], name="dense")])
    compat.export_saved_model(model, str(tmp_path / "m"), True)
    signature = tf.saved_model.load(str(tmp_path / "m")).signatures["serving_default"]
    assert list(signature.structured_input_signature[1]) == ["dense_input"]
    assert list(signature.structured_outputs) == ["dense"]


@pytest.mark.parametrize("make", [keras3, keras2])
def test_a_worker_leaves_nothing(tmp_path, monkeypatch, make):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tmp").mkdir()
    compat.export_saved_model(make(), str(tmp_path / "export"))
    assert [p.name for p in tmp_path.rglob("*")] == ["tmp"]


def test_what_is_no_model(tmp_path):
    with pytest.raises(TypeError, match="a list is neither a Keras model nor a tf.Module"):
        compat.export_saved_model([1], str(tmp_path), True)


def test_options_and_gpus():
    options = tf.data.Options()
    compat.disable_auto_shard(options)
    off = tf.data.experimental.AutoShardPolicy.OFF
    assert options.experimental_distribute.auto_shard_policy == off
    assert compat.is_gpu_available() is False  # tensorflow_session hides them
