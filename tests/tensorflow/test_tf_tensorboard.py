"""TensorBoard beside a run: its address answers while the run lasts, and the event files are those that it reads."""

import http.client
import json
import urllib.error
import urllib.request

import pytest
from cluster_programs import all_gone, nodes_running, sc  # noqa: F401  fixture
from tensorflow_session import example, spark, tf  # noqa: F401  fixture
from tensorflow_submit import raw  # noqa: F401  fixture

from conftest import wait_until
from tensorflowonspark import TFCluster

event_accumulator = pytest.importorskip(
    "tensorboard.backend.event_processing.event_accumulator", reason="TensorBoard is not in this Python"
)


def page(url):
    """What it answers; None when nobody does, or not to the end."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.read()
    except (OSError, urllib.error.URLError, http.client.HTTPException):
        return None


def test_the_example_shows_its_loss(sc, raw, tmp_path, monkeypatch):
    program, convert, clusters, start = example("mnist_tensorboard"), example("mnist_data_setup"), [], TFCluster.run

    def answering(*args, **options):
        clusters.append(start(*args, **options))
        url = clusters[0].tensorboard_url()
        wait_until(lambda: page(url), 60, "TensorBoard's page")
        assert b"<title>TensorBoard</title>" in page(url)
        assert json.loads(page(f"{url}/data/environment"))["data_location"] == str(tmp_path / "logs")
        return clusters[0]

    monkeypatch.setattr(TFCluster, "run", answering)
    lines = [convert.csv(digit) + "\n" for digit in convert.digits(raw, "train")[:2000]]
    (tmp_path / "digits.csv").write_text("".join(lines))
    flags = ["--images_labels", f"file:{tmp_path}/digits.csv", "--log_dir", str(tmp_path / "logs")]
    program.run(sc, program.arguments(flags))
    wait_until(lambda: page(clusters[0].tensorboard_url()) is None, 10, "TensorBoard's end")
    assert all_gone(5), nodes_running()
    events = event_accumulator.EventAccumulator(str(tmp_path / "logs/worker-0/train")).Reload()
    losses = [tf.make_ndarray(e.tensor_proto) for e in events.Tensors("batch_loss")]
    assert len(losses) == 6 and losses[-1] < losses[0]  # 60 batches
