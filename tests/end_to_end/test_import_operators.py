"""crema import, operator by operator: every variant of tests/support/onnx_variants.py computes what onnxruntime
computes, or is refused by name.
"""

import collections
import pathlib
import re

import numpy as np
import pytest

from conftest import ROOT, crema

onnx = pytest.importorskip("onnx", reason="SKIPPED: onnx is not installed (scripts/lib.sh, ensure_onnxruntime)")
ort = pytest.importorskip(
    "onnxruntime", reason="SKIPPED: onnxruntime is not installed (scripts/lib.sh, ensure_onnxruntime)"
)
import test_onnx  # noqa: E402, F401 (the folder of pycaffe_module)
from pycaffe_module import caffe  # noqa: E402

from support import onnx_variants  # noqa: E402

EQUAL = 1772  # with onnxruntime 1.31
LIMIT = 1e-5
ROUNDED = 2e-3  # where the model rounds to float16
OPERATORS = {
    op
    for f in (ROOT / "engine/exchange").glob("import_*.cc")
    for op in re.findall(r'\{"([A-Z]\w+)", \w+', f.read_text())
}
# Attributes that have no effect in the opsets from 7 on, or that belong to a mode that is refused altogether.
NOTHING = {("Constant", "sparse_value")}


def session(model):
    options = ort.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def expected(case, feed):
    """The outputs by onnxruntime, or None where it does not run the model either."""
    try:
        if case.folded():
            case.joined = session(case.model(alone=True)).run(None, {})[0].shape or (1,)
        feed.update({n: b.values(np.random.default_rng(5)) for n, b in case.blobs().items()})
        return session(case.model()).run(None, feed)
    except Exception:  # exceptions of its own, one kind for each error
        case.joined = case.joined or (2, 3)
        return None


def difference(prefix, case, feed, outputs):
    """The difference to the imported net, relative to the largest value, or to 1."""
    net = caffe.Net(str(prefix) + ".prototxt", caffe.TEST, weights=str(prefix) + ".caffemodel")
    for name, array in feed.items():
        if name in net.blobs:
            net.blobs[name].data[...] = array
    net.forward()
    worst = 0.0
    for info, want in zip(case.model().graph.output, outputs):
        got, want = net.blobs[info.name].data, np.asarray(want, np.float64)
        finite = np.isfinite(want)
        if got.shape != want.shape or (np.isfinite(got) != finite).any():
            return np.inf
        if finite.any():
            worst = max(worst, (np.abs(got - want)[finite]).max() / max(1, np.abs(want[finite]).max()))
    return worst


def judged(case, prefix):
    """ "equal", "refused", "unknown" (onnxruntime does not run it either), or a description of the error."""
    feed = {}
    outputs = expected(case, feed)
    pathlib.Path(f"{prefix}.onnx").write_bytes(case.model().SerializeToString())
    done = crema("import", f"{prefix}.onnx", "-force")
    if done.code:
        reported = done.code in (1, 2) and re.search(r"(node|input|output) '\w+'", done.message)
        return ("refused" if outputs else "unknown") if reported else f"ends with {done.code}: {done.err}"
    if outputs is None:
        return "unknown"
    try:
        found = difference(prefix, case, feed, outputs)
    except Exception as e:  # a net that the engine does not take
        return f"imported, and then {e}"
    rounds = case.op == "Cast" and 10 in (case.attributes["to"], case.model().graph.input[0].type.tensor_type.elem_type)
    return "equal" if found <= (ROUNDED if rounds else LIMIT) else f"differs by {found:.3g}"


def test_every_variant_is_refused_or_equal(tmp_path):
    counts, wrong, byOperator = collections.Counter(), [], collections.defaultdict(collections.Counter)
    for number, case in enumerate(onnx_variants.cases()):
        result = judged(case, tmp_path / "net")
        kind = result if result in ("equal", "refused", "unknown") else "wrong"
        counts[kind] += 1
        byOperator[case.op][kind] += 1
        if kind == "wrong":
            wrong.append(f"{number} {case}: {result}")
    for op, found in sorted(byOperator.items()):
        print(f"  {op}: {found['equal']} equal, {found['refused']} refused")
    print(
        f"import against onnxruntime: {counts['equal']} variants of {len(byOperator)} operators equal, "
        f"{counts['refused']} refused by name, "
        f"{counts['unknown']} that it does not run; {counts['wrong']} wrong"
    )
    assert not wrong, "\n".join(wrong)
    assert counts["equal"] >= EQUAL


def test_the_variants_are_all_there():
    """Every attribute of every operator that is read, in all opsets from 7 on."""
    used = collections.defaultdict(set)
    for case in onnx_variants.cases():
        used[case.op] |= set(case.attributes)
    assert set(used) == OPERATORS, set(used) ^ OPERATORS
    for op in OPERATORS:
        said = {
            a for opset in range(7, 25) if onnx.defs.has(op, opset) for a in onnx.defs.get_schema(op, opset).attributes
        }
        missing = {a for a in said - used[op] if (op, a) not in NOTHING}
        assert not missing, (op, missing)
