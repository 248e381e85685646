"""The table and the plots of all figures that were measured: of each line the newest on each kind of processor, with
the state of the code that it is of.
"""

import json

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402

KEYS = ("net", "part", "batch", "threads", "peer", "processor")


def merged(path, rows):
    """`rows` and those of earlier runs in the file that they do not replace."""
    known = {}
    old = json.loads(path.read_text()) if path.exists() else []
    for row in [*old, *rows]:
        known[tuple(row.get(k) for k in KEYS)] = row
    path.write_text(json.dumps(list(known.values()), indent=1))
    return list(known.values())


def figure(ms):
    return f"{ms:.3g}" if ms < 100 else f"{ms:.0f}"


def table(rows):
    lines = [
        "| net, batch | threads | peer | ours, ms | theirs, ms | times as fast (least to most) | ours, MiB "
        "| theirs, MiB | others, CPUs | measured |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        median, least, most = r["ratio"]
        lines.append(
            f"| {r['net']} {r['part']} {r['batch']} | {r['threads']} | {r['peer']} | {figure(r['ours_ms'])} | "
            f"{figure(r['theirs_ms'])} | {median:.2f} ({least:.2f} to {most:.2f}) | {r['ours_mib']:.0f} | "
            f"{r['theirs_mib']:.0f} | {r['others']:.2f} | {r.get('day')}, {r.get('commit')}, {r.get('processor')} |"
        )
    return "\n".join(lines)


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
