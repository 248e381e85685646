"""YARN's cluster mode, where an application whose driver fails is started again, from the beginning: a program that has
failed would be trained a second time. The jar's YarnAttempt reports such an application as finished instead.
"""

import sys

_failures = []  # what programs have failed with
_attempts = []  # YarnAttempt of the jar, when this driver is one


def failed(story):
    """A program has failed: who started the cluster raises this."""
    _failures.append(story)


def watch(sc):
    """From now on a program's error that ends this driver ends the application as well. Does nothing elsewhere than in
    YARN's cluster mode.
    """
    settings = sc.getConf()
    mode = settings.get("spark.master"), settings.get("spark.submit.deployMode", "client")
    if mode != ("yarn", "cluster") or _attempts:
        return
    try:
        attempts = sc._jvm.com.crema.YarnAttempt
        attempt = attempts.of(sc._jsc.sc().conf())
        if not attempt.isDefined():
            return
        attempts.began(sc._jsc.sc())
    except TypeError:  # of py4j, for a class that is not there
        print(
            "crema: when a program fails, YARN starts this application again: give Spark crema's jar with --jars, or "
            "set --conf spark.yarn.maxAppAttempts=1",
            file=sys.stderr,
            flush=True,
        )
        return
    _attempts.append((attempt.get(), sc._jvm))
    before = sys.excepthook

    def hook(kind, error, trace):
        before(kind, error, trace)
        story = _of_program(error)
        if story is not None:
            end(story)

    sys.excepthook = hook


def _of_program(error):
    """The error of a program that an exception stands for, or that it was raised from; None when there is none."""
    seen = 0
    while error is not None and seen < 20:
        story = next((s for s in _failures if s in str(error)), None)
        if story is not None:
            return story
        error, seen = error.__cause__ or error.__context__, seen + 1
    return None


def driver_ends(story):
    """Without a model, which it would again."""
    if _attempts:
        end(story)


def end(story):
    """Reports the application as failed with that error, which YARN does not try again."""
    attempt, jvm = _attempts[0]
    try:
        attempt.ended(jvm.com.crema.WrongInput(story, None))
    except Exception as e:
        print(f"crema: YARN has not been asked to leave this application ended: {e}", file=sys.stderr, flush=True)
