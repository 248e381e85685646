"""Every line that BVLC Caffe logs while it trains, goes on and scores (tests/goldens/whole_log), against ours. Numbers are compared, not masked; but
seconds. What differs on purpose is listed below with its reason; nothing else may."""
import re
import shutil

import pytest

from conftest import ROOT, crema

GOLDEN = ROOT / "tests/goldens/whole_log"
NUMBER = re.compile(r"(?<![\w.#])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w])")
SPEED = re.compile(r"\([^()]* iter/s, [^()]*s/(\d+) iters\)")

# Lines that only Caffe has.
ONLY_CAFFE = {
    # The command line's -level and -stage, written into every solver, the empty stage too (docs: safe to fix).
    "  level: 0": "state of the command line", '  stage: ""': "state of the command line",
    # A loss layer makes an inner Softmax through the registry; ours is one layer.
    "I Creating layer loss": "the second of two",
    # Caffe shares weights anew before each test; ours are shared once.
    "I Ignoring source layer size": "before every test",
}
# Lines that only we have: what computes.
ONLY_OURS = re.compile(r"I Computing with \S+ on \d+ thread\(s\)|W stepvalue 3 follows 3; .*")


def caffes(name):
    lines = (GOLDEN / name).read_text().splitlines()
    out = []
    for line in lines:
        if line == "I Creating layer loss" and "I Creating layer loss" in out[-12:]:
            continue
        if line in ONLY_CAFFE and line != "I Creating layer loss":
            continue
        out.append(line)
    return without_empty(out, "train_state {")


def without_empty(lines, opening):
    """A message whose fields were all left out."""
    return [line for i, line in enumerate(lines) if not (line == opening and lines[i + 1] == "}" or line == "}" and lines[i - 1] == opening)]


def ours(*args, cwd):
    done = crema(*args, cwd=cwd)
    assert done.code == 0, done.err
    lines = [re.sub(r"^([IWE])\d{4} \d\d:[^]]*\] ", r"\1 ", line) for line in done.err.splitlines()]
    return [line for line in lines if not ONLY_OURS.fullmatch(line)]


def parts(line):
    line = SPEED.sub(r"(SPEED \1)", line).rstrip()
    return NUMBER.sub("N", line), [float(n) for n in NUMBER.findall(line)]


def compare(want, got):
    for i, (w, g) in enumerate(zip(want, got)):
        (text, numbers), (our_text, our_numbers) = parts(w), parts(g)
        assert our_text == text, f"line {i + 1}: Caffe\n  {w}\nours\n  {g}\nafter\n  " + "\n  ".join(got[max(0, i - 4):i])
        assert our_numbers == pytest.approx(numbers, rel=2e-5, abs=2e-6), f"line {i + 1}: {w} and {g}"
    assert len(got) == len(want), (want[len(got):], got[len(want):])


def test_whole_log_is_caffes(tmp_path):
    for name in ("net.prototxt", "solver.prototxt"):
        shutil.copy(GOLDEN / name, tmp_path)
    train = caffes("train.log")
    assert len(train) > 200 and sum("loss = " in line for line in train) > 10, "the golden says something"
    compare(train, ours("train", "-solver", "solver.prototxt", cwd=tmp_path))
    compare(caffes("resume.log"), ours("train", "-solver", "solver.prototxt", "-snapshot", "run_iter_4.solverstate", cwd=tmp_path))
    compare(caffes("test.log"), ours("test", "-model", "net.prototxt", "-weights", "run_iter_8.caffemodel", "-iterations", 2, cwd=tmp_path))
