"""Reads a drawn net from its SVG: texts and boxes as rectangles, edges as lines; and finds overlaps."""

import collections
import itertools
import xml.etree.ElementTree as ElementTree

SVG, MARGIN = "{http://www.w3.org/2000/svg}", 20
Box = collections.namedtuple("Box", "x y right bottom words")


def _text(e):
    """Letters are as high as the font's size / 1.3, a third of it below the base line; textLength fixes the width."""
    size, width = float(e.get("font-size")) / 1.3, float(e.get("textLength"))
    x, y = float(e.get("x")) - width * {"start": 0, "middle": 0.5, "end": 1}[e.get("text-anchor")], float(e.get("y"))
    return Box(x, y - size, x + width, y + size / 3, e.text)


def _rectangle(e):
    x, y, width, height = (float(e.get(k)) for k in ("x", "y", "width", "height"))
    return Box(x, y, x + width, y + height, "")


class Drawing:
    def __init__(self, svg):
        root = ElementTree.fromstring(svg)
        self.size = float(root.get("width")), float(root.get("height"))
        self.texts = [_text(e) for e in root.iter(SVG + "text")]
        self.boxes = [_rectangle(e) for e in root.iter(SVG + "rect")]
        lines = [
            [tuple(map(float, p.split(","))) for p in e.get("points").split()] for e in root.iter(SVG + "polyline")
        ]
        self.edges, self.heads = lines[::2], lines[1::2]
        # Of edges; the first is the title.
        self.words = [t for t in self.texts[1:] if not any(inside(t, b) for b in self.boxes)]


def inside(a, b):
    return b.x <= a.x and b.y <= a.y and a.right <= b.right and a.bottom <= b.bottom


def overlap(a, b):
    return a.x < b.right and b.x < a.right and a.y < b.bottom and b.y < a.bottom


def meets(p, q, box):
    """Whether a line segment crosses a rectangle's inside (Liang, Barsky 1984)."""
    low, high = 0.0, 1.0
    for start, step, least, most in ((p[0], q[0] - p[0], box.x, box.right), (p[1], q[1] - p[1], box.y, box.bottom)):
        if step == 0:
            if not least < start < most:
                return False
            continue
        a, b = sorted(((least - start) / step, (most - start) / step))
        low, high = max(low, a), min(high, b)
    return high - low > 1e-9


def neighbours(boxes, pairs_with=None):
    """Pairs that share a row of pixels."""
    rows = collections.defaultdict(list)
    for k, b in enumerate(pairs_with if pairs_with is not None else boxes):
        for row in range(int(b.y) // 50, int(b.bottom) // 50 + 1):
            rows[row].append((k, b))
    for i, a in enumerate(boxes):
        near = {k: b for row in range(int(a.y) // 50, int(a.bottom) // 50 + 1) for k, b in rows[row]}
        yield from ((a, b) for k, b in near.items() if pairs_with is not None or k < i)


def distance(line, box):
    """The distance of horizontal or vertical segments; a large number for others."""
    best = 1e9
    for (x, y), (u, v) in itertools.pairwise(line):
        if abs(x - u) < 0.2 and min(y, v) < (box.y + box.bottom) / 2 < max(y, v):
            best = min(best, max(box.x - x, x - box.right))
        if abs(y - v) < 0.2 and min(x, u) < (box.x + box.right) / 2 < max(x, u):
            best = min(best, max(box.y - y, y - box.bottom))
    return best


def mistakes(d):
    """All overlaps, each described in a sentence."""
    for a, b in neighbours(d.texts):
        if overlap(a, b):
            yield f"'{a.words}' and '{b.words}' overlap"
    for a, b in neighbours(d.boxes):
        if overlap(a, b):
            yield f"boxes {a} and {b} overlap"
    for text, b in neighbours(d.words, d.boxes):
        if overlap(text, b):
            yield f"'{text.words}' lies over a box"
    stretches = [
        Box(min(p[0], q[0]), min(p[1], q[1]), max(p[0], q[0]), max(p[1], q[1]), (p, q))
        for line in d.edges + d.heads
        for p, q in itertools.pairwise(line)
    ]
    for s, text in neighbours(stretches, d.texts):
        if meets(*s.words, text):
            yield f"a line runs through '{text.words}'"
    for s, b in neighbours(stretches, d.boxes):  # an edge ends at its box's side, to a tenth of a pixel
        if meets(*s.words, Box(b.x + 0.2, b.y + 0.2, b.right - 0.2, b.bottom - 0.2, "")):
            yield f"a line runs through the box at {b.x}, {b.y}"
    for text in d.words:
        if min((distance(line, text) for line in d.edges), default=0) > 16:
            yield f"'{text.words}' stands beside no edge"
    points = [p for line in d.edges for p in line] + [
        c for b in d.texts + d.boxes for c in ((b.x, b.y), (b.right, b.bottom))
    ]
    for axis, size in enumerate(d.size):
        low, high = min(p[axis] for p in points), max(p[axis] for p in points)
        if low < MARGIN - 8 or low > MARGIN + 8 or size - high < MARGIN - 8 or size - high > MARGIN + 8:
            yield f"the drawing goes from {low} to {high} on a canvas of {size}"
