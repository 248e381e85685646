"""Every line that BVLC Caffe logs while it trains, resumes and scores (tests/goldens/whole_log), compared with ours.
Numbers are compared, except seconds. Intended differences are listed below with their reasons; there may be no
others.
"""

import re
import shutil

import pytest

from conftest import ROOT, crema

GOLDEN = ROOT / "tests/goldens/whole_log"
NUMBER = re.compile(r"(?<![\w.#])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w])")
SPEED = re.compile(r"\([^()]* iter/s, [^()]*s/(\d+) iters\)")

# Lines that only Caffe has: the command line's empty -stage, which it writes into every state, and the Softmax that a
# loss layer creates through the registry.
EMPTY_STAGE, INNER_LAYER = '  stage: ""', "I Creating layer loss"
# It does not find its own snapshots as "latest".
UPGRADE = re.compile(r"[IW] (Attempting to upgrade|Successfully upgraded) batch norm layers using deprecated params.*")
LEVEL = "  level: 0"  # the command line's -level, which ours has in other states

# A BatchNorm's parameters have lr_mult 0, which Caffe's layer sets too late for its net: it computes gradients down to
# layers without parameters to train. Ours does not.
NO_NEED = {
    f"I {layer} does not need backward computation.": f"I {layer} needs backward computation."
    for layer in ("norm", "sum")
}

# Lines that only we have: the processor's features, the memory that a net needs, and warnings about unusual settings.
ONLY_OURS = re.compile(
    r"I Computing with \S+ on \d+ thread\(s\)|I \d+ bytes for all blobs, gradients and parameters|W stepvalue 3 "
    r"follows 3; .*|"
    r"W layer 'state' \(LSTM\): batch 4 goes on with sentences of the batch before, .*"
)


def caffes(name):
    out = []
    for line in (GOLDEN / name).read_text().splitlines():
        inner = line == INNER_LAYER and out[-1].startswith("I loss -> ")
        if not inner and line not in (EMPTY_STAGE, LEVEL) and not UPGRADE.fullmatch(line):
            out.append(line)
    return without_empty(out, "train_state {")


def without_empty(lines, opening):
    """A message with all its fields removed."""
    return [
        line
        for i, line in enumerate(lines)
        if not (line == opening and lines[i + 1] == "}" or line == "}" and lines[i - 1] == opening)
    ]


def ours(*args, cwd):
    done = crema(*args, cwd=cwd)
    assert done.code == 0, done.err
    lines = [re.sub(r"^([IWE])\d{4} \d\d:[^]]*\] ", r"\1 ", line) for line in done.err.splitlines()]
    lines = [NO_NEED.get(line, line) for line in lines]
    return [line for line in lines if not ONLY_OURS.fullmatch(line) and line != LEVEL]


def parts(line):
    line = SPEED.sub(r"(SPEED \1)", line).rstrip()
    return NUMBER.sub("N", line), [float(n) for n in NUMBER.findall(line)]


def compare(want, got):
    for i, (w, g) in enumerate(zip(want, got)):
        (text, numbers), (our_text, our_numbers) = parts(w), parts(g)
        assert our_text == text, f"line {i + 1}: Caffe\n  {w}\nours\n  {g}\nafter\n  " + "\n  ".join(
            got[max(0, i - 4) : i]
        )
        assert our_numbers == pytest.approx(numbers, rel=2e-5, abs=2e-6), f"line {i + 1}: {w} and {g}"
    assert len(got) == len(want), (want[len(got) :], got[len(want) :])


def test_whole_log_is_caffes(tmp_path):
    for name in ("net.prototxt", "solver.prototxt"):
        shutil.copy(GOLDEN / name, tmp_path)
    train = caffes("train.log")
    assert len(train) > 200 and sum("loss = " in line for line in train) > 10, "the golden says something"
    compare(train, ours("train", "-solver", "solver.prototxt", cwd=tmp_path))
    compare(
        caffes("resume.log"),
        ours("train", "-solver", "solver.prototxt", "-snapshot", "run_iter_4.solverstate", cwd=tmp_path),
    )
    compare(
        caffes("test.log"),
        ours("test", "-model", "net.prototxt", "-weights", "run_iter_8.caffemodel", "-iterations", 2, cwd=tmp_path),
    )


def test_several_ranks_test_alike_for_any_number_of_workers(tmp_path):
    """With one rank a test's LSTM continues from batch to batch, as in Caffe; with several ranks any worker may
    compute a batch, and each batch starts from zero.
    """
    for name in ("net.prototxt", "solver.prototxt"):
        shutil.copy(GOLDEN / name, tmp_path)
    tests = [
        [
            line
            for line in ours("train", "-solver", "solver.prototxt", "-ranks", 2, "-workers", workers, cwd=tmp_path)
            if "Test" in line
        ]
        for workers in (1, 2)
    ]
    assert tests[0] == tests[1] and len(tests[0]) == 25
