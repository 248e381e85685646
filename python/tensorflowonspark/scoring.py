"""A SavedModel in a Python worker of Spark: loaded once, fed by columns, answered in typed columns.

What runs on the driver is pipeline.py. Everything here is called by tasks; TensorFlow is first imported here.
"""

import collections
import dataclasses
import json
import logging

import numpy as np

from . import _models, tensors
from .batches import exact_batches, yield_batch

logger = logging.getLogger(__name__)

LOADED = 2  #: models that a Python worker keeps: what was used longest ago goes first


@dataclasses.dataclass(frozen=True)
class Plan:
    """What the tasks of one transform() do; travels to the executors."""

    export_dir: str
    tags: tuple  # () for what TensorFlow takes by itself
    signature: str  # None for the only one, or serving_default
    inputs: tuple  # (column, tensor, whether the column is a string) in the order of the columns that arrive
    outputs: tuple  # (tensor, column) in the order of the columns that are given back
    batch_size: int
    prepare: object = None  # called once in a Python worker, before TensorFlow is imported
    number: int = 0  # of this transform()


class BadModel(ValueError):
    """A SavedModel that is not as it was asked for; the message lists what there is."""


def meta_graphs(export_dir):
    """The MetaGraphDefs of a SavedModel, read from its file without loading them."""
    from google.protobuf.message import DecodeError
    from tensorflow.core.protobuf import saved_model_pb2

    import tensorflow as tf

    path = f"{export_dir.rstrip('/')}/saved_model.pb"
    if not tf.io.gfile.exists(path):
        raise BadModel(f"there is no SavedModel in {export_dir}: {path} is missing; every executor must reach it")
    with tf.io.gfile.GFile(path, "rb") as file:
        model = saved_model_pb2.SavedModel()
        try:
            model.ParseFromString(file.read())
        except DecodeError:
            raise BadModel(f"{path} is damaged, or no SavedModel: write the model again") from None
    return model.meta_graphs


def _state(export_dir):
    """Changes when another model is written to the same folder. TensorFlow gives times in whole seconds; the
    fingerprint that it writes since 2.11 has a number of its own for every export.
    """
    import tensorflow as tf

    folder = export_dir.rstrip("/")
    files = [f"{folder}/{name}" for name in ("saved_model.pb", "variables/variables.index", "fingerprint.pb")]
    stats = [tf.io.gfile.stat(file) for file in files if tf.io.gfile.exists(file)]
    mark = tf.io.gfile.GFile(files[-1], "rb").read() if tf.io.gfile.exists(files[-1]) else b""
    return tuple((s.mtime_nsec, s.length) for s in stats), mark


_scorers = collections.OrderedDict()  # (export_dir, tags, signature, state of its files) -> Scorer


def scorer(plan):
    """The model of a plan, from memory if this process has it."""
    if not _scorers and plan.prepare:
        plan.prepare()
    try:
        folder = _models.local(plan.export_dir, plan.number)
    except OSError as e:
        raise BadModel(f"the SavedModel in {plan.export_dir} cannot be copied: {e}") from None
    key = (folder, plan.tags, plan.signature, _state(folder))
    if key not in _scorers:
        while len(_scorers) >= LOADED:
            _scorers.popitem(last=False)
        _scorers[key] = Scorer(folder, plan.tags, plan.signature)
    _scorers.move_to_end(key)
    return _scorers[key]


class Scorer:
    """One signature of a SavedModel. takes, gives: {tensor: tf.TensorSpec} of its inputs and outputs."""

    def __init__(self, export_dir, tags, signature):
        import tensorflow as tf

        there = [set(graph.meta_info_def.tags) for graph in meta_graphs(export_dir)]
        known = "; ".join(",".join(sorted(names)) for names in there)
        if tags and set(tags) not in there:
            raise BadModel(
                f"the SavedModel in {export_dir} has no graph with tag_set '{','.join(tags)}'; it has: {known}"
            )
        if not tags and len(there) != 1:
            raise BadModel(f"the SavedModel in {export_dir} has {len(there)} graphs; set tag_set to one of: {known}")
        logger.info("loading the SavedModel in %s", export_dir)
        self.model = tf.saved_model.load(export_dir, tags=list(tags) or None)
        self.function = _signature(self.model, export_dir, signature)
        self.takes = dict(self.function.structured_input_signature[1])
        self.gives = dict(self.function.structured_outputs)
        self.tf = tf

    def check(self, plan):
        """Every tensor that is mapped is one of the signature's, and every input has a column."""
        self._known([tensor for _, tensor, _ in plan.inputs], self.takes, "input_mapping", "inputs", plan)
        self._known([tensor for tensor, _ in plan.outputs], self.gives, "output_mapping", "outputs", plan)
        missing = sorted(set(self.takes) - {_bare(tensor) for _, tensor, _ in plan.inputs})
        if missing:
            raise BadModel(f"no column is mapped to input '{missing[0]}' of the model; {_listed('inputs', self.takes)}")

    def _known(self, names, there, mapping, kind, plan):
        for tensor in names:
            if _bare(tensor) not in there:
                raise BadModel(
                    f"{mapping} names tensor '{tensor}', which the signature in {plan.export_dir} does not have; "
                    f"{_listed(kind, there)}"
                )

    def run(self, plan, columns):
        """columns: numpy arrays in the order of plan.inputs. Gives (tensor's dtype, numpy array) in the order of
        plan.outputs, a row for each row.
        """
        feed = {}
        for (column, tensor, is_text), values in zip(plan.inputs, columns):
            spec = self.takes[_bare(tensor)]
            dtype = np.dtype(object) if spec.dtype == self.tf.string else np.dtype(spec.dtype.as_numpy_dtype)
            shape = spec.shape.as_list() if spec.shape.rank is not None else None
            fit = tensors.fitted(values, column, tensor, dtype, shape, is_text)
            feed[_bare(tensor)] = self.tf.constant(fit, spec.dtype)
        answers = self.function(**feed)
        found = [(answers[_bare(tensor)], column) for tensor, column in plan.outputs]
        sizes = [answer.shape[0] if answer.shape.rank else None for answer, _ in found]
        if any(size != len(columns[0]) for size in sizes):
            raise AssertionError(f"Output array sizes {sizes} must match input size: {len(columns[0])}")
        return [(a.dtype.name, tensors.for_spark(a.numpy(), a.dtype.name)) for a, _ in found]


def _bare(tensor):
    """'x' of 'x' and of 'x:0', its name in a graph."""
    return tensor.removesuffix(":0")


def _listed(kind, specs):
    rows = (f"'{name}' ({spec.dtype.name}, {spec.shape})" for name, spec in sorted(specs.items()))
    return f"its {kind} are {', '.join(rows)}"


def _signature(model, export_dir, name):
    there = model.signatures
    if name is None:
        name = "serving_default" if "serving_default" in there or len(there) != 1 else next(iter(there))
    if name not in there:
        known = ", ".join(sorted(there)) or "none at all"
        raise BadModel(f"the SavedModel in {export_dir} has no signature '{name}'; it has {known}")
    return there[name]


def describe(plan, sample=None):
    """JSON for the driver: {"types": [Spark's type of each output]}, or {"error": sentence}, or {"rank": tensor} when
    a rank is only known from an output. sample: columns of a few rows as numpy arrays, or None.
    """
    try:
        model = scorer(plan)
        model.check(plan)
        found = [(model.gives[_bare(t)].dtype.name, model.gives[_bare(t)].shape.rank) for t, _ in plan.outputs]
        if sample is not None:
            found = [(dtype, values.ndim) for dtype, values in model.run(plan, sample)]
        for (tensor, column), (_, rank) in zip(plan.outputs, found):
            if rank is None:
                return json.dumps({"rank": tensor})
            if rank == 0:
                raise BadModel(
                    f"tensor '{tensor}' for column '{column}' has one value for a whole batch, none for rows"
                )
        types = [tensors.spark_type(c, t, dtype, rank) for (t, c), (dtype, rank) in zip(plan.outputs, found)]
        return json.dumps({"types": types})
    except (BadModel, tensors.BadColumn) as e:
        return json.dumps({"error": str(e)})


def score_arrow(plan, batches):
    """For mapInArrow: RecordBatches of the input columns and, behind them, those that pass through, to RecordBatches
    of the latter and the output columns. One batch of the model at a time is in memory.
    """
    import pyarrow as pa

    count, model, first = len(plan.inputs), None, 0
    for batch in exact_batches(batches, plan.batch_size):
        model = model or scorer(plan)
        columns = [tensors.of_arrow(batch.column(i), plan.inputs[i][0], first) for i in range(count)]
        answers = [tensors.to_arrow(values) for _, values in model.run(plan, columns)]
        names = batch.schema.names[count:] + [column for _, column in plan.outputs]
        yield pa.RecordBatch.from_arrays([*batch.columns[count:], *answers], names)
        first += batch.num_rows


def score_rows(plan, rows):
    """score_arrow for an RDD of Rows, where there is no pyarrow: gives tuples."""
    count, model, first = len(plan.inputs), None, 0
    rows = iter(rows)
    for values in yield_batch(rows, plan.batch_size, None):
        model = model or scorer(plan)
        columns = [tensors.of_rows(values[i], plan.inputs[i][0], first) for i in range(count)]
        yield from zip(*values[count:], *(answer.tolist() for _, answer in model.run(plan, columns)))
        first += len(columns[0])


def sample_arrow(plan, batches):
    """For mapInArrow: describe() by the first rows, as one text."""
    import pyarrow as pa

    for batch in exact_batches(batches, plan.batch_size):
        try:
            columns = [tensors.of_arrow(batch.column(i), plan.inputs[i][0], 0) for i in range(len(plan.inputs))]
            found = describe(plan, columns)
        except tensors.BadColumn as e:
            found = json.dumps({"error": str(e)})
        yield pa.RecordBatch.from_arrays([pa.array([found])], ["found"])
        return


def sample_rows(plan, rows):
    """sample_arrow for an RDD."""
    for values in yield_batch(rows, plan.batch_size, len(plan.inputs)):
        columns = [tensors.of_rows(column, name, 0) for (name, _, _), column in zip(plan.inputs, values)]
        return [(describe(plan, columns),)]
    return []
