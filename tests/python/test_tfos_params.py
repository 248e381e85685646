"""Params of TFEstimator and TFModel: defaults, setters, saving in a pipeline; Namespace. Without TensorFlow."""

import argparse

import pytest

from spark_session import session  # noqa: F401  fixture

from tensorflowonspark import pipeline
from tensorflowonspark.pipeline import Namespace, TFEstimator, TFModel

# name, X of setX and getX, stages that have it, default, another value
PARAMS = [
    ("input_mapping", "InputMapping", "EM", {}, {"c": "x"}),
    ("output_mapping", "OutputMapping", "M", {}, {"y": "c"}),
    ("cluster_size", "ClusterSize", "E", 1, 3),
    ("num_ps", "NumPS", "E", 0, 1),
    ("driver_ps_nodes", "DriverPSNodes", "E", False, True),
    ("input_mode", "InputMode", "E", 1, 1),
    ("master_node", "MasterNode", "E", "chief", "master"),
    ("protocol", "Protocol", "E", "grpc", "rdma"),
    ("grace_secs", "GraceSecs", "E", 30, 5),
    ("tensorboard", "Tensorboard", "E", False, True),
    ("model_dir", "ModelDir", "EM", None, "/m"),
    ("export_dir", "ExportDir", "EM", None, "/e"),
    ("tfrecord_dir", "TFRecordDir", "E", None, "/t"),
    ("batch_size", "BatchSize", "EM", 100, 7),
    ("epochs", "Epochs", "E", 1, 2),
    ("readers", "Readers", "E", 1, 4),
    ("steps", "Steps", "E", 1000, 10),
    ("signature_def_key", "SignatureDefKey", "M", None, "predict"),
    ("tag_set", "TagSet", "M", None, "serve"),
    # not in the original
    ("feed_timeout", "FeedTimeout", "E", 600, 60),
    ("reservation_timeout", "ReservationTimeout", "E", 600, 90),
    ("log_dir", "LogDir", "E", None, "/logs"),
    ("eval_node", "EvalNode", "E", False, True),
    ("release_port", "ReleasePort", "E", True, False),
    ("shutdown_timeout", "ShutdownTimeout", "E", 259200, 100),
    ("pass_through", "PassThrough", "M", [], ["id", "name"]),
]


def stages():
    return {"E": TFEstimator(train, {"lr": 0.5}), "M": TFModel({"lr": 0.5})}


def train(args, ctx):
    return args.lr


@pytest.mark.parametrize("name, suffix, where, default, other", PARAMS)
def test_every_param_can_be_set(session, name, suffix, where, default, other):
    for letter, stage in stages().items():
        assert stage.hasParam(name) == (letter in where)
        if letter in where:
            assert getattr(stage, f"get{suffix}")() == default
            assert getattr(stage, f"set{suffix}")(other) is stage
            assert getattr(stage, f"get{suffix}")() == other == stage.getOrDefault(name)


def test_the_table_is_complete(session):
    for letter, stage in stages().items():
        assert {p.name for p in stage.params} == {name for name, _, where, *_ in PARAMS if letter in where}


def test_wrong_values(session):
    stage = stages()["E"]
    with pytest.raises(TypeError, match="Could not convert .*c.* to OrderedDict"):
        stage.setInputMapping([("c", "x")])
    with pytest.raises(Exception, match="^InputMode.TENSORFLOW is deprecated$"):
        stage.setInputMode(0)
    with pytest.raises(TypeError):
        stage.setClusterSize("three")


def test_args_and_params_together(session):
    stage = TFEstimator(train, {"lr": 0.5, "batch_size": 9, "log_dir": "mine"}).setEpochs(3)
    merged = stage.merge_args_params()
    assert (merged.lr, merged.epochs, merged.steps) == (0.5, 3, 1000)
    assert merged.batch_size == 100  # as in the original, a param's default replaces an argument
    assert merged.log_dir == "mine" and stage.setLogDir("/tb").merge_args_params().log_dir == "/tb"
    assert vars(stage.args) == {"lr": 0.5, "batch_size": 9, "log_dir": "mine"}


def test_namespace():
    d = {"string": "foo", "integer": 1, "map": {"a": 1}}
    for made in (Namespace(d), Namespace(Namespace(d)), Namespace(argparse.Namespace(**d))):
        assert (made.string, made.integer, made.map, made.argv) == ("foo", 1, {"a": 1}, None)
        assert "string" in made and "extra" not in made and made == Namespace(d) and made != Namespace({})
    words = ["--foo", "1"]
    assert Namespace(words).argv == words == list(Namespace(words)) and Namespace(words) == words
    assert repr(Namespace(words)) == "['--foo', '1']" and repr(Namespace({"b": 1, "a": "x"})) == "Namespace(a='x', b=1)"
    with pytest.raises(Exception, match="^Unsupported Namespace args: 3$"):
        Namespace(3)


def test_yield_batch():
    rows = [(i, bytearray(b"\xff\x00")) for i in range(5)]
    found = list(pipeline.yield_batch(rows, 2, 2))
    assert found == [[[0, 1], [b"\xff\x00"] * 2], [[2, 3], [b"\xff\x00"] * 2], [[4], [b"\xff\x00"]]]
    assert list(pipeline.yield_batch([(1,), (2,), None, (3,)], 5)) == [[[1, 2]]]
    assert list(pipeline.yield_batch([], 5, 3)) == []


def test_saved_and_loaded(session, tmp_path):
    from pyspark.ml import Pipeline, PipelineModel

    for letter, stage in stages().items():
        for name, _, where, _, other in PARAMS:
            if letter in where and name not in ("readers", "tag_set"):  # these stay at their defaults
                stage._set(**{name: other})
        stage.save(f"{tmp_path}/{letter}")
        again = type(stage).load(f"{tmp_path}/{letter}")
        assert again.uid == stage.uid and again.args == stage.args and type(again) is type(stage)
        assert {p.name: v for p, v in again.extractParamMap().items()} == {
            p.name: v for p, v in stage.extractParamMap().items()
        }
        assert {p.name for p in again._paramMap} == {p.name for p in stage._paramMap}
    with pytest.raises(Exception, match="exists"):
        stage.save(f"{tmp_path}/M")
    stage.write().overwrite().save(f"{tmp_path}/M")
    Pipeline(stages=[stages()["E"]]).save(f"{tmp_path}/pipeline")
    loaded = Pipeline.load(f"{tmp_path}/pipeline").getStages()[0]
    assert loaded.train_fn(Namespace({"lr": 3}), None) == 3 and loaded.export_fn is None
    PipelineModel(stages=[TFModel(["--lr", "0.5"]).setExportDir("/e")]).save(f"{tmp_path}/model")
    model = PipelineModel.load(f"{tmp_path}/model").stages[0]
    assert model.getExportDir() == "/e" and model.args.argv == ["--lr", "0.5"]


def test_a_closure_is_saved_with_its_values(session, tmp_path):
    factor = 7
    TFEstimator(lambda args, ctx: args.lr * factor, {"lr": 2}, export_fn=lambda args: "exported").save(f"{tmp_path}/e")
    loaded = TFEstimator.load(f"{tmp_path}/e")
    assert loaded.train_fn(loaded.args, None) == 14 and loaded.export_fn(None) == "exported"


def test_what_cannot_be_saved_or_loaded(session, tmp_path):
    from pyspark.ml.feature import Binarizer

    with pytest.raises(ValueError, match="argument 'opener' of the program is a function, which cannot be saved"):
        TFModel({"opener": train}).save(f"{tmp_path}/bad")
    Binarizer(threshold=1.0, inputCol="a", outputCol="b").save(f"{tmp_path}/binarizer")
    with pytest.raises(ValueError, match="holds a org.apache.spark.ml.feature.Binarizer, which is no TFModel"):
        TFModel.load(f"{tmp_path}/binarizer")


def test_fit_and_transform_check_before_anything_runs(session):
    frame = session.createDataFrame([(1.0, "a")], "x double, when string").selectExpr("x", "current_date() as day")
    with pytest.raises(ValueError, match="input_mapping is empty"):
        stages()["E"].fit(frame)
    with pytest.raises(
        ValueError, match="input_mapping names column 'y', which the data frame does not have; it has x, day"
    ):
        stages()["E"].setInputMapping({"y": "t"}).fit(frame)
    with pytest.raises(AssertionError, match="Export function requires --export_dir to be set"):
        TFEstimator(train, {}, export_fn=train).setInputMapping({"x": "t"}).fit(frame)
    model = stages()["M"].setInputMapping({"x": "t"}).setOutputMapping({"o": "out"})
    with pytest.raises(AssertionError, match="Inferencing requires --export_dir argument"):
        model.transform(frame)
    model.setExportDir("/nowhere")
    for change, words in (
        (lambda m: m.setOutputMapping({}), "output_mapping is empty"),
        (lambda m: m.setInputMapping({}), "input_mapping is empty"),
        (lambda m: m.setInputMapping({"day": "t"}), "column 'day' is date, which no tensor takes"),
        (lambda m: m.setPassThrough(["id"]), "pass_through names column 'id', which the data frame does not have"),
        (lambda m: m.setPassThrough(["*"]).setOutputMapping({"o": "x"}), "two columns 'x'"),
    ):
        with pytest.raises(ValueError, match=words):
            change(model.copy()).transform(frame)
