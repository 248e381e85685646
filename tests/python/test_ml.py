"""CaffeEstimator and CaffeModel from Python, in a pipeline on a real Spark."""

import pytest

from spark_session import frames, session, solver_file  # noqa: F401  fixtures

from crema.ml import CaffeError, CaffeEstimator, CaffeModel


@pytest.fixture(scope="module")
def rows(session, frames):
    return session.read.parquet(frames["train"]).selectExpr(
        "id", "data as image", "cast(label as double) as label", "cast(id as int) % 5 = 0 as held"
    )


def test_fit_transform_save_load(session, rows, solver_file, tmp_path):
    from pyspark.ml import Pipeline, PipelineModel
    from pyspark.ml.linalg import VectorUDT

    estimator = CaffeEstimator(
        solver=str(solver_file),
        inputCol="image",
        outputBlobs=["ip2"],
        outputCols=["scores"],
        validationIndicatorCol="held",
        maxIter=60,
    )
    assert (
        estimator.getInputCol() == "image" and estimator.setRanks(2).getRanks() == 2 and not estimator.isDefined("seed")
    )
    fitted = Pipeline(stages=[estimator]).fit(rows)
    model = fitted.stages[0]
    assert (
        isinstance(model, CaffeModel)
        and model.validation.columns == ["accuracy", "loss"]
        and model.validation.count() == 2
    )
    out = fitted.transform(rows)
    assert out.columns == ["id", "image", "label", "held", "scores"]
    got = out.select("id", "label", "scores").collect()
    assert [r.id for r in got] == [r.id for r in rows.select("id").collect()] and len(got) == 1003
    right = sum(max(range(10), key=r.scores.__getitem__) == r.label for r in got)
    assert right > 800, right
    fitted.write().overwrite().save(str(tmp_path / "pipeline"))
    loaded = PipelineModel.load(str(tmp_path / "pipeline"))
    assert loaded.transform(rows).select("id", "label", "scores").collect() == got
    vectors = model.copy().setOutputVectors(True)
    assert vectors.getOutputVectors() and not model.getOutputVectors()
    assert [list(r.scores) for r in vectors.transform(rows).select("scores").collect()] == [list(r.scores) for r in got]
    assert isinstance(vectors.transform(rows).schema["scores"].dataType, VectorUDT)
    model.save(str(tmp_path / "model"))
    again = CaffeModel.load(str(tmp_path / "model"))
    assert again.modelBytes == model.modelBytes and again.getOutputCols() == ["scores"]
    assert model.copy().transform(rows).count() == 1003
    estimator.save(str(tmp_path / "estimator"))
    assert CaffeEstimator.load(str(tmp_path / "estimator")).getMaxIter() == 60


def test_what_is_wrong_is_said(rows, solver_file):
    for estimator, frame, words in (
        (CaffeEstimator(solver=str(solver_file), inputCol="pixels"), rows, "there is no column 'pixels'"),
        (
            CaffeEstimator(solver=str(solver_file), inputCol="image"),
            rows.withColumn("label", rows.label + 0.5),
            "is no whole number",
        ),
    ):
        with pytest.raises(CaffeError, match=words) as raised:
            estimator.fit(frame)
        assert (
            "\tat " not in str(raised.value)
            and "Exception" not in str(raised.value)
            and raised.value.java_exception is not None
        )
    with pytest.raises(CaffeError, match="nowhere"):
        CaffeModel.load("/nowhere")
    with pytest.raises(AttributeError, match="has no attribute 'setBatch'; its params are"):
        CaffeEstimator().setBatch(3)
    with pytest.raises(TypeError):
        CaffeEstimator(maxIter="many")
