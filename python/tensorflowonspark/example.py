"""tf.train.Example to bytes and back, without TensorFlow and protobuf.

    Example    1: Features
    Features   1: an entry for each feature (repeated): 1: name (UTF-8), 2: Feature
    Feature    one of 1: bytes_list, 2: float_list, 3: int64_list; each list has its values in field 1:
               bytes one by one, floats (32 bits, little endian) and int64 (varints) packed into one field

Features are written in the order of their names' bytes, as the jar writes them:
the same features give the same bytes.
"""

import array
import operator
import struct
import sys

from tensorflowonspark import _encoding

BYTES, FLOAT, INT64 = "bytes_list", "float_list", "int64_list"
_NUMBERS = {BYTES: 1, FLOAT: 2, INT64: 3}
_KINDS = {number: kind for kind, number in _NUMBERS.items()}


def encode(features):
    """features: {name: (kind, values)}, kind one of BYTES, FLOAT, INT64. A wrong value is a TypeError or ValueError."""
    entries = bytearray()
    for name in sorted(features, key=lambda name: name.encode()):
        kind, values = features[name]
        feature = _encoding.field(_NUMBERS[kind], _PACK[kind](values))
        entries += _encoding.field(1, _encoding.field(1, name.encode()) + _encoding.field(2, feature))
    return _encoding.field(1, bytes(entries))


def decode(data):
    """{name: (kind, values)} of a serialized Example; kind is None where a feature has none. Fields that an Example
    does not have are skipped; damaged bytes are a ValueError with the offset.
    """
    try:
        return _features(bytes(data))
    except ValueError as e:
        raise ValueError(f"damaged Example: {e}") from None


def _features(data):
    features = {}
    for start, end in _messages(data, 0, len(data), 1):
        for entry in _messages(data, start, end, 1):
            name, feature = "", (None, [])
            for number, wire, value in _encoding.fields(data, *entry):
                if number == 1 and wire == 2:
                    name = data[slice(*value)].decode()
                elif number == 2 and wire == 2:
                    feature = _feature(data, *value)
            features[name] = feature
    return features


def _pack_bytes(values):
    return b"".join(_encoding.field(1, bytes(value)) for value in values)


def _pack_floats(values):
    packed = array.array("f", values)  # beyond the range of 32 bits: infinite, as protobuf has it
    if sys.byteorder == "big":
        packed.byteswap()
    return _encoding.field(1, packed.tobytes()) if packed else b""


def _pack_int64(values):
    packed = bytearray()
    for value in values:
        value = operator.index(value)
        if not -(1 << 63) <= value < 1 << 63:
            raise ValueError(f"{value} has more than 64 bits")
        packed += _encoding.varint(value)
    return _encoding.field(1, bytes(packed)) if packed else b""


_PACK = {BYTES: _pack_bytes, FLOAT: _pack_floats, INT64: _pack_int64}


def _messages(data, at, end, wanted):
    return [value for number, wire, value in _encoding.fields(data, at, end) if number == wanted and wire == 2]


def _feature(data, at, end):
    kind, values = None, []
    for number, wire, value in _encoding.fields(data, at, end):
        if number in _KINDS and wire == 2:
            if _KINDS[number] != kind:  # a later kind replaces an earlier one; the same one goes on
                kind, values = _KINDS[number], []
            values += _UNPACK[kind](data, *value)
    return kind, values


def _unpack_bytes(data, at, end):
    return [data[slice(*value)] for value in _messages(data, at, end, 1)]


def _unpack_floats(data, at, end):
    values = []
    for number, wire, value in _encoding.fields(data, at, end):
        if number == 1 and wire in (2, 5):  # packed, or each with a key of its own
            count, rest = divmod(value[1] - value[0], 4)
            if rest:
                raise ValueError(f"the floats at byte {value[0]} end in the middle of one")
            values += struct.unpack_from(f"<{count}f", data, value[0])
    return values


def _unpack_int64(data, at, end):
    values = []
    for number, wire, value in _encoding.fields(data, at, end):
        if number == 1 and wire == 0:
            values.append(_encoding.signed(value))
        elif number == 1 and wire == 2:
            at, stop = value
            while at < stop:
                one, at = _encoding.read_varint(data, at, stop)
                values.append(_encoding.signed(one))
    return values


_UNPACK = {BYTES: _unpack_bytes, FLOAT: _unpack_floats, INT64: _unpack_int64}
