"""TFCluster on YARN's nodes, where nothing is installed: the jar brings the executable and a zip the Python package, or
an archive both; data stand on HDFS.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import venv

import pytest

from conftest import LONG_RUN, ROOT, write_some_digits
from spark_jobs import JAR, SPARK
from test_daemons import output_and_logs
from test_yarn_attempts import application

ANSWERED = 200


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder outside the checkout with what a user has: the jar, the zip, programs."""
    folder = tmp_path_factory.mktemp("home")
    package = folder / "tensorflowonspark.zip"
    subprocess.run([sys.executable, ROOT / "scripts/python_zip", package], check=True, timeout=60)
    shutil.copy(JAR, folder / "crema.jar")
    for job in ("feed_job.py", "fail_job.py"):
        shutil.copy(ROOT / "tests/spark" / job, folder)
    for program in (ROOT / "examples/tensorflow").glob("*.py"):
        shutil.copy(program, folder)
    return folder


@pytest.fixture(scope="module")
def archive(home):
    """Arguments for an environment that is sent as one file: a Python with the package, the executable and numpy."""
    numpy = pytest.importorskip("numpy")
    venv.create(home / "env", symlinks=False)
    packages = next((home / "env/lib").glob("python*")) / "site-packages"
    installed = pathlib.Path(numpy.__file__).parents[1]
    shutil.unpack_archive(home / "tensorflowonspark.zip", packages)
    for folder in installed.glob("numpy*"):
        shutil.copytree(folder, packages / folder.name)
    shutil.copy(ROOT / "build/release/cli/crema", home / "env/bin")
    with tarfile.open(home / "env.tar.gz", "w:gz", compresslevel=1) as tar:
        tar.add(home / "env", ".")
    return ["--archives", "env.tar.gz#env"]


ZIP = ("--jars", "crema.jar", "--py-files", "tensorflowonspark.zip")


def submitted(bed, folder, master, *program, conf=(), package=ZIP):
    """spark-submit as docs/tensorflow.md says it, running."""
    environment = {k: v for k, v in bed.environment("hdfs").items() if k not in ("CREMA_EXECUTABLE", "PYTHONPATH")}
    command = [SPARK / "bin/spark-submit", *master, *package]
    for setting in ("spark.executor.instances=2", *conf):
        command += ["--conf", setting]
    return subprocess.Popen(
        [*command, *program], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def expect_end(job, bed):
    """Waits for its end, which must be a good one; what it said."""
    try:
        out, err = job.communicate(timeout=240)
    finally:
        job.kill()
    done = subprocess.CompletedProcess(job.args, job.returncode, out, err)
    assert done.returncode == 0, output_and_logs(done, bed)
    return output_and_logs(done, bed)


def on_yarn(mode):
    return ["--master", "yarn", "--deploy-mode", mode]


def expect_answers(rows, bed, place):
    """All rows, in their order, from two nodes whose code came with the job: the package at `place`."""
    assert [int(r[0]) for r in rows] == [i * i for i in range(ANSWERED)]
    nodes = {tuple(r[1:]) for r in rows}
    assert {(n[0], n[1]) for n in nodes} == {("0", "chief"), ("1", "worker")}
    for _, _, package, executable, path in nodes:
        assert re.fullmatch(rf"{place}/tensorflowonspark/__init__.py", package), package
        assert "crema-executable-" in executable and str(ROOT) not in executable
        assert path == f"{bed.url('hdfs')}/user/{bed.environment('hdfs')['HADOOP_USER_NAME']}/some"


def test_nodes_on_yarn_without_installation_in_both_modes(hadoop, home, archive):
    (home / "numbers").write_text("".join(f"{i}\n" for i in range(ANSWERED)))
    place = f"{hadoop.url('hdfs')}/tensorflow"
    hadoop.fs("hdfs", "-mkdir", "-p", place)
    hadoop.fs("hdfs", "-put", home / "numbers", place)
    brought = "tensorflowonspark.zip"
    jobs = {
        "cluster": ("cluster", sys.executable, ZIP, brought),
        "client": ("client", sys.executable, ZIP, brought),
        "archive": ("cluster", "./env/bin/python", archive, "env/lib/python[0-9.]*/site-packages"),
    }
    if not LONG_RUN and not list((SPARK / "jars").glob("spark-core_*-3.5.*")):
        jobs = {"cluster": jobs["cluster"]}
        print("SKIPPED PART: on the other line of Spark one job of three; CREMA_LONG=1 runs all", flush=True)
    running = {}
    for name, (mode, python, package, _) in jobs.items():
        program = ("feed_job.py", f"{place}/numbers", f"{place}/{name}")
        conf = [f"spark.pyspark.python={python}"]
        running[name] = submitted(hadoop, home, on_yarn(mode), *program, conf=conf, package=package)
    for name, job in running.items():
        expect_end(job, hadoop)
        rows = hadoop.fs("hdfs", "-cat", f"{place}/{name}/part-*").splitlines()
        expect_answers([row.split(" ") for row in rows], hadoop, jobs[name][-1])


def test_a_program_that_fails_is_not_trained_again(hadoop, home):
    """YARN would start the whole application once more."""
    conf = [f"spark.pyspark.python={sys.executable}"]
    job = submitted(hadoop, home, on_yarn("cluster"), "fail_job.py", conf=conf)
    try:
        _, err = job.communicate(timeout=240)
    finally:
        job.kill()
    name, diagnostics, attempts = application(hadoop, err)
    assert job.returncode == 1 and attempts == 1, (attempts, err[-3000:])
    assert diagnostics.startswith("crema: error: node ") and "ValueError: the model exploded" in diagnostics, (
        diagnostics
    )
    assert f"yarn logs -applicationId {name}" in diagnostics


def test_tfrecords_on_hdfs_train_a_model_of_keras_3_on_yarn(hadoop, home):
    """TensorFlow reads no hdfs://: nodes copy their shares, and one the model, with Hadoop's client."""
    place, python = f"{hadoop.url('hdfs')}/mnist", ROOT / "build/tensorflow/bin/python"
    if not python.exists():
        pytest.skip("there is no Python with TensorFlow: ./runtests makes build/tensorflow")
    raw = write_some_digits(home / "raw", 12000, 1000)
    convert = ("mnist_data_setup.py", "--raw", raw, "--output", place, "--format", "tfr")
    expect_end(submitted(hadoop, home, ["--master", "local[2]"], *convert, "--num_partitions", "5"), hadoop)
    conf = [f"spark.pyspark.python={python}", "spark.executor.memoryOverhead=2g"]
    conf += ["spark.executorEnv.CUDA_VISIBLE_DEVICES=", "spark.executorEnv.TF_CPP_MIN_LOG_LEVEL=2"]
    train = ("keras_tfrecords.py", "--records", f"{place}/train", "--model", f"{place}/model.keras")
    said = expect_end(submitted(hadoop, home, on_yarn("cluster"), *train, conf=conf), hadoop)
    hadoop.fs("hdfs", "-get", f"{place}/model.keras", home)
    check = (
        "import sys, numpy as np, keras; x, y = (np.fromfile(f'{sys.argv[1]}/t10k-{n}-ubyte', np.uint8, offset=o) "
        "for n, o in (('images-idx3', 16), ('labels-idx1', 8))); model = keras.models.load_model(sys.argv[2]); "
        "print(keras.__version__, np.mean(np.argmax(model.predict(x.reshape(-1, 784), verbose=0), 1) == y))"
    )
    command = [python, "-c", check, raw, home / "model.keras"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    version, accuracy = done.stdout.split()
    assert version.startswith("3.") and float(accuracy) >= 0.85, said[-3000:]
    logs = hadoop.container_logs(re.search(r"application_\d+_\d+", said).group()).values()
    shares = [found for log in logs for found in re.findall(r"step 0, loss (\S+), (\d) file", log)]
    assert sorted(files for _, files in shares) == ["2", "3"]
    assert shares[0][0] == shares[1][0]  # the sum over both
