"""DataFrames as TFRecord files of tf.train.Example, and back.

Files are read and written by the data source `tfrecord` of the jar, which also has more options than the functions
here (schema hints, compression, partitions): spark.read.format("tfrecord"), df.write.format("tfrecord").
"""

import json
import weakref

from . import example as examples

#: Folders from which data frames were loaded, by data frame.
loadedDF = weakref.WeakKeyDictionary()

_SOURCE = "com.crema.tfrecord"
_KINDS = {
    **dict.fromkeys(("float", "double"), examples.FLOAT),
    **dict.fromkeys(("boolean", "tinyint", "smallint", "int", "bigint", "long"), examples.INT64),
    **dict.fromkeys(("string", "binary"), examples.BYTES),
}


def isLoadedDF(df):
    """Whether this very data frame was returned by loadTFRecords; one that was derived from it was not."""
    return df in loadedDF


def saveAsTFRecords(df, output_dir):
    """Writes one Example per row into a new folder. Columns: numbers, booleans, strings, binary, and arrays of them.

    A null becomes no feature at all. float and double are 32 bits wide in the files, whole numbers and booleans 64.
    """
    with _jar_needed():
        df.write.format(_SOURCE).save(output_dir)


def loadTFRecords(sc, input_dir, binary_features=[]):  # noqa: B006  the signature is TensorFlowOnSpark's
    """A data frame of the Examples in a folder's TFRecord files, columns by name.

    sc: SparkContext or session. Types are those of the first 1000 records: bigint, float, string, or binary for
    features named in binary_features; an array where a record has several values. A missing feature is null. An empty
    folder gives a frame without columns.
    """
    options = {"binaryFeatures": json.dumps(list(binary_features))} if binary_features else {}
    with _jar_needed():
        df = _session(sc).read.format(_SOURCE).options(**options).load(input_dir)
    loadedDF[df] = input_dir
    return df


def _session(sc):
    from pyspark.sql import SparkSession

    return sc if hasattr(sc, "read") else SparkSession(sc)


class _jar_needed:
    """Turns Spark's error about an unknown data source into what is to be done."""

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if error is not None and f"source: {_SOURCE}" in str(error):
            raise RuntimeError(
                "Spark does not know the data source of TFRecords; start it with --jars <crema jar>, or with "
                "spark.jars set before the session is made (crema.jar() is its path)"
            ) from None
        return False


def toTFExample(dtypes):
    """A function for mapPartitions: rows to (serialized Example, None), as TFRecordFileOutputFormat takes them.

    dtypes: DataFrame.dtypes, [(column, type)]; a type that an Example cannot hold is an Exception at once. The values
    of the columns are converted as saveAsTFRecords does.
    """
    columns = [(name, dtype, _kind(name, dtype)) for name, dtype in dtypes]

    def convert(rows):
        for row in rows:
            features = {
                name: (kind, _values(name, dtype, row[name])) for name, dtype, kind in columns if row[name] is not None
            }
            yield bytearray(examples.encode(features)), None

    return convert


def _kind(name, dtype):
    inner = dtype[6:-1] if dtype.startswith("array<") else dtype
    if inner not in _KINDS:
        raise Exception(
            f"Unsupported dtype: {dtype} in column '{name}'; an Example holds numbers, booleans, strings, binary and "
            "arrays of them: cast or drop the column"
        )
    return _KINDS[inner]


def _values(name, dtype, value):
    values = value if dtype.startswith("array<") else [value]
    if any(v is None for v in values):
        raise ValueError(f"column '{name}' has a null inside an array, which an Example cannot hold; remove it first")
    return [v.encode() for v in values] if dtype in ("string", "array<string>") else values


def infer_schema(example, binary_features=[]):  # noqa: B006  the signature is TensorFlowOnSpark's
    """The schema (StructType) that one Example has: features by name, all nullable; several values are an array.

    example: a tf.train.Example, or its bytes. A feature without values has the type of its list.
    """
    from pyspark.sql.types import ArrayType, BinaryType, FloatType, LongType, StringType, StructField, StructType

    types = {examples.INT64: LongType(), examples.FLOAT: FloatType()}
    fields = []
    serialized = example.SerializeToString() if hasattr(example, "SerializeToString") else example
    for name, (kind, values) in sorted(examples.decode(serialized).items()):
        one = BinaryType() if name in binary_features else types.get(kind, StringType())
        fields.append(StructField(name, ArrayType(one) if len(values) > 1 else one, True))
    return StructType(fields)


def fromTFExample(iter, binary_features=[]):  # noqa: B006  the signature is TensorFlowOnSpark's
    """For mapPartitions: (serialized Example, anything) to Rows, columns by name.

    One value is a scalar, several are a list, none is None, as is a feature that only other records of the partition
    have. Bytes are text unless their feature is named in binary_features.
    """
    from pyspark.sql import Row

    records = [
        {name: _cell(name, kind, values, name in binary_features) for name, (kind, values) in features.items()}
        for features in (examples.decode(record[0]) for record in iter)
    ]
    names = sorted({name for record in records for name in record})
    return [Row(**{name: record.get(name) for name in names}) for record in records]


def _cell(name, kind, values, binary):
    if kind == examples.BYTES:
        try:
            values = [bytearray(v) if binary else v.decode() for v in values]
        except UnicodeDecodeError as e:
            raise ValueError(f"feature '{name}' is no UTF-8 text ({e}); name it in binary_features") from None
    return list(values) if len(values) > 1 else values[0] if values else None
