"""The test bed itself, on real processes: no process survives, no other process is touched, an error shows the end
of a log.
"""

import os
import signal
import subprocess
import sys

import pytest

from conftest import running, wait_until
from testbed.bed import Bed
from testbed.processes import DaemonFailed, Processes, start_time


def test_what_a_daemon_leaves_in_a_session_of_its_own_is_found_and_ended(tmp_path):
    all_of_them = Processes(tmp_path)
    all_of_them.start(
        "parent", ["bash", "-c", "setsid sleep 300 & trap '' TERM; while :; do sleep 1; done"], os.environ
    )
    wait_until(lambda: len(all_of_them.marked()) >= 3, 10, "the parent, its sleep and the one of a session of its own")
    before = all_of_them.marked()
    assert all_of_them.stop(grace=0.3)
    assert not [p for p in before if running(p)] and not all_of_them.names()


def test_a_process_that_took_over_a_recorded_pid_is_left_alone(tmp_path):
    other = subprocess.Popen(["sleep", "60"])
    try:
        mine = Processes(tmp_path)
        mine.pids.mkdir()
        (mine.pids / "namenode").write_text(f"{other.pid} {start_time(other.pid) - 1}\n")
        assert mine.pid("namenode") is None
        assert mine.stop() and running(other.pid)
    finally:
        other.kill()
        other.wait()


def test_a_daemon_that_ends_early_is_named_with_the_end_of_its_log(tmp_path):
    mine = Processes(tmp_path)
    mine.start("brief", ["bash", "-c", "echo first words; echo port taken >&2; exit 3"], os.environ)
    with pytest.raises(DaemonFailed, match=r"brief ended before two nodes; the end of .*\n(.|\n)*port taken"):
        mine.wait(["brief"], lambda: False, 10, "two nodes")
    mine.start("idle", ["sleep", "60"], os.environ)
    with pytest.raises(DaemonFailed, match="waited 0.5 s for two nodes"):
        mine.wait(["idle"], lambda: False, 0.5, "two nodes")
    assert mine.stop()


def test_a_failing_start_ends_what_it_started_and_nothing_else(tmp_path):
    bed = Bed(tmp_path / "bed", tmp_path / "cache", tmp_path)
    bed.processes.start("earlier", ["sleep", "60"], os.environ)
    earlier = bed.processes.pid("earlier")

    def fails():
        bed.processes.start("later", ["sleep", "60"], os.environ)
        raise DaemonFailed("no")

    bed._up_s3 = fails
    try:
        with pytest.raises(DaemonFailed):
            bed.up("s3")
        assert bed.status() == {"earlier": earlier} and bed.processes.marked() == [earlier]
    finally:
        assert bed.down()
    with pytest.raises(DaemonFailed):
        bed.up("s3")
    assert not bed.status() and not bed.processes.marked()


def test_the_guard_ends_the_daemons_of_a_session_that_was_killed(tmp_path):
    session = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"""
import subprocess, sys, time, os
from testbed.bed import Bed
from testbed.processes import Processes
command = [sys.executable, "-m", "testbed", "guard", "--dir", {str(tmp_path)!r}]
guard = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
Processes({str(tmp_path)!r}).start("idle", ["sleep", "300"], os.environ)
time.sleep(300)
""",
        ],
        cwd=os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
    )
    mine = Processes(tmp_path)
    try:
        wait_until(lambda: mine.pid("idle"), 10, "the daemon")
        idle = mine.pid("idle")
    finally:
        session.send_signal(signal.SIGKILL)
        session.wait(10)
    wait_until(lambda: not running(idle), 15, "the end of the daemon")
