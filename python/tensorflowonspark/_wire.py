"""The messages of proto/{wire,node,control}.proto that Python speaks, in protobuf's encoding, without protobuf: a
Python that only runs TensorFlow programs may have none, or one of a version of its own.

A message is a dict of its fields that are set, which _messages.py lists.
"""

import struct

from tensorflowonspark import _encoding
from tensorflowonspark._messages import MESSAGES

# The marks of NodeRequest.Put and NodeAnswer.
NONE, END_OF_FEED, END_OF_PARTITION, END_OF_EPOCH = range(4)

_NAMES = {
    message: {number: (name, kind) for name, (number, kind) in fields.items()} for message, fields in MESSAGES.items()
}


def _field(number, kind, value):
    if kind in ("int", "bool"):
        return _encoding.varint(number << 3 | _encoding.VARINT) + _encoding.varint(int(value))
    if kind == "double":
        return _encoding.varint(number << 3 | _encoding.FIXED64) + struct.pack("<d", value)
    if kind == "str":
        value = value.encode()
    elif kind != "bytes":
        value = encode(kind, value)
    return _encoding.field(number, bytes(value))


def encode(message, fields):
    """The bytes of a message; fields that are None are left out. KeyError for a field that it does not have."""
    known, out = MESSAGES[message], []
    for name, value in fields.items():
        number, kind = known[name]
        if value is None:
            continue
        if isinstance(kind, list):
            out.extend(_field(number, kind[0], one) for one in value)
        else:
            out.append(_field(number, kind, value))
    return b"".join(out)


def _value(kind, wire, value, data):
    """A value as `kind` has it; None for a field that is not known."""
    if wire == _encoding.VARINT:
        return {"int": _encoding.signed(value), "bool": bool(value)}.get(kind)
    raw = data[slice(*value)]
    if wire == _encoding.FIXED64 and kind == "double":
        return struct.unpack("<d", raw)[0]
    if wire != _encoding.BYTES:
        return None
    if kind == "bytes":
        return raw
    if kind == "str":
        return raw.decode(errors="replace")
    return decode(kind, raw) if kind in MESSAGES else None


def decode(message, data):
    """The fields of a message that are set; fields that are not known are left out. ValueError for what is no
    message.
    """
    known, found = _NAMES[message], {}
    for number, wire, raw in _encoding.fields(data, 0, len(data)):
        name, kind = known.get(number, (None, None))
        if name is None:
            continue
        if isinstance(kind, list):
            found.setdefault(name, []).append(_value(kind[0], wire, raw, data))
        else:
            found[name] = _value(kind, wire, raw, data)
    return found


def delimited(message, fields):
    """As on stdin and stdout of a child: the length as a varint, then the message."""
    data = encode(message, fields)
    return _encoding.varint(len(data)) + data


def read_delimited(message, stream):
    """The next message of a binary stream; None at its end."""
    size = shift = 0
    while True:
        byte = stream.read(1)
        if not byte:
            return None
        size |= (byte[0] & 127) << shift
        if byte[0] < 128:
            break
        shift += 7
    data = stream.read(size)
    return decode(message, data) if len(data) == size else None


def framed(message, fields):
    """As between processes: the length as u32 little endian, then the message."""
    data = encode(message, fields)
    return struct.pack("<I", len(data)) + data
