"""The table and the plots of all figures that were measured: of each line the newest on each kind of processor, with
the state of the code that it is of.
"""

import json

import aims
import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402

KEYS = ("net", "part", "batch", "threads", "peer", "processor")


def merged(path, rows):
    """`rows` and those of earlier runs in the file that they do not replace."""
    known = {}
    old = json.loads(path.read_text()) if path.exists() else []
    for row in [*old, *rows]:
        key = tuple(row.get(k) for k in KEYS)
        known.pop(key, None)  # the newest come last
        known[key] = row
    path.write_text(json.dumps(list(known.values()), indent=1))
    return list(known.values())


def figure(ms):
    return f"{ms:.3g}" if ms < 100 else f"{ms:,.0f}"


def line(r):
    """What is said of a row as soon as it is measured."""
    threads = f"{r['threads']} thread{'s' if r['threads'] > 1 else ''}"
    times = f"{figure(r['ours_ms'])} ms, {r['peer']} {figure(r['theirs_ms'])}: {ratio(r)}"
    mib = f"{r['ours_mib']:.0f} MiB, {r['theirs_mib']:.0f}"
    others = f"others took {r['others']:.2f} processors"
    return f"{r['net']} {r['part']} {r['batch']}, {threads}: {times}; {mib}; {others}"


def ratio(r):
    """Times as fast, with the range of the pairs. Where it falls short of its aim bold, with the aim; where some pairs
    do in italics.
    """
    (median, least, most), aim = r["ratio"], aims.times(r)
    spread = f" ({least:.2f} to {most:.2f})" if r["pairs"] > 1 else ""
    if aim and round(median, 2) < aim:
        return f"**{median:.2f}**{spread} of {aim}"
    if aim and round(least, 2) < aim:
        return f"*{median:.2f}*{spread} of {aim}"
    return f"{median:.2f}{spread}"


def memory(r):
    """Which part of the peer's memory ours takes, in the same way."""
    part, aim = round(100 * r["ours_mib"] / r["theirs_mib"]), aims.memory(r)
    return f"**{part} %** of {aim}" if aim and part > aim else f"{part} %"


def table(rows):
    """For each kind of processor and part a table with a line for each net, batch and number of threads. A peer's cell
    has its milliseconds, how many times as fast ours is, and which part of its memory ours takes.
    """
    said, order = [], {net: i for i, net in enumerate(aims.TORCH)}
    for processor in dict.fromkeys(r.get("processor") for r in rows):
        for part in dict.fromkeys(r["part"] for r in rows):
            some = [r for r in rows if r.get("processor") == processor and r["part"] == part]
            some.sort(key=lambda r: (r["threads"], order.get(r["net"], len(order)), r["batch"]))
            said += one_table(f"{processor}: {PARTS[part]}", some) if some else []
    return "\n".join(said)


def cell(r, commit):
    """commit: that of the crema figure beside it, from which an older figure may differ."""
    if r is None:
        return ""
    older = f" ({r['commit']})" if r["commit"] != commit else ""
    return f"{figure(r['theirs_ms'])}; {ratio(r)}; {memory(r)}{older}"


PARTS = {"train": "a training step", "score": "scoring"}


def one_table(title, rows):
    peers = sorted(dict.fromkeys(r["peer"] for r in rows))
    when = ", ".join(sorted({f"{r.get('day')} {r.get('commit')}" for r in rows}))
    pairs, others = sorted({r["pairs"] for r in rows}), max(r["others"] for r in rows)
    yield f"{title}; {when}; pairs: {', '.join(map(str, pairs))}; others took {others:.2f} processors at most"
    yield ""
    of_peers = " | ".join(f"{p}: ms; times as fast; our memory" for p in peers)
    yield f"| net, batch | threads | crema: ms; MiB | {of_peers} |"
    yield "|---|---|---|" + "---|" * len(peers)
    lines = {}
    for r in rows:
        lines.setdefault((r["net"], r["batch"], r["threads"]), {})[r["peer"]] = r
    for (net, batch, threads), of in lines.items():
        ours = list(of.values())[-1]  # the newest
        cells = [cell(of.get(p), ours["commit"]) for p in peers]
        said = f"{figure(ours['ours_ms'])}; {ours['ours_mib']:,.0f}"
        yield f"| {net} {batch} | {threads} | {said} | {' | '.join(cells)} |"
    yield ""


def plot(rows, path, title):
    """Bars of ratios, a group for each net; the line at 1 is our own time."""
    nets, peers = list(dict.fromkeys(r["net"] for r in rows)), list(dict.fromkeys(r["peer"] for r in rows))
    figure, axes = plt.subplots(figsize=(9, 3.2), layout="constrained")
    width = 0.8 / len(peers)
    for i, peer in enumerate(peers):
        of = {r["net"]: r["ratio"] for r in rows if r["peer"] == peer}
        at = [nets.index(n) + (i - (len(peers) - 1) / 2) * width for n in of]
        middle = [ratio[0] for ratio in of.values()]
        spread = [[m - ratio[1] for m, ratio in zip(middle, of.values())], [r[2] - r[0] for r in of.values()]]
        axes.bar(at, middle, width * 0.9, yerr=spread, capsize=2, label=peer)
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_xticks(range(len(nets)), nets)
    axes.set_ylabel("times as fast")
    axes.set_title(title, loc="left", fontsize=10)
    axes.legend(fontsize=8, frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)
    plt.close(figure)


def plots(rows, folder):
    """The files that were written, one for each part, batch and number of threads."""
    groups = {}
    for r in rows:
        batch = r["batch"] if r["part"] == "score" else ""
        groups.setdefault((r["part"], batch, r["threads"]), []).append(r)
    written = []
    for (part, batch, threads), group in groups.items():
        what = "a training step" if part == "train" else f"scoring {batch} picture{'s' if batch > 1 else ''}"
        path = folder / f"{part}{batch}_{threads}.svg"
        plot(group, path, f"Crema's time of {what} against others', {threads} thread{'s' if threads > 1 else ''}")
        written.append(path)
    return written
