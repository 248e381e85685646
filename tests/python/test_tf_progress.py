"""What the driver shows of a cluster: who is there and who is not, rows fed and taken and which side waits, the time
left. The clock is set by hand.
"""

import json
import types

import pytest

pytest.importorskip("numpy")
import spark_session  # noqa: E402,F401  puts python/ on the path

from tensorflowonspark import _progress, _wire  # noqa: E402


@pytest.fixture
def clock(monkeypatch):
    now = types.SimpleNamespace(seconds=1000.0)
    monkeypatch.setattr(_progress, "time", types.SimpleNamespace(monotonic=lambda: now.seconds))
    return now


def joined(number, role, have, want):
    job, index = role.split(":")
    meta = {"executor_id": number, "job_name": job, "task_index": int(index)}
    about = _wire.encode("NodeAbout", {"role": role, "meta": json.dumps(meta).encode(), "number": number})
    return {"joined": {"about": about, "have": have, "want": want, "host": "far 10.0.0.7"}}


def fed(member, **numbers):
    return {"note": {"member": member, "text": _wire.encode("NodeNote", {"fed": numbers})}}


def lines(capsys):
    return capsys.readouterr().err.splitlines()


def test_who_is_there_and_who_is_not(clock, capsys):
    progress = _progress.Progress({0: "chief:0", 1: "worker:0", 2: "worker:1"})
    progress.late()
    progress.take(joined(1, "worker:0", 1, 3))
    assert lines(capsys) == ["crema: node 1 (worker:0) is there (1 of 3, host far 10.0.0.7)"]
    clock.seconds += 11
    progress.late()
    progress.late()
    said = "crema: waiting for 2 node(s): chief:0, worker:1; each takes a free task slot of an executor"
    assert lines(capsys) == [said], "not more often than every ten seconds"
    progress.take(joined(0, "chief:0", 2, 3))
    progress.take(joined(2, "worker:1", 3, 3))
    clock.seconds += 11
    progress.late()
    assert len(lines(capsys)) == 2


def test_rows_fed_and_taken_which_side_waits_and_the_time_left(clock, capsys):
    """Two nodes, 10,000 rows in all: after 6 s of the feed 2,000 are taken, so that 24 s are left."""
    progress = _progress.Progress({0: "worker:0", 1: "worker:1"})
    progress.feed(lambda taken: taken / 10_000)
    clock.seconds += 3
    progress.take(fed(0, rows=700, taken=500, bytes=7, idle=0.5, full=1.0))
    assert lines(capsys) == [], "a line every five seconds"
    clock.seconds += 3
    progress.take(fed(1, rows=1800, taken=1500, bytes=7, idle=0.5, full=8.0))
    assert lines(capsys) == [
        "crema: fed 2500 rows, 2000 taken, 333 rows/s; the feed waits for the program 75% of the time, 24 s left"
    ]
    clock.seconds += 6
    progress.take(fed(1, rows=4500, taken=4500, bytes=9, idle=5.3, full=8.0))
    assert lines(capsys) == [
        "crema: fed 5200 rows, 5000 taken, 500 rows/s; the program waits for rows 40% of the time, 12 s left"
    ]
    progress.feed(None)
    clock.seconds += 6
    progress.take(fed(0, rows=5500, taken=5500, bytes=9, idle=0.5, full=1.0))
    assert lines(capsys) == ["crema: fed 10000 rows, 10000 taken, 833 rows/s"], "no side waits, and nothing is left"
    progress.end(None)
    assert lines(capsys) == [], "the last line has said it"


def test_a_share_that_changes_seldom(clock, capsys):
    """Tasks: a quarter is done after 10 s, so that 30 s are left, and 24 s six seconds later."""
    progress, share = _progress.Progress({0: "worker:0"}), [0]
    progress.feed(lambda _: share[0])
    left = []
    for seconds, part in ((10, 0.25), (6, 0.25), (30, 0.25), (5, 0.5)):
        clock.seconds, share[0] = clock.seconds + seconds, part
        progress.take(fed(0, rows=int(clock.seconds), taken=7))
        left.append(lines(capsys)[0].rpartition(", ")[2])
    assert left == ["30 s left", "24 s left", "0 rows/s", "51 s left"], "an estimate that has passed says nothing"


def test_a_program_that_leaves_rows_is_named_once(clock, capsys):
    progress = _progress.Progress({0: "worker:0", 1: "worker:1"})
    progress.take({"joined": {**joined(0, "worker:0", 1, 2)["joined"], "worker": 1}})
    progress.take({"joined": {**joined(1, "worker:1", 2, 2)["joined"], "worker": 0}})
    lines(capsys)
    for rows in (10, 20):
        progress.take(fed(0, rows=rows, taken=5, left=True))
        progress.take(fed(1, rows=rows, taken=rows))
    (line,) = lines(capsys)
    assert line.startswith("crema: the program of node 1 (worker:1) has ended and left rows, and did not call DataFeed")


def test_long_waits_are_minutes(clock, capsys):
    progress = _progress.Progress({0: "worker:0"})
    progress.feed(lambda taken: taken / 10_000)
    clock.seconds += 10
    progress.take(fed(0, rows=100, taken=100))
    assert lines(capsys) == ["crema: fed 100 rows, 100 taken, 10 rows/s, 16 min left"]
    progress.take(fed(0, rows=101, taken=101))
    progress.end(None)
    assert lines(capsys) == ["crema: fed 101 rows, 101 taken"]
    progress.take(fed(0, rows=102, taken=101))
    progress.end("a node failed")
    assert lines(capsys) == [], "what it took last is not known"


def test_a_share_of_tasks_says_how_far_the_first_epoch_is():
    stage = types.SimpleNamespace(numCompletedTasks=30, numTasks=40)
    tracker = types.SimpleNamespace(getActiveStageIds=lambda: [4, 9], getStageInfo={4: stage, 9: None}.get)
    context = types.SimpleNamespace(statusTracker=lambda: tracker)
    assert _progress.share_of_tasks(context, 3) == 0.25
