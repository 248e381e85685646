"""Which errors end an application of YARN's cluster mode for good, with objects in the places of Spark and its JVM."""

import sys
import types

import pytest

import spark_session  # noqa: F401  puts python/ on the path

from tensorflowonspark import _yarn


class Attempt:
    def __init__(self):
        self.ended_with, self.context = [], None

    def isDefined(self):
        return True

    def get(self):
        return self

    def of(self, settings):
        return self

    def began(self, context):
        self.context = context

    def ended(self, error):
        self.ended_with.append(error)


@pytest.fixture
def attempt(monkeypatch):
    monkeypatch.setattr(_yarn, "_failures", [])
    monkeypatch.setattr(_yarn, "_attempts", [])
    monkeypatch.setattr(sys, "excepthook", lambda *about: None)
    return Attempt()


def context(attempt, **settings):
    crema = types.SimpleNamespace(YarnAttempt=attempt, WrongInput=lambda text, cause: text)
    jvm = types.SimpleNamespace(com=types.SimpleNamespace(crema=crema))
    scala = types.SimpleNamespace(conf=lambda: None)
    settings = {"spark.master": "yarn", "spark.submit.deployMode": "cluster", **settings}
    return types.SimpleNamespace(getConf=lambda: settings, _jvm=jvm, _jsc=types.SimpleNamespace(sc=lambda: scala))


def uncaught(error):
    sys.excepthook(type(error), error, None)


def test_the_error_of_a_program_ends_the_application(attempt):
    _yarn.watch(context(attempt))
    _yarn.watch(context(attempt))
    uncaught(ValueError("of the driver's own"))
    _yarn.failed("node 0 failed: wrong")
    uncaught(OSError("a lost node"))
    assert attempt.ended_with == [] and attempt.context is not None, "YARN may try these again"
    try:
        try:
            raise Exception("node 0 failed: wrong")
        except Exception as e:
            raise RuntimeError("training has failed") from e
    except RuntimeError as e:
        uncaught(e)
    assert attempt.ended_with == ["node 0 failed: wrong"], "once, with the program's error"


@pytest.mark.parametrize("settings", [{"spark.master": "local[2]"}, {"spark.submit.deployMode": "client"}])
def test_elsewhere_nothing_is_done(attempt, settings):
    before = sys.excepthook
    _yarn.watch(context(attempt, **settings))
    assert sys.excepthook is before and attempt.context is None


def test_without_the_jar_a_line_says_what_to_set(attempt, capsys):
    class NoClass:
        def of(self, settings):
            raise TypeError("'JavaPackage' object is not callable")

    _yarn.watch(context(NoClass()))
    assert "--conf spark.yarn.maxAppAttempts=1" in capsys.readouterr().err
