"""Log files and levels as with glog, and an error message for flags of glog's that are not supported."""

import os
import re
import socket

import pytest

from conftest import CREMA, crema, solver

NET = """layer { name: 'in' type: 'DummyData' top: 'x' top: 't'
  dummy_data_param { shape { dim: 2 dim: 3 } shape { dim: 2 dim: 1 } data_filler { type: 'gaussian' } } }
layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y'
  inner_product_param { num_output: 1 weight_filler { type: 'xavier' } } }
layer { name: 'loss' type: 'EuclideanLoss' bottom: 'y' bottom: 't' top: 'loss' }"""
HEAD = (
    r"Log file created at: \d{4}/\d\d/\d\d \d\d:\d\d:\d\d\nRunning on machine: \S+\nLog line format: \[IWEF\]mmdd "
    r"hh:mm:ss\.uuuuuu threadid file:line\] msg\n"
)


@pytest.fixture
def run(tmp_path):
    solver(tmp_path, NET, extra="base_lr: 0")  # which is warned of
    (tmp_path / "logs").mkdir()
    return lambda *flags, **env: crema("train", "-solver", "solver.prototxt", *flags, cwd=tmp_path, env=env)


def files(folder):
    return {f.name.split(".log.")[1].split(".")[0]: f for f in (folder / "logs").iterdir() if ".log." in f.name}


def lines(text):
    return [re.sub(r"^(.)\d{4} \S+ +\d+ ", r"\1 ", line) for line in text.splitlines()]


@pytest.mark.parametrize(
    "flags,env", [(["-log_dir", "logs"], {}), (["--log_dir=logs"], {}), ([], {"GLOG_log_dir": "logs"})]
)
def test_log_files_have_glogs_names_heads_and_links(run, tmp_path, flags, env):
    done = run(*flags, **env, USER="somebody")
    assert done.code == 0
    found = files(tmp_path)
    assert sorted(found) == ["INFO", "WARNING"]
    for severity, path in found.items():
        assert re.fullmatch(
            rf"crema\.{re.escape(socket.gethostname())}\.somebody\.log\.{severity}\.\d{{8}}-\d{{6}}\.\d+", path.name
        ), path.name
        assert re.match(HEAD, path.read_text())
        link = tmp_path / f"logs/crema.{severity}"
        assert os.readlink(link) == path.name
    body = {s: re.sub(HEAD, "", p.read_text()) for s, p in found.items()}
    assert body["INFO"] == done.err  # alsologtostderr, as Caffe sets it
    warned = [line for line in body["INFO"].splitlines() if line[0] == "W"]
    assert warned and body["WARNING"].splitlines() == warned and "base_lr is 0" in warned[0]


def test_a_link_gives_the_log_its_name_and_errors_have_a_file(run, tmp_path):
    (tmp_path / "caffe").symlink_to(CREMA)
    done = os.system(f"cd {tmp_path} && ./caffe train -solver nothere.prototxt -log_dir logs 2> err")
    assert done >> 8 == 1
    error = (tmp_path / "logs/caffe.ERROR").read_text()
    assert "cannot open nothere.prototxt" in error and re.search(r"^E\d{4} ", error, re.M)


def test_workers_lines_are_in_the_log_file(run, tmp_path):
    done = run("-log_dir", "logs", "-ranks", 2, "-workers", 2, GLOG_log_dir="elsewhere")
    assert done.code == 0 and sorted(files(tmp_path)) == ["INFO", "WARNING"]
    log = files(tmp_path)["INFO"].read_text()
    assert log.count("Optimization Done.") == 1 and "worker 1 has joined" in log and "Solving" in log
    assert sorted(lines(re.sub(HEAD, "", log))) == sorted(lines(done.err))


def test_levels_and_destinations(run, tmp_path):
    def count(err, letter):
        return len(re.findall(rf"^{letter}\d{{4}} ", err, re.M))

    for flags, env, info, warnings in (
        ((), {}, True, True),
        (["-minloglevel", "1"], {}, False, True),
        ((), {"GLOG_minloglevel": "1"}, False, True),
        (["-minloglevel=3"], {}, False, False),
        ((), {"GLOG_minloglevel": "2"}, False, False),
        (["-minloglevel", "0"], {"GLOG_minloglevel": "2"}, True, True),
        (["-minloglevel", "1", "-ranks", "2", "-workers", "2"], {}, False, True),
    ):
        done = run(*flags, **env)
        assert done.code == 0 and bool(count(done.err, "I")) == info and bool(count(done.err, "W")) == warnings, (
            flags,
            env,
            done.err,
        )
    assert not files(tmp_path)
    quiet = run("-log_dir", "logs", "-noalsologtostderr")
    assert quiet.code == 0 and quiet.err == "" and "Optimization Done." in files(tmp_path)["INFO"].read_text()
    warned = run("-log_dir", "logs", "-alsologtostderr=false", "-stderrthreshold", "1").err
    assert count(warned, "W") and not count(warned, "I")
    for path in (tmp_path / "logs").iterdir():
        path.unlink()
    for flags, env in ((["-log_dir", "logs", "-logtostderr"], {}), (["-log_dir", "logs"], {"GLOG_logtostderr": "1"})):
        assert count(run(*flags, **env).err, "I") and not files(tmp_path)
    plain = run("-nolog_prefix").err
    assert "\nOptimization Done.\n" in plain and not count(plain, "I")


@pytest.mark.parametrize(
    "flags,words",
    [
        (["-log_dir", "nowhere"], "-log_dir: there is no folder nowhere; make it first"),
        (["-minloglevel", "warning"], "-minloglevel must be a number, not 'warning'"),
        (["-logtostderr=perhaps"], "-logtostderr must be true or false, not 'perhaps'"),
    ],
)
def test_what_cannot_be_meant_is_refused(run, flags, words):
    done = run(*flags)
    assert done.code == 2 and words in done.message


def test_what_is_not_done_is_said(run, tmp_path):
    assert "-max_log_size is not done" in run("-max_log_size", "5").err
    done = run(GLOG_log_dir="nowhere")
    assert (
        done.code == 0 and "COULD NOT CREATE LOGFILE 'nowhere/crema." in done.err and "Optimization Done." in done.err
    )


def test_parse_log_reads_such_a_file(run, tmp_path):
    run("-log_dir", "logs")
    done = crema("parse_log", "logs/crema.INFO", "tables", cwd=tmp_path)
    assert done.code == 0
    rows = (tmp_path / "tables/crema.INFO.train").read_text().splitlines()
    assert rows[0] == "NumIters,Seconds,LearningRate,loss" and len(rows) == 3
