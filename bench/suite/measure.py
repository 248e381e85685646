"""What a contestant in Python says of itself: one line of JSON with milliseconds and memory."""

import json
import re
import statistics
import time

SECONDS, ROUNDS = 1.0, 5


def peak_mib():
    """This process's largest resident memory; getrusage would count what the process was before exec, too."""
    with open("/proc/self/status") as status:
        return int(re.search(r"VmHWM:\s+(\d+) kB", status.read())[1]) / 1024


def milliseconds(step):
    """Of one step: the median of rounds of a second or of one step, after two steps and half a second that are not
    counted.
    """
    steps, start = 0, time.perf_counter()
    while steps < 2 or time.perf_counter() - start < SECONDS / 2:
        step()
        steps += 1
    a_round = max(1, round(SECONDS * steps / (time.perf_counter() - start)))
    rounds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(a_round):
            step()
        rounds.append((time.perf_counter() - start) / a_round * 1e3)
    return statistics.median(rounds)


def run_of_rounds(step):
    """What step() says of itself, for as long as of_rounds() wants."""
    said, end = [], time.perf_counter() + SECONDS * (ROUNDS + 0.5)
    while len(said) < 4 or time.perf_counter() < end:
        said.append(step())
    return said


def of_rounds(steps):
    """The same of the milliseconds of steps that were done one after the other."""
    start, before = 0, 0.0
    while start < 2 or (before < SECONDS / 2 * 1e3 and start < len(steps) - 1):
        before += steps[start]
        start += 1
    rounds, count, spent = [], 0, 0.0
    for ms in steps[start:]:
        count, spent = count + 1, spent + ms
        if spent >= SECONDS * 1e3:
            rounds.append(spent / count)
            count, spent = 0, 0.0
    return statistics.median(rounds or [spent / count])


def say(**figures):
    print(json.dumps({**figures, "peak_mib": peak_mib()}), flush=True)
