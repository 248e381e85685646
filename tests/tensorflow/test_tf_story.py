"""What users read where TensorFlow cannot open a path: its own exception, and a remedy."""

import pytest
from tensorflow_session import tf

from tensorflowonspark import _story


@pytest.mark.parametrize("scheme", ["hdfs", "viewfs"])
def test_a_path_that_tensorflow_does_not_open(scheme):
    try:
        with tf.io.gfile.GFile(f"{scheme}://host/model/variables", "w") as file:
            file.write("x")
    except tf.errors.UnimplementedError:
        last = _story.of_exception("chief").splitlines()[-1]
    assert last.startswith(f"TensorFlow's wheels open no {scheme}:// paths. Write to a local folder")
    assert "ctx.upload(local, path)" in last and "ctx.local_folder(path)" in last
