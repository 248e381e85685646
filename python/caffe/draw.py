"""Nets as pictures. SVG by a layout of our own needs nothing; PNG needs Pillow; get_pydot_graph() and all other formats
need pydot and Graphviz."""
from __future__ import annotations

import html
import os
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from .proto import caffe_pb2

_COLOURS = {"Convolution": "#ff5050", "Deconvolution": "#ff5050", "Pooling": "#ff9900", "InnerProduct": "#cc33ff"}
_LAYER, _BLOB = "#6495ed", "#e0e0e0"
_LINE, _CHAR, _GAP, _STEP = 15, 7, 24, 46  # pixels: height of a line, width of a letter, between neighbours and ranks


class Node(NamedTuple):
    key: str
    text: str
    colour: str
    layer: bool


def choose_color_by_layertype(layertype: str) -> str:
    return _COLOURS.get(layertype, _LAYER)


def get_layer_lr_mult(layer: Any) -> str:
    """What the parameters of a layer that learns are multiplied with; empty for others."""
    learns = layer.type in ("Convolution", "Deconvolution", "InnerProduct", "Scale", "PReLU", "Bias", "Embed", "LSTM", "RNN")
    return "lr_mult: " + ", ".join(f"{p.lr_mult:g}" for p in layer.param) if learns and layer.param else ""


def _window(fields: Any) -> List[str]:
    def both(name: str) -> str:
        side = name.replace("kernel_size", "kernel")
        value = getattr(fields, name)
        if fields.HasField(side + "_h"):
            return f"{getattr(fields, side + '_h')}x{getattr(fields, side + '_w')}"
        return "x".join(str(v) for v in value) if hasattr(value, "extend") else str(value)
    return [f"{label}: {both(name)}" for label, name in (("kernel", "kernel_size"), ("stride", "stride"), ("pad", "pad")) if both(name)]


def get_layer_label(layer: Any, rankdir: str = "LR", display_lrm: bool = False) -> str:
    """Name, type and the sizes that matter; lines for graphs from top to bottom, too."""
    lines = [layer.name, f"({layer.type})"]
    if layer.type in ("Convolution", "Deconvolution", "Im2col"):
        lines += _window(layer.convolution_param)
    elif layer.type == "Pooling":
        pool = layer.pooling_param
        lines += [caffe_pb2.PoolingParameter.PoolMethod.Name(pool.pool)] + (["global"] if pool.global_pooling else _window(pool))
    if display_lrm and get_layer_lr_mult(layer):
        lines.append(get_layer_lr_mult(layer))
    return "\n".join(lines)


def get_edge_label(layer: Any) -> str:
    """What a layer makes of each sample."""
    sizes = {"Data": layer.data_param.batch_size and f"Batch {layer.data_param.batch_size}",
             "Convolution": layer.convolution_param.num_output, "Deconvolution": layer.convolution_param.num_output,
             "InnerProduct": layer.inner_product_param.num_output}
    return str(sizes.get(layer.type) or "")


def _in_phase(layer: Any, phase: Optional[int]) -> bool:
    if phase is None:
        return True
    included = [r.phase for r in layer.include if r.HasField("phase")]
    excluded = [r.phase for r in layer.exclude if r.HasField("phase")]
    return (not included or phase in included) and phase not in excluded


Edge = Tuple[str, str, str]  # from, to, label


def _graph(net: Any, rankdir: str, phase: Optional[int], display_lrm: bool) -> Tuple[Dict[str, Node], List[Edge]]:
    """Layers and blobs in turn. A layer in place stands between its blob and those who read the blob later."""
    nodes: Dict[str, Node] = {}
    edges: List[Edge] = []
    last: Dict[str, str] = {}  # blob -> the node that has it now
    for i, layer in enumerate(net.layer):
        if not _in_phase(layer, phase):
            continue
        me = f"layer{i}"
        nodes[me] = Node(me, get_layer_label(layer, rankdir, display_lrm), choose_color_by_layertype(layer.type), True)
        for bottom in layer.bottom:
            if bottom not in last:
                last[bottom] = f"blob_{bottom}"
                nodes[last[bottom]] = Node(last[bottom], bottom, _BLOB, False)
            edges.append((last[bottom], me, ""))
        for top in layer.top:
            if top in layer.bottom:
                last[top] = me
                continue
            blob = f"blob{i}_{top}"
            nodes[blob] = Node(blob, top, _BLOB, False)
            edges.append((me, blob, get_edge_label(layer)))
            last[top] = blob
    return nodes, edges


class Placed(NamedTuple):
    node: Node
    x: float  # of its middle
    y: float
    width: float
    height: float


def _ranks(nodes: Dict[str, Node], edges: List[Edge]) -> List[List[str]]:
    """Each behind all that it reads; in a rank, ordered by where the nodes before stand."""
    rank = {key: 0 for key in nodes}
    for start, end, _ in edges:  # file order is an order of computing
        rank[end] = max(rank[end], rank[start] + 1)
    rows: List[List[str]] = [[] for _ in range(max(rank.values(), default=-1) + 1)]
    before: Dict[str, List[str]] = {key: [] for key in nodes}
    for start, end, _ in edges:
        before[end].append(start)
    place: Dict[str, float] = {}
    for key in nodes:
        rows[rank[key]].append(key)
    for row in rows:
        row.sort(key=lambda k: sum(place[b] for b in before[k]) / len(before[k]) if before[k] else len(place))
        place.update({key: i - (len(row) - 1) / 2 for i, key in enumerate(row)})
    return rows


def _layout(nodes: Dict[str, Node], edges: List[Edge], rankdir: str) -> Tuple[Dict[str, Placed], float, float]:
    sizes = {k: (max(map(len, n.text.split("\n"))) * _CHAR + 16.0, (n.text.count("\n") + 1) * _LINE + 10.0) for k, n in nodes.items()}
    sideways = rankdir in ("LR", "RL")
    deep, broad = (0, 1) if sideways else (1, 0)  # which of (width, height) runs along the ranks, and across
    rows = _ranks(nodes, edges)
    extent = [sum(sizes[k][broad] + _GAP for k in row) for row in rows]
    middle, at, placed = max(extent, default=0) / 2 + 10, 10.0, {}
    for row, across in zip(rows, extent):
        depth, position = max(sizes[k][deep] for k in row), middle - across / 2
        for key in row:
            side = position + (sizes[key][broad] + _GAP) / 2
            ahead = at + depth / 2
            placed[key] = Placed(nodes[key], ahead if sideways else side, side if sideways else ahead, *sizes[key])
            position += sizes[key][broad] + _GAP
        at += depth + _STEP
    total = {deep: at, broad: 2 * middle}
    if rankdir in ("RL", "BT"):
        placed = {k: p._replace(x=at - p.x) if sideways else p._replace(y=at - p.y) for k, p in placed.items()}
    return placed, total[0], total[1]


def _svg(nodes: Dict[str, Node], edges: List[Edge], rankdir: str) -> bytes:
    placed, width, height = _layout(nodes, edges, rankdir)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" font-family="monospace" font-size="11">']
    for start, end, label in edges:
        a, b = placed[start], placed[end]
        out.append(f'<line x1="{a.x:.1f}" y1="{a.y:.1f}" x2="{b.x:.1f}" y2="{b.y:.1f}" stroke="#404040"/>')
        if label:
            out.append(f'<text x="{(a.x + b.x) / 2:.1f}" y="{(a.y + b.y) / 2 - 3:.1f}" text-anchor="middle">{html.escape(label)}</text>')
    for p in placed.values():
        round_corner = 3 if p.node.layer else p.height / 2
        out.append(f'<rect x="{p.x - p.width / 2:.1f}" y="{p.y - p.height / 2:.1f}" width="{p.width:.1f}" height="{p.height:.1f}" '
                   f'rx="{round_corner:.1f}" fill="{p.node.colour}" stroke="#404040"/>')
        lines = p.node.text.split("\n")
        for i, line in enumerate(lines):
            y = p.y + (i - (len(lines) - 1) / 2) * _LINE + 4
            out.append(f'<text x="{p.x:.1f}" y="{y:.1f}" text-anchor="middle">{html.escape(line)}</text>')
    return "\n".join(out + ["</svg>", ""]).encode()


def _png(nodes: Dict[str, Node], edges: List[Edge], rankdir: str) -> bytes:
    import io

    from PIL import Image, ImageDraw
    placed, width, height = _layout(nodes, edges, rankdir)
    picture = Image.new("RGB", (int(width) + 1, int(height) + 1), "white")
    draw = ImageDraw.Draw(picture)
    for start, end, label in edges:
        a, b = placed[start], placed[end]
        draw.line((a.x, a.y, b.x, b.y), fill="#404040")
        draw.text(((a.x + b.x) / 2 - 3 * len(label), (a.y + b.y) / 2 - 14), label, fill="black")
    for p in placed.values():
        box = (p.x - p.width / 2, p.y - p.height / 2, p.x + p.width / 2, p.y + p.height / 2)
        draw.rounded_rectangle(box, 3 if p.node.layer else p.height / 2, fill=p.node.colour, outline="#404040")
        draw.multiline_text((box[0] + 8, box[1] + 4), p.node.text, fill="black")
    out = io.BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()


def get_pydot_graph(caffe_net: Any, rankdir: str, label_edges: bool = True, phase: Optional[int] = None, display_lrm: bool = False) -> Any:
    try:
        import pydot  # type: ignore[import-not-found]
    except ImportError:
        raise ImportError("get_pydot_graph needs pydot and Graphviz: `pip install pydot`, `apt-get install graphviz`; "
                          "draw_net_to_file writes .svg without them") from None
    nodes, edges = _graph(caffe_net, rankdir, phase, display_lrm)
    graph = pydot.Dot(caffe_net.name or "Net", graph_type="digraph", rankdir=rankdir)
    for node in nodes.values():
        text = '"' + node.text.replace('"', "'").replace("\n", "\\n") + '"'
        graph.add_node(pydot.Node(node.key, label=text, shape="record" if node.layer else "octagon", style="filled", fillcolor=node.colour))
    for start, end, label in edges:
        graph.add_edge(pydot.Edge(start, end, label=f'"{label if label_edges else ""}"'))
    return graph


def draw_net(caffe_net: Any, rankdir: str, ext: str = "png", phase: Optional[int] = None, display_lrm: bool = False) -> bytes:
    """The picture of a NetParameter as a file of format `ext`; rankdir LR, RL, TB or BT."""
    if ext in ("svg", "png"):
        try:
            return (_svg if ext == "svg" else _png)(*_graph(caffe_net, rankdir, phase, display_lrm), rankdir)
        except ImportError:
            raise ImportError("PNG needs Pillow: `pip install pillow`, or draw an .svg, which needs nothing") from None
    return get_pydot_graph(caffe_net, rankdir, phase=phase, display_lrm=display_lrm).create(format=ext)


def draw_net_to_file(caffe_net: Any, filename: Any, rankdir: str = "LR", phase: Optional[int] = None, display_lrm: bool = False) -> None:
    """By the file's extension: .svg, .png, or what Graphviz knows."""
    extension = os.path.splitext(os.fspath(filename))[1][1:]
    picture = draw_net(caffe_net, rankdir, extension or "svg", phase, display_lrm)
    with open(filename, "wb") as out:
        out.write(picture)
