"""Nets as pictures: SVG and PNG by the engine; get_pydot_graph() and all other formats need pydot and Graphviz."""

from __future__ import annotations

import os
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ._pictures import draw_graph
from .proto import caffe_pb2

_COLOURS = {"Convolution": "#ff5050", "Deconvolution": "#ff5050", "Pooling": "#ff9900", "InnerProduct": "#cc33ff"}
_LAYER, _BLOB = "#6495ed", "#e0e0e0"


class Node(NamedTuple):
    key: str
    text: str
    colour: str
    layer: bool


def choose_color_by_layertype(layertype: str) -> str:
    return _COLOURS.get(layertype, _LAYER)


def get_layer_lr_mult(layer: Any) -> str:
    """The learning rate multipliers of a layer's parameters; empty for layers without parameters."""
    learns = layer.type in (
        "Convolution",
        "Deconvolution",
        "InnerProduct",
        "Scale",
        "PReLU",
        "Bias",
        "Embed",
        "LSTM",
        "RNN",
    )
    return "lr_mult: " + ", ".join(f"{p.lr_mult:g}" for p in layer.param) if learns and layer.param else ""


def _window(fields: Any) -> List[str]:
    def both(name: str) -> str:
        side = name.replace("kernel_size", "kernel")
        value = getattr(fields, name)
        if fields.HasField(side + "_h"):
            return f"{getattr(fields, side + '_h')}x{getattr(fields, side + '_w')}"
        return "x".join(str(v) for v in value) if hasattr(value, "extend") else str(value)

    return [
        f"{label}: {both(name)}"
        for label, name in (("kernel", "kernel_size"), ("stride", "stride"), ("pad", "pad"))
        if both(name)
    ]


def get_layer_label(layer: Any, rankdir: str = "LR", display_lrm: bool = False) -> str:
    """The label of a layer: name, type and main sizes; on several lines also where the graph runs from top to
    bottom.
    """
    lines = [layer.name, f"({layer.type})"]
    if layer.type in ("Convolution", "Deconvolution", "Im2col"):
        lines += _window(layer.convolution_param)
    elif layer.type == "Pooling":
        pool = layer.pooling_param
        lines += [caffe_pb2.PoolingParameter.PoolMethod.Name(pool.pool)] + (
            ["global"] if pool.global_pooling else _window(pool)
        )
    if display_lrm and get_layer_lr_mult(layer):
        lines.append(get_layer_lr_mult(layer))
    return "\n".join(lines)


def get_edge_label(layer: Any) -> str:
    """What a layer computes for each sample."""
    sizes = {
        "Data": layer.data_param.batch_size and f"Batch {layer.data_param.batch_size}",
        "Convolution": layer.convolution_param.num_output,
        "Deconvolution": layer.convolution_param.num_output,
        "InnerProduct": layer.inner_product_param.num_output,
    }
    return str(sizes.get(layer.type) or "")


def _in_phase(layer: Any, phase: Optional[int]) -> bool:
    if phase is None:
        return True
    included = [r.phase for r in layer.include if r.HasField("phase")]
    excluded = [r.phase for r in layer.exclude if r.HasField("phase")]
    return (not included or phase in included) and phase not in excluded


Edge = Tuple[str, str, str]  # from, to, label


def _graph(net: Any, rankdir: str, phase: Optional[int], display_lrm: bool) -> Tuple[Dict[str, Node], List[Edge]]:
    """Layers and blobs in turn. A layer in place is put between its blob and the layers that read the blob later."""
    nodes: Dict[str, Node] = {}
    edges: List[Edge] = []
    last: Dict[str, str] = {}  # blob -> the node that holds its value so far
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


def get_pydot_graph(
    caffe_net: Any, rankdir: str, label_edges: bool = True, phase: Optional[int] = None, display_lrm: bool = False
) -> Any:
    try:
        import pydot  # type: ignore[import-not-found]
    except ImportError:
        raise ImportError(
            "get_pydot_graph needs pydot and Graphviz: `pip install pydot`, `apt-get install graphviz`; "
            "draw_net_to_file writes .svg and .png without them"
        ) from None
    nodes, edges = _graph(caffe_net, rankdir, phase, display_lrm)
    graph = pydot.Dot(caffe_net.name or "Net", graph_type="digraph", rankdir=rankdir)
    for node in nodes.values():
        text = '"' + node.text.replace('"', "'").replace("\n", "\\n") + '"'
        graph.add_node(
            pydot.Node(
                node.key, label=text, shape="record" if node.layer else "octagon", style="filled", fillcolor=node.colour
            )
        )
    for start, end, label in edges:
        graph.add_edge(pydot.Edge(start, end, label=f'"{label if label_edges else ""}"'))
    return graph


def draw_net(
    caffe_net: Any, rankdir: str, ext: str = "png", phase: Optional[int] = None, display_lrm: bool = False
) -> bytes:
    """The picture of a NetParameter as a file of format `ext`; rankdir LR, RL, TB or BT."""
    if ext in ("svg", "png"):
        nodes, edges = _graph(caffe_net, rankdir, phase, display_lrm)
        number = {key: i for i, key in enumerate(nodes)}
        boxes = [(node.text, int(node.colour[1:], 16)) for node in nodes.values()]
        return draw_graph(caffe_net.name, boxes, [(number[a], number[b], text) for a, b, text in edges], rankdir, ext)
    return get_pydot_graph(caffe_net, rankdir, phase=phase, display_lrm=display_lrm).create(format=ext)


def draw_net_to_file(
    caffe_net: Any, filename: Any, rankdir: str = "LR", phase: Optional[int] = None, display_lrm: bool = False
) -> None:
    """By the file's extension: .svg, .png, or what Graphviz knows."""
    extension = os.path.splitext(os.fspath(filename))[1][1:]
    picture = draw_net(caffe_net, rankdir, extension or "svg", phase, display_lrm)
    with open(filename, "wb") as out:
        out.write(picture)
