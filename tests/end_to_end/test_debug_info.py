"""debug_info: the lines that BVLC Caffe logs for the same solver (tests/goldens/debug_info, recipe: make), word for
word.
"""

import re
import shutil

from conftest import ROOT, crema

GOLDEN = ROOT / "tests/goldens/debug_info"
LINE = re.compile(r"^([IWE])[^\]]*\] (    \[(?:Forward|Backward|Update)\].*|Iteration \d+, Testing net.*)$", re.M)
NUMBER = re.compile(r"\d+\.\d+")


def run(folder, **fields):
    """Runs the golden's solver with changed fields; returns the lines to compare."""
    text = (GOLDEN / "solver.prototxt").read_text()
    for name, value in fields.items():
        text = re.sub(rf"^{name}: .*\n", "", text, flags=re.M) + f"{name}: {value}\n"
    (folder / "solver.prototxt").write_text(text)
    shutil.copy(GOLDEN / "net.prototxt", folder)
    done = crema("train", "-solver", "solver.prototxt", cwd=folder)
    assert done.code == 0, done.err
    return [f"{level} {text}" for level, text in LINE.findall(done.err)]


def test_caffes_lines(tmp_path):
    """Before the first update lines are equal to the letter; later the sixth digit may differ by one, as Caffe sums
    in float and this engine in double.
    """
    lines, want = run(tmp_path), (GOLDEN / "caffe.txt").read_text().splitlines()
    assert len(lines) == len(want) == 284
    others = [i for i, (a, b) in enumerate(zip(lines, want)) if a != b]
    print(f"debug_info: {len(lines) - len(others)} of {len(lines)} lines are Caffe's to the letter")
    assert len(others) <= 14 and min(others, default=284) > 100, [(lines[i], want[i]) for i in others]
    for i in others:
        assert NUMBER.sub("#", lines[i]) == NUMBER.sub("#", want[i])
        assert all(
            abs(float(x) / float(y) - 1) < 1e-5 for x, y in zip(NUMBER.findall(lines[i]), NUMBER.findall(want[i]))
        ), (lines[i], want[i])


def test_off_unless_asked_for(tmp_path):
    """The solver's debug_info applies to its nets, not the net's own."""
    assert run(tmp_path, debug_info="false") == ["I Iteration 0, Testing net (#0)", "I Iteration 3, Testing net (#0)"]


def test_iterations_that_are_not_displayed_say_nothing(tmp_path):
    lines = run(tmp_path, display=0)
    assert [line for line in lines if "Backward" in line] == [] and sum("[Forward]" in line for line in lines) == 2 * 24


def test_a_net_by_itself_says_its_own(tmp_path):
    """`crema test` has no solver, so the net's debug_info applies."""
    run(tmp_path, snapshot_prefix='"a"', snapshot_after_train="true")
    done = crema("test", "-model", "net.prototxt", "-weights", "a_iter_5.caffemodel", "-iterations", "1", cwd=tmp_path)
    assert done.code == 0, done.err
    lines = [text for _, text in LINE.findall(done.err)]
    assert len(lines) == 24 and lines[0] == "    [Forward] Layer data, top blob data data: 0.25"
    (tmp_path / "net.prototxt").write_text((GOLDEN / "net.prototxt").read_text().replace("debug_info: true", ""))
    done = crema("test", "-model", "net.prototxt", "-weights", "a_iter_5.caffemodel", "-iterations", "1", cwd=tmp_path)
    assert done.code == 0 and not LINE.findall(done.err)


STATISTICS = """layer { name: "d" type: "DummyData" top: "x" top: "t"
  dummy_data_param { shape { dim: 6 dim: 2 } shape { dim: 6 dim: 1 } data_filler { type: "gaussian" } } }
layer { name: "bn" type: "BatchNorm" bottom: "x" top: "n" batch_norm_param { moving_average_fraction: 0.5 } }
layer { name: "ip" type: "InnerProduct" bottom: "n" top: "p" param { lr_mult: 0 }
  inner_product_param { num_output: 1 weight_filler { value: 3 } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "p" bottom: "t" top: "loss" }
"""


def test_running_statistics_are_shown_as_the_pass_leaves_them(tmp_path):
    """As in Caffe, which moves them in the pass itself; here the update does, at the end of the iteration."""
    (tmp_path / "net.prototxt").write_text(STATISTICS)
    (tmp_path / "solver.prototxt").write_text(
        'net: "net.prototxt" base_lr: 1 lr_policy: "fixed" max_iter: 3 iter_size: 2 display: 1 debug_info: true '
        "random_seed: 1 snapshot_after_train: false"
    )
    done = crema("train", "-solver", "solver.prototxt", cwd=tmp_path)
    assert done.code == 0, done.err
    weight = re.findall(r"\[Forward\] Layer bn, param blob 2 data: (\S+)", done.err)
    passes = [sum(0.5**k for k in range(n)) for n in range(1, 8)]  # six, and the display behind them
    assert [float(w) for w in weight] == [float(f"{w:.6g}") for w in passes]
    means, variances = (re.findall(rf"\[Forward\] Layer bn, param blob {i} data: (\S+)", done.err) for i in (0, 1))
    sums = [float(n) for n in re.findall(r"All net params \(data, diff\): L1 norm = \((\S+), ", done.err)]
    bias = [float(b) for b in re.findall(r"\[Forward\] Layer ip, param blob 1 data: (\S+)", done.err)]
    for got, mean, variance, w, b in zip(sums, means, variances, passes, bias):
        assert abs(got - (2 * float(mean) + 2 * float(variance) + w + 6 + b)) < 1e-4
    assert len(sums) == 6
