"""Runs in turn, and what others did on the machine meanwhile."""

import dataclasses
import os
import resource
import statistics
import time

import answers
import contestants
import nets
import state

TICKS = os.sysconf("SC_CLK_TCK")
QUIET = 0.1  # processors that others may use during a run
TRIES = 3


def busy_seconds():
    """Of all processors since the machine's start, without idle and waiting for disks."""
    with open("/proc/stat") as stat:
        fields = [int(x) for x in stat.readline().split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / TICKS


def childrens_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime + own.ru_utime + own.ru_stime


def measured(contestant, case):
    """Figures, and the processors that others used; of several tries the one that was disturbed least."""
    best = None
    for _ in range(TRIES):
        busy, ours, start = busy_seconds(), childrens_seconds(), time.monotonic()
        figures = contestant(case)
        others = busy_seconds() - busy - (childrens_seconds() - ours)
        others = max(0.0, others / (time.monotonic() - start))
        if best is None or others < best[1]:
            best = figures, others
        if others <= QUIET:
            break
    return best


def learns(case, names):
    """Failed where a peer's first steps, whose losses gradients and updates are in, are not ours."""
    case = dataclasses.replace(case, part="learn")
    ours = contestants.crema(case).losses
    for name in names:
        if reason := answers.unlike(ours, contestants.PEERS["train"][name](case).losses, nets.LEARNT_STEPS):
            raise contestants.Failed(f"{name} learns something else: {reason}")


def a_round(names, case, backwards):
    """A run of ours and one of each peer, in this order or the other. Failed where answers are not ours."""
    runs = {"crema": contestants.crema, **{name: contestants.PEERS[case.part][name] for name in names}}
    order = list(runs)[:: -1 if backwards else 1]
    done = {name: measured(runs[name], case) for name in order}
    for name, (theirs, _) in done.items():
        if reason := answers.wrong(done["crema"][0], theirs):
            raise contestants.Failed(f"{name} computes something else: {reason}")
    return done


def compared(case, names, count):
    """Rows of the table: for each peer {peer, ours_ms, theirs_ms, ratio: [median, least, largest], ..}. A pair is a
    run of ours and the run of a peer after it, or, every second time, before it.
    """
    if case.part == "train":
        learns(case, names)
    first, _ = measured(contestants.crema, case)
    case.step_ms = first.ms
    rounds = [a_round(names, case, i % 2 == 1) for i in range(count)]
    for name in names:
        pairs = [(done["crema"], done[name]) for done in rounds]
        ratios = [theirs[0].ms / ours[0].ms for ours, theirs in pairs]
        yield {
            "net": case.net,
            "part": case.part,
            "batch": case.batch,
            "threads": case.threads,
            "peer": name,
            "ours_ms": statistics.median(ours[0].ms for ours, _ in pairs),
            "theirs_ms": statistics.median(theirs[0].ms for _, theirs in pairs),
            "ratio": [statistics.median(ratios), min(ratios), max(ratios)],
            "ours_mib": max(ours[0].peak_mib for ours, _ in pairs),
            "theirs_mib": max(theirs[0].peak_mib for _, theirs in pairs),
            "others": max(max(ours[1], theirs[1]) for ours, theirs in pairs),
            "pairs": count,
            **state.of_code_and_machine(),
        }
