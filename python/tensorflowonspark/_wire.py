"""The messages of proto/{wire,node,control}.proto that Python speaks, in protobuf's encoding, without protobuf: a
Python that only runs TensorFlow programs may have none, or one of a version of its own.

A message is a dict of its fields that are set, which _messages.py lists.
"""

import struct

from tensorflowonspark._messages import MESSAGES

# The marks of NodeRequest.Put and NodeAnswer.
NONE, END_OF_FEED, END_OF_PARTITION = range(3)

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_NAMES = {
    message: {number: (name, kind) for name, (number, kind) in fields.items()} for message, fields in MESSAGES.items()
}


def _varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(number, kind, value):
    if kind in ("int", "bool"):
        return _varint(number << 3 | _VARINT) + _varint(int(value))
    if kind == "double":
        return _varint(number << 3 | _FIXED64) + struct.pack("<d", value)
    if kind == "str":
        value = value.encode()
    elif kind != "bytes":
        value = encode(kind, value)
    return _varint(number << 3 | _BYTES) + _varint(len(value)) + bytes(value)


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


def _read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than 64 bits in a message")


def _signed(value):
    return value - (1 << 64) if value >> 63 else value


def _value(kind, wire, data, at):
    """One value, as `kind` has it, or None for a field that is not known, and where the next field begins."""
    if wire == _VARINT:
        raw, at = _read_varint(data, at)
        return {"int": _signed(raw), "bool": bool(raw)}.get(kind), at
    if wire in (_FIXED64, _FIXED32):
        size = 8 if wire == _FIXED64 else 4
        if at + size > len(data):
            raise ValueError("a message is cut off")
        return (struct.unpack_from("<d", data, at)[0] if kind == "double" else None), at + size
    if wire != _BYTES:
        raise ValueError(f"a field of wire type {wire} in a message")
    size, at = _read_varint(data, at)
    raw = bytes(data[at : at + size])
    if len(raw) < size:
        raise ValueError("a message is cut off")
    at += size
    if kind == "bytes":
        return raw, at
    if kind == "str":
        return raw.decode(errors="replace"), at
    return (decode(kind, raw) if kind in MESSAGES else None), at


def decode(message, data):
    """The fields of a message that are set; fields that are not known are left out. ValueError for what is no
    message.
    """
    known, fields, at = _NAMES[message], {}, 0
    try:
        while at < len(data):
            tag, at = _read_varint(data, at)
            name, kind = known.get(tag >> 3, (None, None))
            repeated = isinstance(kind, list)
            value, at = _value(kind[0] if repeated else kind, tag & 7, data, at)
            if name is None:
                continue
            if repeated:
                fields.setdefault(name, []).append(value)
            else:
                fields[name] = value
    except (IndexError, struct.error):
        raise ValueError("a message is cut off") from None
    return fields


def delimited(message, fields):
    """As on stdin and stdout of a child: the length as a varint, then the message."""
    data = encode(message, fields)
    return _varint(len(data)) + data


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
