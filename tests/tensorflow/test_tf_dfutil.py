"""dfutil on the jar's data source: data frames to TFRecords, which TensorFlow reads, and back."""

import pathlib
import zipfile

import pytest
from tensorflow_session import jar, spark, tf  # noqa: F401  fixture

from tensorflowonspark import dfutil


@pytest.fixture(scope="module", autouse=True)
def source():
    found = jar()
    names = zipfile.ZipFile(found).namelist() if found else []
    if "com/crema/tfrecord/DefaultSource.class" not in names:
        pytest.skip(f"the data source tfrecord is not in {found or 'any jar, as none is built'}")


SCHEMA = "s string, i int, il array<bigint>, f float, fl array<double>, b binary, sl array<string>, flag boolean"
ROWS = [
    ("text", 1, [2, 3, 4], -1.5, [-2.5, -3.25], bytearray(b"\xff\xfe"), ["a", "ü"], True),
    (None, None, [5, 6], None, [0.5, 1.5], None, ["b", "c"], False),
    ("None", -7, [1 << 40, -1], 2.5, [0.0, 1.0], bytearray(b""), ["", "d"], None),
]


def test_round_trip(spark, tmp_path):
    folder = str(tmp_path / "records")
    frame = spark.createDataFrame(ROWS, SCHEMA)
    dfutil.saveAsTFRecords(frame.coalesce(1), folder)
    for sc in (spark.sparkContext, spark):
        back = dfutil.loadTFRecords(sc, folder, binary_features=["b"])
        assert back.schema.simpleString() == (
            "struct<b:binary,f:float,fl:array<float>,flag:bigint,i:bigint,il:array<bigint>,s:string,sl:array<string>>"
        )
        assert back.select(frame.columns).collect() == frame.collect()
        assert dfutil.isLoadedDF(back) and not dfutil.isLoadedDF(back.filter("i > 0"))
    with pytest.raises(Exception, match="exists"):
        dfutil.saveAsTFRecords(frame, folder)


def test_tensorflow_reads_what_we_write(spark, tmp_path):
    frame = spark.createDataFrame(ROWS, SCHEMA)
    dfutil.saveAsTFRecords(frame.coalesce(1), str(tmp_path / "records"))
    files = [str(path) for path in pathlib.Path(tmp_path / "records").glob("part-*")]
    found = [record.numpy() for record in tf.data.TFRecordDataset(files)]
    ours = [bytes(data) for data, _ in dfutil.toTFExample(frame.dtypes)(ROWS_AS_DICTS)]
    assert found == ours  # the jar and Python write the same bytes
    example = tf.train.Example.FromString(found[0])
    assert list(example.features.feature["il"].int64_list.value) == [2, 3, 4]
    assert (
        list(tf.train.Example.FromString(found[1]).features.feature)
        and "s" not in tf.train.Example.FromString(found[1]).features.feature
    )


ROWS_AS_DICTS = [dict(zip((word.split()[0] for word in SCHEMA.split(", ")), row)) for row in ROWS]


def test_we_read_what_tensorflow_writes(spark, tmp_path):
    (tmp_path / "in").mkdir()
    with tf.io.TFRecordWriter(str(tmp_path / "in/part-0")) as out:
        for i in range(100):
            feature = {
                "x": tf.train.Feature(float_list=tf.train.FloatList(value=[i, i / 2])),
                "y": tf.train.Feature(int64_list=tf.train.Int64List(value=[i])),
            }
            out.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    frame = dfutil.loadTFRecords(spark.sparkContext, str(tmp_path / "in"))
    assert [(r.x, r.y) for r in frame.orderBy("y").collect()] == [([i, i / 2], i) for i in range(100)]


def test_an_empty_folder(spark, tmp_path):
    (tmp_path / "none").mkdir()
    frame = dfutil.loadTFRecords(spark, str(tmp_path / "none"))
    assert frame.sparkSession is spark  # not a session made of a session
    assert frame.columns == [] and frame.collect() == []


def test_a_type_that_no_example_holds(spark, tmp_path):
    with pytest.raises(Exception, match="Unsupported dtype: date in column 'd'"):
        dfutil.saveAsTFRecords(spark.sql("select current_date() as d"), str(tmp_path / "no"))
