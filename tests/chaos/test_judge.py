"""Runs that must not pass: the judge of chaos.py has to see what is wrong with them."""

import pytest

from chaos import Kind, run
from support.judge import differences, ended_by_full_disk, late, leftovers, lost_all, outputs, survivors, went_back

LOST = "W1125 worker {} (ranks 0 to 1, host vm 127.0.0.1, pid {}) was lost in step 7: connection closed. See its log\n"
ON = "I1125 training goes on with 2 worker(s){} from iteration {}, after 0.07 s\n"


def test_a_run_that_begins_anew_went_back():
    log = "Iteration 20 (10 iter/s), loss = 1\n" + LOST.format(0, 70) + ON.format(" (new: 1)", 0)
    assert went_back(log) == ["it went on from iteration 0 behind iteration 20"]
    assert not went_back(log.replace("iteration 0,", "iteration 20,"))
    assert not went_back(LOST.format(0, 70) + "Iteration 20 (10 iter/s), loss = 1\n" + ON.format("", 15))


def test_a_job_on_spark_that_begins_anew_went_back():
    shown = "crema: training  iteration {}/1500  loss 0.4  lr 0.01  800 records/s\n"
    log = shown.format(1) + shown.format(500) + LOST.format(0, 70) + ON.format(" (new: 1)", 400)
    assert went_back(log) == ["it went on from iteration 400 behind iteration 499"]
    assert not went_back(log.replace("iteration 400,", "iteration 499,"))


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


def test_that_workers_go_on_may_be_said_behind_the_loss_of_one():
    on = "I1125 training goes on with {} worker(s){} from iteration 5, after 0.00 s\n"
    log = LOST.format(0, 70) + on.format(3, " (new: 0, 1, 2)") + on.format(2, "")
    assert survivors(log, 3, {70, 71, 72}) == [1, 2]
    assert survivors(log + LOST.format(1, 71) + on.format(1, "") + LOST.format(2, 72), 3, {70, 71, 72}) == []


def test_who_had_finished_when_it_was_killed_is_not_missed():
    log = LOST.format(0, 70)
    assert survivors(log, 2, {70, 71}, {70, 71}) == []
    assert survivors(log, 2, {70, 71}, {70}) == [1]


def test_only_the_loss_of_a_worker_counts_as_the_loss_of_all():
    assert lost_all(1, "crema: error: " + LOST.format(0, 70)[6:])
    assert not lost_all(1, "crema: error: the loss is not finite\n" + LOST.format(0, 70))
    assert not lost_all(0, "crema: error: " + LOST.format(0, 70)[6:])


def test_a_damaged_snapshot_is_not_excused_by_a_late_one():
    due, taken = ([f"n_iter_{i}.{e}" for e in ("solverstate", "caffemodel")] for i in (400, 421))
    expected = dict.fromkeys([*due, "model"], "right")
    files = dict.fromkeys([*taken, "model"], "right")
    log = LOST.format(0, 70) + ON.format("", 421)
    instead = late(log, files, 400)
    assert instead == {d: {t} for d, t in zip(due, taken, strict=True)}
    assert not differences(expected, files, instead)
    assert not differences(expected, files | {due[0]: "right"}, instead)
    assert differences(expected, files | {due[0]: "damaged"}, instead) == [f"{due[0]} differs"]
    assert not late(log, expected, 400) and not late(ON.format("", 400), expected, 400)
    again = [f.replace("421", "423") for f in taken]
    both = late(log + ON.format("", 423), files | dict.fromkeys(again, "right"), 400)
    assert both == {d: {t, a} for d, t, a in zip(due, taken, again, strict=True)}
    assert differences(expected, files, {}) == [
        f"{f} {what}" for what, these in (("is missing", due), ("should not be there", taken)) for f in these
    ]


def test_files_under_temporary_names_are_left():
    part, crc = "_model.0b-1.part", "._model.0b-1.part.crc"
    tidy = ["model", ".model.crc", "n_iter_400.caffemodel", "model.part", "driver.log"]
    assert not leftovers(tidy, 0)
    assert leftovers([*tidy, part, crc, "crema-rows-1", ".crema-tmp-2"], 0) == ["crema-rows-1", ".crema-tmp-2", part]
    assert leftovers([part], 1) == [] and leftovers([part, "_n.0b-2.part"], 1) == ["_n.0b-2.part"]


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
    wrong, *_ = kind.disturbed(8)
    assert f"{file} is missing or differs" in wrong


def test_a_snapshot_beside_a_due_one_must_lead_to_the_model(records, tmp_path):
    kind = Kind(tmp_path / "run", records, "lenet")
    got = run(kind.fresh(), "-workers", "2")
    assert got.code == 0 and not kind.extra(got)
    disk, endings = kind.home.disk, ("solverstate", "caffemodel")
    for e in endings:
        (disk / f"snap_iter_34.{e}").write_bytes((disk / f"snap_iter_30.{e}").read_bytes())
        got.files[f"snap_iter_34.{e}"] = "new"
    assert kind.extra(got) == [f"snap_iter_34.{e} should not be there" for e in endings]
    got.log += ON.format("", 34)
    assert not kind.extra(got)
    state = disk / "snap_iter_34.solverstate"
    state.write_bytes(state.read_bytes()[:-1])
    assert kind.extra(got) == ["from snap_iter_34.solverstate comes another model, or none"]
