"""The short form of chaos.py: a fixed run of seeds, with each net."""

import collections

import pytest
from nets import KINDS

from chaos import Kind, small_disk


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
