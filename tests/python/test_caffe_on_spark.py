"""The package com.yahoo.ml.caffe on a real Spark: CaffeOnSpark's two Python tests, every member once, and error
messages.
"""

import os
import pathlib

import pytest

from spark_session import session, solver_file  # noqa: F401  fixtures

from com.yahoo.ml.caffe import CaffeError
from com.yahoo.ml.caffe.CaffeOnSpark import CaffeOnSpark
from com.yahoo.ml.caffe.Config import Config
from com.yahoo.ml.caffe.DataSource import DataSource


@pytest.fixture
def settings(session, solver_file, tmp_path):
    """The flags as a script finds them in spark.pythonargs."""
    line = (
        f"-conf {solver_file} -model file://{tmp_path}/lenet.model -features accuracy,ip1,ip2 -label label -output "
        f"file://{tmp_path}/out "
        "-devices 1 -outputFormat json -clusterSize 1 -connection ethernet"
    )
    words = line.split()
    return dict(zip(words[::2], words[1::2]))


def test_train_features_test(session, settings, tmp_path):
    cos, cfg = CaffeOnSpark(session), Config(session.sparkContext, settings)
    train, validation = DataSource(session).getSource(cfg, True), DataSource(session).getSource(cfg, False)
    cos.train(train)
    assert (tmp_path / "lenet.model").is_file()
    result = cos.features(validation)
    assert result.columns == ["SampleID", "accuracy", "ip1", "ip2", "label"]
    assert result.count() == 200
    assert result.first()["SampleID"] == "00000000"
    rows = result.collect()
    assert {len(r.ip1) for r in rows} == {500} and {len(r.ip2) for r in rows} == {10}
    means = cos.test(validation)
    assert set(means) == {"accuracy", "loss"}
    # The expected value is counted row by row: labels against the largest of ten scores. (The original test compared a
    # list with a float.)
    right = sum(max(range(10), key=r.ip2.__getitem__) == r.label[0] for r in rows) / len(rows)
    assert means["accuracy"] == [pytest.approx(right, abs=1e-6)]
    assert means["accuracy"][0] > 0.9
    # A frame of the session like any other.
    assert result.filter("label[0] = 3").count() == sum(r.label[0] == 3 for r in rows) > 0


def test_train_with_validation(session, settings):
    cos, cfg = CaffeOnSpark(session.sparkContext), Config(session, settings)
    result = cos.trainWithValidation(
        DataSource(session).getSource(cfg, True), DataSource(session).getSource(cfg, False)
    )
    assert result.columns == ["accuracy", "loss"]
    assert result.count() == 5  # iterations 25, 50, ..., 125; the one after the last step is only shown
    last = result.collect()[-1]
    assert last.accuracy[0] > 0.8 and last.loss[0] < 0.5
    result.createOrReplaceTempView("rounds")
    assert session.sql("select max(accuracy[0]) from rounds").first()[0] >= last.accuracy[0]


VALUES = {
    "protoFile": "x.prototxt",
    "isTraining": True,
    "isTest": True,
    "isFeature": True,
    "label": "mark",
    "modelPath": "m",
    "outputPath": "o",
    "devices": 2,
    "isRddPersistent": True,
    "snapshotStateFile": "s",
    "snapshotModelFile": "w",
    "resize": True,
    "connection": 2,
    "clusterSize": 3,
    "transform_thread_per_device": 2,
    "features": ["a", "b"],
    "outputFormat": "parquet",
    "imageRoot": "i",
    "labelFile": "l",
    "lmdb_partitions": 7,
    "captionFile": "c",
    "captionLength": 21,
    "vocabSize": 8800,
    "imageCaptionDFDir": "d1",
    "vocabDir": "d2",
    "embeddingDFDir": "d3",
}


@pytest.mark.parametrize("name", VALUES)
def test_every_setting_is_set_and_read(session, name):
    cfg = Config(session)
    setattr(cfg, name, VALUES[name])
    assert getattr(cfg, name) == (["a", "b", "label"] if name == "features" else VALUES[name])
    assert name in dir(cfg)


def test_what_follows_from_the_solver(session, settings):
    cfg = Config(session, settings)
    assert (cfg.train_data_layer_id, cfg.test_data_layer_id, cfg.ranks) == (0, 1, 1)
    assert "base_lr: 0.06" in str(cfg.solverParameter) and 'name: "LeNet"' in str(cfg.netParam)
    assert "lenet_memory_solver" in repr(cfg)
    with pytest.raises(AttributeError, match="follows from the solver's file"):
        cfg.netParam = 1


def test_flags_as_dict_line_and_words(session):
    for args in (
        {
            "conf": "s",
            "train": True,
            "resize": None,
            "-persistent": "",
            "test": False,
            "features": ["a", "b"],
            "devices": 2,
        },
        {
            "-conf": "s",
            "-train": "",
            "resize": "True",
            "persistent": "true",
            "test": "False",
            "features": "a,b",
            "devices": "2",
        },
        "-conf s -train -resize -persistent -features a,b -devices 2",
        ["-conf", "s", "-train", "-resize", "-persistent", "-features", "a,b", "-devices", 2],
    ):
        cfg = Config(session, args)
        assert (
            cfg.protoFile,
            cfg.isTraining,
            cfg.resize,
            cfg.isRddPersistent,
            cfg.isTest,
            cfg.features,
            cfg.devices,
        ) == ("s", True, True, True, False, ["a", "b"], 2)


def test_wrong_settings_are_said_in_words(session):
    cfg = Config(session)
    with pytest.raises(AttributeError, match="Config has no attribute 'modelpath'; did you mean 'modelPath'"):
        _ = cfg.modelpath
    with pytest.raises(AttributeError, match="did you mean 'clusterSize'"):
        cfg.clustersize = 3
    with pytest.raises(TypeError, match="Config's devices cannot be 'two': it is a int"):
        cfg.devices = "two"
    with pytest.raises(ValueError, match="-train takes no value, and '-conf' looks like the next flag"):
        Config(session, {"-train": "-conf"})
    with pytest.raises(ValueError, match="-conf needs a value"):
        Config(session, {"conf": None})
    for args, says in (
        ({"modle": "x"}, "there is no flag -modle; did you mean -model?"),
        ({"devices": "many"}, "-devices needs a whole number, not 'many'"),
        ("-conf", "conf"),
    ):
        with pytest.raises(CaffeError) as e:
            Config(session, args)
        assert says in str(e.value) and "\tat " not in str(e.value)
        assert e.value.java_exception.getClass().getName() == "com.crema.WrongArgument"  # an IllegalArgumentException
        assert e.value.__cause__ is None and e.value.__suppress_context__  # no second traceback


def test_errors_of_a_run_are_one_sentence(session, settings, tmp_path):
    cos = CaffeOnSpark(session)
    with pytest.raises(CaffeError) as e:
        cos.test(DataSource(session).getSource(Config(session, settings), False))
    assert str(e.value).startswith(f"there is no model at file://{tmp_path}/lenet.model")
    with pytest.raises(CaffeError) as e:
        DataSource(session).getSource(Config(session, {**settings, "-conf": str(tmp_path / "none.prototxt")}), True)
    assert "none.prototxt" in str(e.value) and len(str(e.value).splitlines()) < 5
    with pytest.raises(CaffeError):
        cos.train(None)


def test_conversions(session):
    from com.yahoo.ml.caffe import RegisterContext
    from com.yahoo.ml.caffe.ConversionUtil import toPython, wrapClass
    from com.yahoo.ml.caffe.ReflectionUtil import getScalaSingleton

    assert RegisterContext.registerContext(session) is session.sparkContext
    RegisterContext.registerSQLContext(session)
    assert RegisterContext.sqlContext is session
    assert wrapClass("java.lang.Integer").parseInt("7") == 7
    with pytest.raises(CaffeError, match="no.such.Class; start it with --jars"):
        wrapClass("no.such.Class")
    schema = getScalaSingleton("com.yahoo.ml.caffe.tools.LMDB2DataFrame").schema()
    assert toPython(schema.fieldNames()) == ["id", "label", "channels", "height", "width", "encoded", "data"]
    option = wrapClass("scala.Option")
    assert toPython(option.apply("x")) == "x" and toPython(option.apply(None)) is None
    assert toPython(session.range(3)._jdf).count() == 3
    assert toPython(wrapClass("scala.Tuple2")("a", 1)) == ("a", 1)
    assert toPython(wrapClass("com.yahoo.ml.caffe.tools.Conversions").sentence2Words("A cat.")) == ["a", "cat"]
    assert toPython(5) == 5


def test_the_jar_is_found_or_looked_for(monkeypatch, tmp_path):
    import crema

    assert pathlib.Path(crema.jar()).is_file()
    monkeypatch.setenv("CREMA_JAR", "/some.jar")
    assert crema.jar() == "/some.jar"
    monkeypatch.delenv("CREMA_JAR")
    monkeypatch.setattr(crema, "__file__", str(tmp_path / "python/crema/__init__.py"))
    with pytest.raises(FileNotFoundError, match="CREMA_JAR"):
        crema.jar()
    assert crema.__version__ in pathlib.Path(os.path.dirname(__file__), "../../spark/pom.xml").read_text()
