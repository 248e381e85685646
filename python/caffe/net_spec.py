"""Nets written in Python.

    n = caffe.NetSpec()
    n.data, n.label = L.Data(source="train_lmdb", batch_size=64, ntop=2)
    n.ip = L.InnerProduct(n.data, num_output=10, weight_filler=dict(type="xavier"))
    n.relu = L.ReLU(n.ip, in_place=True)
    n.loss = L.SoftmaxWithLoss(n.ip, n.label)
    print(n.to_proto())

`L.Type(*bottoms, ...)` is a layer: ntop tops (1 unless said otherwise; none: the layer itself comes back), in_place,
and any field of LayerParameter or of the type's own parameter. `P.Pooling.MAX` is a constant of PoolingParameter. A
name is given by assigning to an attribute of a NetSpec; what stays without gets its type and a number.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import Any, Dict, Set, Tuple, Union

from .proto import caffe_pb2

# Types that use the parameter message of another type.
_BORROWED = {
    "Deconvolution": "convolution_param",
    "Im2col": "convolution_param",
    "LSTM": "recurrent_param",
    "RNN": "recurrent_param",
}


def param_name_dict() -> Dict[str, str]:
    """Layer type -> the field of LayerParameter with its options: {"InnerProduct": "inner_product_param", ...}."""
    fields = caffe_pb2.LayerParameter.DESCRIPTOR.fields
    own = {
        f.message_type.name[: -len("Parameter")]: f.name
        for f in fields
        if f.message_type is not None and f.name.endswith("_param") and f.message_type.name.endswith("Parameter")
    }
    return {**_BORROWED, **own}


_OPTIONS = param_name_dict()


def _plain(value: Any) -> Any:
    """numpy's numbers and sequences as Python's."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return list(value) if isinstance(value, tuple) else value


def assign_proto(proto: Any, name: str, value: Any) -> None:
    """proto.name = value, where lists fill repeated fields and dicts fill messages; one value is a list of one."""
    value = _plain(value)
    field = getattr(proto, name)
    if hasattr(field, "extend"):
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict):
                added = field.add()
                for key, inner in item.items():
                    assign_proto(added, key, inner)
            elif hasattr(field, "add"):
                field.add().CopyFrom(item)
            else:
                field.append(_plain(item))
    elif isinstance(value, dict):
        for key, inner in value.items():
            assign_proto(field, key, inner)
    elif hasattr(field, "CopyFrom"):
        field.CopyFrom(value)
    else:
        setattr(proto, name, value)


class Top:
    """Output number n of a layer."""

    def __init__(self, fn: "Function", n: int) -> None:
        self.fn, self.n = fn, n

    def to_proto(self) -> Any:
        return to_proto(self)


class Function:
    """A layer: a type, the tops that it reads, its fields."""

    def __init__(self, type_name: str, inputs: Tuple[Top, ...], params: Dict[str, Any]) -> None:
        for i, top in enumerate(inputs):
            if not isinstance(top, Top):
                raise TypeError(f"{type_name} input {i} is not a Top (type is {type(top)})")
        self.type_name, self.inputs, self.params = type_name, inputs, dict(params)
        self.ntop = self.params.pop("ntop", 1)
        self.in_place = self.params.pop("in_place", False)
        self.tops = tuple(Top(self, n) for n in range(self.ntop))

    def to_proto(self) -> Any:
        return to_proto(self)


class _Writer:
    """Layers in the order in which they are needed, each once."""

    def __init__(self, named: Dict[str, Union[Top, Function]]) -> None:
        self.names: Dict[Any, str] = {what: name for name, what in named.items()}
        # In place, a top has the name of its bottom, and its own name is the layer's.
        self.layer_names = {what.fn: name for name, what in named.items() if isinstance(what, Top) and what.fn.in_place}
        self.net = caffe_pb2.NetParameter()
        self.counts: Dict[str, int] = Counter()
        self.done: Set[Function] = set()

    def name(self, what: Union[Top, Function], type_name: str) -> str:
        if what not in self.names:
            self.counts[type_name] += 1
            self.names[what] = f"{type_name}{self.counts[type_name]}"
        return self.names[what]

    def write(self, last: Function) -> None:
        pending = [(last, False)]  # no recursion: nets are deeper than Python's stack
        while pending:
            fn, ready = pending.pop()
            if fn in self.done:
                continue
            if not ready:
                pending.append((fn, True))
                pending.extend((top.fn, False) for top in reversed(fn.inputs))
                continue
            self.done.add(fn)
            self.add(fn)

    def add(self, fn: Function) -> None:
        bottoms = [self.name(top, top.fn.type_name) for top in fn.inputs]
        if fn.in_place:
            tops = bottoms[: len(fn.tops)]
            if len(tops) != len(fn.tops):
                raise ValueError(f"{fn.type_name} in place has {len(fn.tops)} tops and {len(bottoms)} bottoms")
            self.names.update(zip(fn.tops, tops))
            layer_name = self.layer_names.get(fn) or self.name(fn, fn.type_name)
        else:
            tops = [self.name(top, fn.type_name) for top in fn.tops]
            layer_name = tops[0] if tops else self.name(fn, fn.type_name)
        layer = self.net.layer.add(name=layer_name, type=fn.type_name, bottom=bottoms, top=tops)
        options = _OPTIONS.get(fn.type_name)
        for key, value in fn.params.items():
            fields = getattr(layer, options) if options and not key.endswith("param") else None
            assign_proto(
                fields if fields is not None and key in fields.DESCRIPTOR.fields_by_name else layer, key, value
            )


def _written(named: Dict[str, Union[Top, Function]], wanted: Tuple[Union[Top, Function], ...]) -> Any:
    writer = _Writer(named)
    for what in wanted:
        writer.write(what.fn if isinstance(what, Top) else what)
    return writer.net


def to_proto(*tops: Union[Top, Function]) -> Any:
    """The NetParameter of these tops and all that they need, with made-up names."""
    return _written({}, tops)


class NetSpec:
    """A net whose attributes are its tops: assigning names them, and their layers."""

    tops: "OrderedDict[str, Union[Top, Function]]"

    def __init__(self) -> None:
        object.__setattr__(self, "tops", OrderedDict())

    def __setattr__(self, name: str, value: Union[Top, Function]) -> None:
        self.tops[name] = value

    def __getattr__(self, name: str) -> Union[Top, Function]:
        if name not in self.tops:
            raise AttributeError(f"the net has no top '{name}'; it has {', '.join(self.tops) or 'none'}")
        return self.tops[name]

    __setitem__ = __setattr__

    def __getitem__(self, name: str) -> Union[Top, Function]:
        return self.tops[name]

    def __delattr__(self, name: str) -> None:
        del self.tops[name]

    __delitem__ = __delattr__

    def to_proto(self) -> Any:
        return _written(self.tops, tuple(self.tops.values()))


class Layers:
    """layers.Type makes layers of that type."""

    def __getattr__(self, name: str) -> Any:
        def layer(*inputs: Top, **fields: Any) -> Any:
            fn = Function(name, inputs, fields)
            return fn if fn.ntop == 0 else fn.tops[0] if fn.ntop == 1 else fn.tops

        return layer


class Parameters:
    """params.Type has the constants of TypeParameter."""

    def __getattr__(self, name: str) -> Any:
        return getattr(caffe_pb2, name + "Parameter")


layers = Layers()
params = Parameters()
