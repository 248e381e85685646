"""What a TFModel's transform() does on the driver: columns are picked and checked, a task says what types the output
has, and the frame goes through scoring.py in Arrow's batches.
"""

import functools
import json

from . import _frames, scoring, tasks, util

_LEAVES = ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary")


def selected(dataset, inputs, outputs, pass_through):
    """(data frame of the input columns and those that pass through, fields of the latter, Plan.inputs)."""
    from pyspark.sql.types import UserDefinedType

    for mapping, pairs, form in (("input", inputs, "{column: tensor}"), ("output", outputs, "{tensor: column}")):
        if not pairs:
            raise ValueError(f"{mapping}_mapping is empty; set it to {form}")
    names = [column for column, _ in inputs]
    frame = dataset.select(named(dataset, names, "input_mapping"))
    inputs = tuple((c, t, _is_text(field)) for (c, t), field in zip(inputs, frame.schema.fields))
    keep = dataset.columns if list(pass_through) == ["*"] else list(pass_through)
    kept = dataset.select(named(dataset, keep, "pass_through")).schema.fields
    for field in kept:
        if isinstance(field.dataType, UserDefinedType):
            raise ValueError(
                f"column '{field.name}' in pass_through is {field.dataType.simpleString()}, which Spark does not give "
                "to Python in columns; convert it first, as with pyspark.ml.functions.vector_to_array"
            )
    made = [column for _, column in outputs] + keep
    twice = sorted({name for name in made if made.count(name) > 1})
    if twice:
        raise ValueError(
            f"there would be two columns '{twice[0]}'; name it otherwise in output_mapping or pass_through"
        )
    columns = [_numeric(c, f) for c, f in zip(named(dataset, names, ""), frame.schema.fields)]
    columns += named(dataset, keep, "")
    return dataset.select([column.alias(f"c{i}") for i, column in enumerate(columns)]), kept, inputs


def named(dataset, names, param):
    """The columns of these names; `a.b` may be a field of column a."""
    from pyspark.sql import functions

    columns = []
    for name in names:
        if name in dataset.columns:
            columns.append(functions.col("`" + name.replace("`", "``") + "`").alias(name))
        elif "." in name and name.partition(".")[0] in dataset.columns:
            columns.append(functions.col(name).alias(name))
        else:
            raise ValueError(
                f"{param} names column '{name}', which the data frame does not have; it has "
                + ", ".join(dataset.columns)
            )
    return columns


def _leaf(field):
    words = field.dataType.simpleString()
    while words.startswith("array<"):
        words = words[6:-1]
    return words


def _is_text(field):
    return _leaf(field) == "string"


def _numeric(column, field):
    """The column as one that Arrow takes: vectors of Spark ML become arrays."""
    leaf = _leaf(field)
    if leaf == "vector":
        from pyspark.ml.functions import vector_to_array

        return vector_to_array(column)
    if leaf not in _LEAVES:
        raise ValueError(
            f"column '{field.name}' is {field.dataType.simpleString()}, which no tensor takes; cast it to a number, a "
            "string, binary, or an array of them"
        )
    return column


def scored(plan, frame, kept):
    from pyspark.sql.types import StructField, StructType

    types = _output_types(plan, frame)
    fields = [StructField(column, _type(words)) for (_, column), words in zip(plan.outputs, types)]
    return _mapped(frame, plan, scoring.score_arrow, scoring.score_rows, StructType([*kept, *fields]))


def _output_types(plan, frame):
    """Types of the output columns in words: from the signature, by one task; where that leaves a tensor's rank open,
    from the first row.
    """
    each = functools.partial(_describe, plan)
    found = json.loads(tasks.run_tasks(frame.sparkSession, each, 1, arrow=uses_arrow(frame))[0])
    if "rank" in found:
        rows = _mapped(frame.limit(1), plan, scoring.sample_arrow, scoring.sample_rows, "found string").collect()
        if not rows:
            raise ValueError(
                f"the SavedModel does not say what rank tensor '{found['rank']}' has, and there is no row to try"
            )
        found = json.loads(rows[0].found)
    if "error" in found:
        raise ValueError(found["error"])
    return found["types"]


def _describe(plan, number):
    return scoring.describe(plan)


def _mapped(frame, plan, of_batches, of_rows, schema):
    """The frame through of_batches(plan, RecordBatches), or of_rows(plan, Rows) where the driver has no Arrow."""
    if uses_arrow(frame):
        _frames.bound_batches(frame)  # for good: Spark reads it when the result is wanted
        return frame.mapInArrow(functools.partial(of_batches, plan), schema)
    return frame.sparkSession.createDataFrame(frame.rdd.mapPartitions(functools.partial(of_rows, plan)), schema)


def uses_arrow(frame):
    """Whether the rows of this frame can come to Python in Arrow's batches: pandas and pyarrow are on the driver."""
    return util.is_connect(frame.sparkSession) or _frames.has_arrow()


def _type(words):
    from pyspark.sql import types

    if words.startswith("array<"):
        return types.ArrayType(_type(words[6:-1]))
    classes = (types.BooleanType, types.ByteType, types.ShortType, types.IntegerType, types.LongType, types.FloatType)
    return {c().simpleString(): c() for c in (*classes, types.DoubleType, types.BinaryType)}[words]
