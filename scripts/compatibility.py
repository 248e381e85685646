#!/usr/bin/env python3
"""Whether a test run shows what docs/compatibility.md and docs/compatibility-tensorflow.md state: the tables
tests/compatibility.tsv and tests/compatibility_tensorflow.tsv beside the reports of the run.

  scripts/compatibility.py [--reports build/logs] [--write | --check]

A page is compared, and differs when rows, tests, remarks or states do; what this machine had to skip cannot be
known here: it is printed, and is no difference. --write makes them anew. The run's own result is
build/compatibility.json. Reports are JUnit files: python*.xml of pytest, scala*/ of ScalaTest, cpp/ of GoogleTest. A
row is shown when each of its tests was run and passed, shown in part when some of them were skipped, skipped when all
were. --check needs no run: the tables have so many rows, each with tests or with a remark that says why there are none,
and the pages have the same rows.
"""

import argparse
import json
import pathlib
import sys
import xml.etree.ElementTree as ET

ROOT = pathlib.Path(__file__).resolve().parent.parent


TABLES = (
    ("tests/compatibility.tsv", "docs/compatibility.md", "CaffeOnSpark", 64),
    ("tests/compatibility_tensorflow.tsv", "docs/compatibility-tensorflow.md", "TensorFlowOnSpark", 60),
)
KINDS = (
    ("py", "python.xml"),
    ("py", "python-spark.xml"),
    ("py4", "python-spark4.xml"),
    ("py11", "python-java11.xml"),
    ("tf", "python-tensorflow.xml"),
    ("tf4", "python-tensorflow4.xml"),
    ("scala", "scala/*.xml"),
    ("scala4", "scala-spark4/*.xml"),
    ("scalatf", "scala-tensorflow/*.xml"),
    ("cpp", "cpp/*.xml"),
)


def rows(table):
    for line in (ROOT / table).read_text().splitlines():
        if line and not line.startswith("#"):
            number, kind, promise, tests, remark = (line.split("\t") + [""])[:5]
            yield int(number), kind, promise, [] if tests == "-" else tests.split("; "), remark


def results(folder):
    """{'py': {name: state}, ...}; state is passed, failed or skipped."""
    found = {}
    for kind, pattern in KINDS:
        cases = found.setdefault(kind, {})
        again = pattern.replace(".xml", "-again.xml")  # of what failed at first
        for file in [*sorted(folder.glob(pattern)), *folder.glob(again)]:
            for case in ET.parse(file).iter("testcase"):
                name = (
                    f"{case.get('classname', '').split('.')[-1]}.{case.get('name')}"
                    if kind == "cpp"
                    else case.get("name")
                )
                skipped = (
                    case.find("skipped") is not None
                    or case.get("status") == "notrun"
                    or case.get("result") == "skipped"
                )
                failed = case.find("failure") is not None or case.find("error") is not None
                cases[name] = "failed" if failed else "skipped" if skipped else "passed"
    return found


def judge(tests, found):
    """(state, tests that were matched)"""
    if not tests:
        return "no test", []
    shown, states = [], set()
    for test in tests:
        kind, part = test.split(":", 1)
        matched = {n: s for n, s in found.get(kind, {}).items() if part in n}
        shown += [f"{kind}: {n}" for n in sorted(matched)]
        found_states = set(matched.values())
        states.add(
            "FAILED"
            if "failed" in found_states
            else "no such test"
            if not matched
            else "shown"
            if "passed" in found_states
            else "skipped"
        )
    for wrong in ("FAILED", "no such test"):
        if wrong in states:
            return wrong, shown
    return ("shown in part" if len(states) > 1 else states.pop()), shown


ANEW = "scripts/compatibility.py --write makes it anew, after a run that skips nothing"


def check(name, count):
    table = list(rows(name))
    wrong = [f"{name}: rows are {[r[0] for r in table]}"] if [r[0] for r in table] != list(range(1, count + 1)) else []
    wrong += [f"row {n} has neither tests nor a remark" for n, _, _, tests, remark in table if not tests and not remark]
    wrong += [
        f"row {n}: '{t}' names no kind of test"
        for n, _, _, tests, _ in table
        for t in tests
        if t.split(":")[0] not in dict(KINDS)
    ]
    return wrong


def check_page(name, place, of):
    same = same_rows(cells_of(judged(name, of, {})[0]), cells_of((ROOT / place).read_text()))
    return [] if same else [f"{place} has not the rows of {name}; {ANEW}"]


HEAD = (
    "# What {}'s users were promised\n\nMade by `scripts/compatibility.py --write` after a test run; do not "
    "edit. K: kept as it was. F: was broken or weak, is mended. "
    "States are of the run that made this page. `shown`: the tests named were run and passed; `shown in part`, "
    "`skipped`: some of them, or all, were skipped "
    "where what they need is absent. `./runtests` compares this page with its own results, and says what it had to "
    "skip. What a remark calls run by hand is not among them.\n\n"
)
TABLE = "\n\n| row | | promise | state | tests | remark |\n|---|---|---|---|---|---|\n"


SKIPPED = ("shown in part", "skipped")


def cells_of(page):
    return [line.split(" | ") for line in page.splitlines() if line.startswith("| ") and line.count(" | ") > 3]


def same_rows(new, old):
    """Of two pages' cells, states apart."""
    return [[*c[:3], *c[4:]] for c in new] == [[*c[:3], *c[4:]] for c in old]


def compared(new, old):
    """Whether the page agrees with this run; and sentences about rows that this run cannot decide."""
    new, old = cells_of(new), cells_of(old)
    if not same_rows(new, old):
        return False, []
    pairs = [(ours[0].strip("| "), ours[3], theirs[3]) for ours, theirs in zip(new, old) if ours[3] != theirs[3]]
    return not any(ours in ("shown", "no test") for _, ours, _ in pairs), [
        f"row {n}: the page says '{theirs}', here it was {'skipped' if ours == 'skipped' else 'skipped in part'}"
        for n, ours, theirs in pairs
        if ours in SKIPPED
    ]


def judged(table, name, found):
    """(page, what a machine reads of it)"""
    out, machine = [], []
    for number, kind, promise, tests, remark in rows(table):
        state, shown = judge(tests, found)
        out.append(f"| {number} | {kind} | {promise} | {state} | {'; '.join(f'`{t}`' for t in tests)} | {remark} |")
        machine.append(
            {"of": name, "row": number, "kind": kind, "promise": promise, "state": state, "tests": shown}
            | {"remark": remark}
        )
    states = [m["state"] for m in machine]
    counts = {s: states.count(s) for s in ("shown", "no test", *SKIPPED, "no such test", "FAILED")}
    page = HEAD.format(name) + ", ".join(f"{n} {s}" for s, n in counts.items() if n) + TABLE + "\n".join(out) + "\n"
    return page, machine


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--reports", type=pathlib.Path, default=ROOT / "build/logs")
    p.add_argument("--check", action="store_true")
    p.add_argument("--write", action="store_true")
    o = p.parse_args()
    wrong = [sentence for table, _, _, count in TABLES for sentence in check(table, count)]
    if o.check:
        wrong += [sentence for table, place, name, _ in TABLES for sentence in check_page(table, place, name)]
    if wrong or o.check:
        sys.exit("\n".join(wrong) or 0)
    found, everything = results(o.reports), []
    for table, place, name, _ in TABLES:
        page, machine = judged(table, name, found)
        everything += machine
        if o.write:
            (ROOT / place).write_text(page)
            continue
        equal, unknown = compared(page, (ROOT / place).read_text())
        if not equal:
            print(f"{place} is not what {table} and this run say; {ANEW}")
            sys.exit(1)
        for sentence in unknown:
            print(f"{name}, {sentence}")
    (ROOT / "build/compatibility.json").write_text(json.dumps(everything, indent=1) + "\n")
    for _, _, name, _ in TABLES:
        states = [m["state"] for m in everything if m["of"] == name]
        print(f"promises of {name}: { {s: states.count(s) for s in dict.fromkeys(states)} }")
    for m in everything:
        if m["state"] not in ("shown", "no test"):
            print(f"  {m['of']}, row {m['row']} ({m['promise']}): {m['state']}")
    sys.exit(1 if any(m["state"] in ("FAILED", "no such test") for m in everything) else 0)


if __name__ == "__main__":
    main()
