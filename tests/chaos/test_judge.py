"""Runs that must not pass: the judge of chaos.py has to see what is wrong with them."""

import pytest
from judge import ended_by_full_disk, outputs, survivors, went_back

from chaos import Kind

LOST = "W1125 worker {} (ranks 0 to 1, host vm 127.0.0.1, pid {}) was lost in step 7: connection closed. See its log\n"
ON = "I1125 training goes on with 2 worker(s){} from iteration {}, after 0.07 s\n"


def test_a_run_that_begins_anew_went_back():
    log = "Iteration 20 (10 iter/s), loss = 1\n" + LOST.format(0, 70) + ON.format(" (new: 1)", 0)
    assert went_back(log) == ["it went on from iteration 0 behind iteration 20"]
    assert not went_back(log.replace("iteration 0,", "iteration 20,"))
    assert not went_back(LOST.format(0, 70) + "Iteration 20 (10 iter/s), loss = 1\n" + ON.format("", 15))


def test_a_run_that_ends_with_the_loss_of_one_of_three_has_survivors():
    assert survivors(LOST.format(2, 72), 3, {72}) == [0, 1]


def test_a_run_that_gives_up_healthy_workers_has_survivors():
    log = LOST.format(0, 70) + LOST.format(1, 71)
    assert survivors(log, 2, {70}) == [1]
    assert survivors(log, 2, {70, 71}) == []


def test_who_has_taken_over_the_state_must_be_lost_as_well():
    log = LOST.format(0, 70) + ON.format(" (new: 0)", 8) + LOST.format(1, 71)
    assert survivors(log, 2, {70, 71}) == [0]
    assert survivors(log + LOST.format(0, 75), 2, {70, 71, 75}) == []


def test_who_had_finished_when_it_was_killed_is_not_missed():
    log = LOST.format(0, 70)
    assert survivors(log, 2, {70, 71}, {70, 71}) == []
    assert survivors(log, 2, {70, 71}, {70}) == [1]


def test_other_outputs_of_a_test_are_seen():
    log = (
        "I1125 Iteration 20, Testing net (#0)\nI1125     Test net output #0: accuracy = 0.5\n"
        "I1125     Test net output #1: loss = 2.25 (* 1 = 2.25 loss)\n"
    )
    assert outputs(log) == {(20, "#0: accuracy = 0.5"), (20, "#1: loss = 2.25 (* 1 = 2.25 loss)")}


def test_the_end_by_a_full_disk_names_the_file():
    error = (
        "crema: error: worker 1 (...) failed: cannot write /disk/snap_iter_30.caffemodel: No space left on device (28)"
    )
    assert ended_by_full_disk(error) and not ended_by_full_disk(error.replace("crema: error", "W1126"))
    assert not ended_by_full_disk("crema: error: worker 1 (...) failed: No space left on device (28)")


@pytest.mark.parametrize("file", ["model", "snap_iter_45.solverstate", "snap_iter_0.caffemodel"])
def test_a_run_with_another_file_than_the_undisturbed_one_is_wrong(records, tmp_path, file):
    kind = Kind(tmp_path / "run", records, "statistics")
    assert kind.disturbed(8)[0] == ""
    kind.calm.files[file] = "another"
    wrong, _ = kind.disturbed(8)
    assert f"{file} is missing or differs" in wrong
