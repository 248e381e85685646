"""What the log of a disturbed run must show, whatever its end is."""

import collections
import re

GONE = r"worker (\d+) \([^)]*pid (\d+)\) (?:was lost|has been silent|has not finished|was started|failed|and others)"
WENT_ON = r"training goes on with (\d+) worker\(s\)(?: \(new: ([\d, ]+)\))? from iteration (\d+)"
# The iteration that is done; the driver counts from 1.
SHOWN = r"Iteration (\d+)(?: \(| of )|training  iteration (\d+)/"
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
    for gone, _, _, _, at, shown, by_driver in re.findall(f"{GONE}|{WENT_ON}|{SHOWN}", log):
        if gone:
            lost = furthest
        elif at and int(at) < lost:
            wrong.append(f"it went on from iteration {at} behind iteration {lost}")
        furthest = max(furthest, int(at or shown or 0), int(by_driver or 1) - 1)
    return wrong


def survivors(log, workers, hit, killed=()):
    """The workers with a state that the run had at its end. One that was given up counts as lost only if its process
    was hit, so that a run that throws out healthy workers does not pass. One that had finished when it was killed is
    not named as lost. That workers go on is said a moment later, when one of them may have been named already: then
    how many go on tells.
    """
    states, lost, named = set(range(workers)), [], {int(pid) for _, pid in re.findall(GONE, log)}
    for gone, pid, count, new, _ in re.findall(f"{GONE}|{WENT_ON}", log):
        if gone and int(pid) in hit:
            states.discard(int(gone))
            lost.append(int(gone))
        elif count:
            states |= {int(n) for n in new.split(", ") if n}
            for one in lost:
                states -= {one} if len(states) > int(count) else set()
    return sorted(states)[len(set(killed) - named) :]


def ended_by_full_disk(log):
    """Whether the run's own error says so, with the file that could not be written."""
    return re.search(r"crema: error: .*cannot write \S+.*No space left on device", log) is not None


def lost_all(code, log):
    """Whether the run ended with the loss of a worker as its error, as it may where `survivors` are none."""
    return code == 1 and re.search(r"crema: error: .*(was lost|silent|has stopped)", log) is not None


def late(log, files, every):
    """Files of snapshots that were due, each `every` iterations, and those that new leaders took instead of them, or
    beside them, whole: {due: {taken, ..}}.
    """
    found = collections.defaultdict(set)
    for _, _, at in re.findall(WENT_ON, log):
        due = int(at) // every * every
        for state in [f for f in files if due and due != int(at) and f.endswith(f"_iter_{at}.solverstate")]:
            net = state.removesuffix(f"_iter_{at}.solverstate")
            if f"{net}_iter_{at}.caffemodel" not in files:
                continue
            for e in ("solverstate", "caffemodel"):
                found[f"{net}_iter_{due}.{e}"].add(f"{net}_iter_{at}.{e}")
    return dict(found)


def taken(late):
    return set().union(*late.values())


def differences(expected, files, late):
    """Of files and their hashes. One that is there is right, even where a late one was taken instead of it."""
    wrong = [f"{f} differs" for f, h in files.items() if expected.get(f, h) != h]
    wrong += [f"{f} is missing" for f in expected if f not in files and f not in late]
    return wrong + [f"{f} should not be there" for f in files if f not in expected and f not in taken(late)]


def leftovers(names, killed):
    """Temporary files. killed: how many executors were; each may have been killed while it published one file."""
    hidden = [n for n in names if re.fullmatch(r"[._].*\.part", n)]
    return [n for n in names if "crema-tmp" in n or "crema-rows" in n] + sorted(hidden)[killed:]
