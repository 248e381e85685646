"""The model of docs/scaling.md: what a step takes with workers on links, and the graph of it."""

import json
import math
import subprocess

PART = 4 << 20  # bytes: engine/train/step.cc sums a gradient in parts of at least so many


def profile(crema, net):
    """Seconds of the forward pass and of the update; and of each layer, backwards: seconds of backward behind it, bytes
    of its gradient, and of an inner product the bytes of a rank's factors and the operations of its product."""

    def answer(*arguments):
        return json.loads(subprocess.check_output([*crema, *arguments, "-json"], stderr=subprocess.DEVNULL))

    times = answer("time", "-model", net, "-threads", "1", "-iterations", "5")
    shapes = {layer["name"]: layer for layer in answer("summary", "-model", net)["layers"]}
    layers, at = [], 0.0
    for layer in reversed(times["layers"]):
        at += layer["backward_ms"] / 1e3
        shape = shapes.get(layer["name"])
        if not shape or not shape["parameters"]:
            continue
        factors = operations = 0
        if shape["type"] == "InnerProduct":
            items, out = shape["tops"][0]["shape"][:2]
            factors = 4 * items * (shape["parameters"] // out + out)
            operations = 2 * items * shape["parameters"]
        layers.append((at, 4 * shape["parameters"], factors, operations))
    total = sum(size for _, size, _, _ in layers)
    return {
        "forward": times["forward_ms"] / 1e3,
        "backward": at,
        "layers": layers,
        "bytes": total,
        "update": 5 * total / times["peak_bytes"],  # gradient, history, weight are read, the last two written
        "memory": times["peak_bytes"],
        "speed": times["peak_flops"],
    }


def leaves(size, factors, operations, workers):
    """engine/train/left_gradients.cc, of workers of one thread and one rank."""
    sums = size * 2 * (workers - 1) / workers
    others = (workers - 1) * (operations / 100e9 + factors / 1.25e9)
    return workers > 1 and operations > 0 and others < sums / 1.25e9


def parts_of(p, workers):
    """(seconds of backward until then, bytes that are summed, bytes of factors, operations of one other rank)."""
    parts, sums, at = [], 0, 0.0
    for at, size, factors, operations in p["layers"]:
        if leaves(size, factors, operations, workers):
            parts.append((at, 0, factors, operations))
            continue
        sums += size
        if sums >= PART:
            parts.append((at, sums, 0, 0))
            sums = 0
    if sum(size for _, size, _, _ in parts) + sums < 2 * PART:
        sums += sum(size for _, size, _, _ in parts)
        parts = [part for part in parts if part[2]]
    return [*parts, (at, sums, 0, 0)] if sums else parts


def predict(p, workers, gbits, slower=1.0, latency=100e-6):
    """Seconds of a step, and those that training waits for others, part by part as they are complete."""
    rate = gbits * 125e6
    free = products = 0.0
    for complete, size, factors, operations in parts_of(p, workers):
        free = max(free, complete * slower)
        if size:  # two rounds over the link; each worker adds its share of W gradients
            free += 2 * (latency + size * (workers - 1) / workers / rate) + slower * size / p["memory"]
        else:
            free += latency + (workers - 1) * factors / rate
            products += slower * (workers - 1) * operations / p["speed"]
    passes = p["backward"] * slower
    waits = max(0.0, free - passes) if workers > 1 else 0.0
    return slower * (p["forward"] + p["update"]) + products + passes + waits, waits


def least(p, workers, gbits):
    moved = sum(
        2 * size * (workers - 1) / workers + (workers - 1) * factors for _, size, factors, _ in parts_of(p, workers)
    )
    return moved / (gbits * 125e6)


def draw(profiles, batches, path):
    """How many times as fast as one machine, over machines, for each net and rate; one rank a machine."""
    counts = [1, 2, 4, 8, 16, 32, 64, 128]
    width, height, left, top = 760, 330, 60, 30
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{30 + len(profiles) * height}" '
        'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>'
    ]

    def place(i, doublings, y0):
        x = left + i * (width - left - 140) / (len(counts) - 1)
        return x, y0 + height - 70 - (height - 110) * (max(-2.0, doublings) + 2) / 9

    for k, (name, p) in enumerate(profiles.items()):
        y0 = top + k * height
        gradient = f"{p['bytes'] / 1e6:.1f} MB of gradient"
        title = f"{name}, speed over machines of one thread: batch {batches[name]} each, {gradient}"
        lines.append(f'<text x="{left}" y="{y0}" font-size="14">{title}</text>')
        for i, count in enumerate(counts):
            x, _ = place(i, 0, y0)
            _, bottom = place(i, -2, y0)
            lines.append(f'<text x="{x:.0f}" y="{bottom + 18:.0f}" text-anchor="middle">{count}</text>')
        for text, times in [("1/4", 0.25), ("1/2", 0.5), *((str(c), c) for c in counts)]:
            _, y = place(0, math.log2(times), y0)
            lines.append(f'<text x="{left - 10}" y="{y + 4:.0f}" text-anchor="end">{text}x</text>')
            lines.append(f'<path d="M{left} {y:.1f}H{width - 140}" stroke="#ddd"/>')
        curves = [("linear", "#bbb", [float(c) for c in counts])]
        one, _ = predict(p, 1, 1)
        for gbits, colour in ((25, "#2a2"), (10, "#38c"), (1, "#c33")):
            curves.append((f"{gbits} Gbit/s", colour, [c * one / predict(p, c, gbits)[0] for c in counts]))
        last = 0.0
        for text, colour, times in curves:
            points = [place(i, math.log2(t), y0) for i, t in enumerate(times)]
            path_of = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            lines.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{path_of}"/>')
            x, y = points[-1][0], max(points[-1][1], last + 14)  # labels do not touch each other
            last = y
            lines.append(f'<text x="{x + 6:.0f}" y="{y + 4:.0f}" fill="{colour}">{text}</text>')
    path.write_text("\n".join(lines) + "\n</svg>\n")
    print(path)
