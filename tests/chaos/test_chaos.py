"""The short form of chaos.py: a fixed run of seeds, with each net."""

import collections
import re
import time

import clocks
import pytest
from disturbances import JUMPS
from nets import KINDS

from chaos import Kind, run, small_disk
from support import judge


@pytest.mark.parametrize("name", KINDS)
def test_disturbed_runs_have_the_undisturbed_runs_files(records, tmp_path, name):
    with small_disk(tmp_path) as small:
        kind = Kind(tmp_path / "run", records, name, small)
        met = collections.Counter()
        for seed in range(100, 108):
            wrong, _, seen = kind.disturbed(seed)
            assert not wrong, wrong
            met += seen
        print(f"disturbances: {dict(met)}")
        assert len(met) > 3, met


@pytest.mark.parametrize("name", KINDS)
def test_after_the_coordinators_end_workers_end_and_resuming_gives_the_same_model(records, tmp_path, name):
    kind, early = Kind(tmp_path / "run", records, name), 0
    for seed in range(200, 204):
        wrong, ended, _ = kind.disturbed(seed, coordinator=True)
        assert not wrong, wrong
        early += ended
    assert early, "no run ended early: the coordinator was not disturbed"


def test_clocks_that_jump_lose_nobody(records, tmp_path):
    if why := clocks.possible():
        pytest.skip(why)
    kind, jumped = Kind(tmp_path / "run", records, "lenet"), 0

    def disturb(process, workers):
        nonlocal jumped
        for turn in range(2000):  # 60 s
            everybody = [process.pid, *workers()]
            jumped += clocks.jump(everybody[turn % len(everybody)], JUMPS[turn % len(JUMPS)])
            if process.poll() is not None:
                return
            time.sleep(0.03)

    flags = "-workers", "4", "-step_timeout", "2", "-rebalance", "0.2"
    got = run(kind.fresh(), *flags, disturb=disturb)
    assert got.code == 0, got.log[-2000:]
    assert not re.search(judge.GONE, got.log), got.log
    assert (got.files, got.tests, got.left) == (kind.calm.files, kind.calm.tests, [])
    days = set(re.findall(r"(?m)^[IWE](\d{4}) \d\d:", got.log))
    assert jumped > 10 and len(days) > 1, (jumped, days)  # the lines of the log have the time that jumps
