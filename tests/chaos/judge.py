"""What the log of a disturbed run must show, whatever its end is."""

import re

GONE = r"worker (\d+) \([^)]*pid (\d+)\) (?:was lost|has been silent|has not finished|was started|failed|and others)"
WENT_ON = r"training goes on with \d+ worker\(s\)(?: \(new: ([\d, ]+)\))? from iteration (\d+)"
SHOWN = r"Iteration (\d+)(?: \(| of )"
TEST = r"Iteration (\d+), Testing net|Test net output (#\d+: \S+ = [-+.\dea-z]+(?: \(\* .* loss\))?)$"


def outputs(log):
    """The outputs of tests as (iteration, text)."""
    found, iteration = set(), None
    for at, output in re.findall(TEST, log, re.MULTILINE):
        if at:
            iteration = int(at)
        else:
            found.add((iteration, output))
    return found


def went_back(log):
    """The iterations from which the run went on although a later one had been begun before the loss. That it goes on is
    said a moment later, when later iterations may have been shown.
    """
    wrong, furthest, lost = [], 0, 0
    for gone, _, _, at, shown in re.findall(f"{GONE}|{WENT_ON}|{SHOWN}", log):
        if gone:
            lost = furthest
        elif at and int(at) < lost:
            wrong.append(f"it went on from iteration {at} behind iteration {lost}")
        furthest = max(furthest, int(at or shown or 0))
    return wrong


def survivors(log, workers, hit, killed=()):
    """The workers with a state that the run had at its end. One that was given up counts as lost only if its process
    was hit, so that a run that throws out healthy workers does not pass. One that had finished when it was killed is
    not named as lost.
    """
    states, named = set(range(workers)), {int(pid) for _, pid in re.findall(GONE, log)}
    for gone, pid, new, _ in re.findall(f"{GONE}|{WENT_ON}", log):
        if gone and int(pid) in hit:
            states.discard(int(gone))
        elif new:
            states |= {int(n) for n in new.split(", ")}
    return sorted(states)[len(set(killed) - named) :]


def ended_by_full_disk(log):
    """Whether the run's own error says so, with the file that could not be written."""
    return re.search(r"crema: error: .*cannot write \S+.*No space left on device", log) is not None
