"""Models where TensorFlow has no file system, by Hadoop's client in the executors: viewfs:// stands for HDFS."""

import pathlib
import re

from tensorflow_session import tf
from tensorflow_submit import EXAMPLES, submit  # noqa: F401  fixture

MOUNT = """<configuration><property><name>fs.viewfs.mounttable.test.link./data</name><value>file://%s</value></property>
</configuration>"""


class Triple(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def serve(self, x):
        return {"y": 3 * x}


def test_models_on_a_file_system_of_hadoops(submit, tmp_path):  # noqa: F811
    data, conf = tmp_path / "data", tmp_path / "conf"
    for folder in (data, data / "out", conf):
        folder.mkdir()
    (conf / "core-site.xml").write_text(MOUNT % data)
    model = Triple()
    tf.saved_model.save(model, str(data / "model"), signatures=model.serve)
    job = pathlib.Path(__file__).with_name("hadoop_job.py")
    settings = [f"spark.{who}.extraClassPath={conf}" for who in ("driver", "executor")]
    said = submit(job, "viewfs://test/data", EXAMPLES, conf=settings)
    assert "transformed: True" in said
    assert re.search(r"refused: the SavedModel in viewfs://test/data/nothing cannot be copied: .*No such file", said)
    assert "answered: 400" in said and "predicted: 400" in said
    (copies, executors, unfinished) = map(
        int, re.search(r"copies: (\d+) of executors: (\d+) unfinished: (\d+)", said).groups()
    )
    assert executors <= copies <= 2 * executors and not unfinished  # a folder and its lock
