"""TFRecords from PySpark: the Hadoop formats as TensorFlowOnSpark calls them, and the data source."""

import pathlib

from spark_session import session  # noqa: F401  fixture

GOLDENS = pathlib.Path(__file__).resolve().parent.parent / "goldens/tfrecords"
INPUT = "org.tensorflow.hadoop.io.TFRecordFileInputFormat"
OUTPUT = "org.tensorflow.hadoop.io.TFRecordFileOutputFormat"
CLASSES = {"keyClass": "org.apache.hadoop.io.BytesWritable", "valueClass": "org.apache.hadoop.io.NullWritable"}


def test_hadoop_formats_as_tensorflowonspark_calls_them(session, tmp_path):
    sc = session.sparkContext
    records = [bytes([i % 256]) * (i % 90) for i in range(2000)]
    rdd = sc.parallelize(records, 2).map(lambda r: (bytearray(r), None))
    rdd.saveAsNewAPIHadoopFile(str(tmp_path / "plain"), OUTPUT, **CLASSES)
    assert sorted(p.name for p in (tmp_path / "plain").glob("part*")) == ["part-r-00000", "part-r-00001"]
    small = {"mapreduce.input.fileinputformat.split.maxsize": "4000"}
    back = sc.newAPIHadoopFile(str(tmp_path / "plain"), INPUT, **CLASSES, conf=small)
    assert back.getNumPartitions() > 20
    assert [(bytes(key), value) for key, value in back.collect()] == [(r, None) for r in records]


def test_the_data_source_reads_what_tensorflow_wrote_and_writes_it_again(session, tmp_path):
    golden = str(GOLDENS / "examples.tfrecord")
    frame = (
        session.read.format("tfrecord").option("floatType", "double").option("binaryFeatures", '["a1"]').load(golden)
    )
    assert frame.dtypes == [
        ("Z", "bigint"),
        ("a", "double"),
        ("a1", "binary"),
        ("a_b", "array<bigint>"),
        ("ab", "array<double>"),
        ("ö", "array<string>"),
    ]
    rows = frame.collect()
    assert rows[0].a1 == bytearray(b"one") and rows[0].a_b == [1, 2, 3] and rows[0]["ö"] == ["größe", ""]
    assert list(rows[2]) == [None] * 6
    frame.coalesce(1).write.format("tfrecord").option("codec", "gzip").save(str(tmp_path / "packed"))
    assert [p.suffixes[-2:] for p in (tmp_path / "packed").glob("part*")] == [[".tfrecord", ".gz"]]
    again = session.read.format("tfrecord").schema(frame.schema).load(str(tmp_path / "packed"))
    assert again.collect() == rows
