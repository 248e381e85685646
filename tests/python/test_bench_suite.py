"""What bench/suite says of figures: which answers are the same, what falls short of its aim, which figure is kept."""

import json
import pathlib
import re
import sys
import types

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "bench/suite"), str(ROOT / "bench")]
import aims  # noqa: E402
import answers  # noqa: E402
import link_model  # noqa: E402
import measure  # noqa: E402

pytest.importorskip("matplotlib", reason="the suite draws with matplotlib, which ensure_notebooks installs")
import report  # noqa: E402

NAN = float("nan")
LOSSES = [2.0, 1.9, 1.8, 1.7]


def row(**changed):
    plain = {
        "net": "lenet",
        "part": "train",
        "batch": 64,
        "threads": 2,
        "peer": "caffe",
        "processor": "one",
        "commit": "1234567",
        "day": "2026-01-02",
        "ours_ms": 10,
        "theirs_ms": 45,
        "ours_mib": 30,
        "theirs_mib": 50,
        "ratio": [4.5, 4.4, 4.6],
        "others": 0.01,
        "pairs": 2,
    }
    return {**plain, **changed}


def figures(loss=None, apart=None):
    return types.SimpleNamespace(loss=loss, apart=apart)


@pytest.mark.parametrize(
    "theirs, says",
    [
        (LOSSES, None),
        ([2.0003, 1.9003, 1.8, 1.7], None),  # rounding
        ([2.0, 1.9, 1.8, 1.71], "losses of its steps"),  # a thirtieth of what was learnt is missing
        ([2.0, 1.95, 1.9, 1.85], "losses of its steps"),  # half the learning rate
        ([2.0, 2.0, 2.0, 2.0], "losses of its steps"),
        ([2.0, 1.9, 1.8, NAN], "losses of its steps"),
        ([2.0, 1.9, 1.8], "3 steps"),
    ],
)
def test_steps_that_learn_something_else_are_not_compared(theirs, says):
    said = answers.unlike(LOSSES, theirs, 4)
    assert says in said if says else said is None


def test_steps_that_learn_nothing_prove_nothing():
    assert "nothing was learnt" in answers.unlike([2.0, 2.0, 1.999, 1.998], [2.0] * 4, 4)


@pytest.mark.parametrize("theirs", [figures(loss=2.001), figures(loss=NAN), figures(apart=1e-4), figures(apart=NAN)])
def test_other_answers_are_not_compared(theirs):
    assert answers.wrong(figures(loss=2.0), theirs)
    assert answers.wrong(figures(loss=2.0), figures(loss=2.0002, apart=1e-6)) is None


def test_what_falls_short_is_bold_and_says_its_aim():
    assert report.ratio(row(ratio=[4.6, 4.5, 4.7])) == "4.60 (4.50 to 4.70)"
    assert report.ratio(row()) == "*4.50* (4.40 to 4.60) of 4.5"
    assert report.ratio(row(ratio=[4.49, 4.4, 4.6])) == "**4.49** (4.40 to 4.60) of 4.5"
    assert report.ratio(row(ratio=[2.6, 2.6, 2.6], threads=1, pairs=1)) == "2.60"
    assert report.memory(row()) == "60 %" and report.memory(row(ours_mib=31)) == "**62 %** of 60"
    assert report.memory(row(part="score", ours_mib=16)) == "**32 %** of 30"
    assert report.memory(row(peer="openvino", part="score", ours_mib=60)) == "120 %"
    table = report.table([row(ratio=[4, 4, 4])])
    assert "| lenet 64 | 2 | 10; 30 | 45; **4.00** (4.00 to 4.00) of 4.5; 60 % |" in table


def test_aims_are_of_peers_and_threads():
    assert aims.times(row(threads=1)) == 2.6 and aims.times(row(threads=16)) is None
    assert aims.times(row(peer="torch tuned", net="resnet50")) == 1.2 and aims.times(row(net="resnet50")) is None
    assert aims.times(row(part="score", peer="openvino")) == 1.1 and aims.times(row(part="score")) is None


def test_a_newer_figure_takes_the_place_of_an_older_one(tmp_path):
    kept = tmp_path / "results.json"
    report.merged(kept, [row(ours_ms=1), row(ours_ms=2, processor="another")])
    known = report.merged(kept, [row(ours_ms=3)])
    assert [(r["processor"], r["ours_ms"]) for r in known] == [("another", 2), ("one", 3)]
    assert json.loads(kept.read_text()) == known


def test_rounds_are_medians_of_means_of_a_second():
    first = [500.0] * 2  # not counted
    assert measure.of_rounds(first + [100.0] * 10 + [300.0] * 4 + [200.0] * 5) == 200
    assert measure.of_rounds(first + [250.0, 150.0]) == 200  # less than a round


def test_the_model_of_steps_cuts_and_leaves_gradients_as_training_does():
    """bench/link_model.py says again what these two files decide."""
    step, left = ((ROOT / f"engine/train/{name}.cc").read_text() for name in ("step", "left_gradients"))
    assert re.search(r"kLeast = 1 << (\d+);  // floats", step)[1] == "20" and link_model.PART == 4 << 20
    assert "kFlops = 100e9, kBytes = 10e9 / 8;" in left
    # A product of 100 us beside sums of 125 us is left to the update; one of 200 us is not.
    sums = 125e-6 * 1.25e9
    assert link_model.leaves(sums, 0, 100e-6 * 100e9, 2) and not link_model.leaves(sums, 0, 200e-6 * 100e9, 2)
