"""The messages of proto/{wire,node,control}.proto that Python speaks, in protobuf's encoding, without protobuf: a Python
that only runs TensorFlow programs may have none, or one of a version of its own.

A message is a dict of its fields that are set. MESSAGES names the fields: (number, type), a type in a list for a repeated
field; tests/python/test_tf_wire.py compares it with the .proto files.
"""

import struct

MESSAGES = {
    "Job": {
        "workers": (3, "int"),
        "attempt": (5, "int"),
        "coordinator": (6, "str"),
        "host": (7, "str"),
        "token": (8, "bytes"),
        "join_timeout": (17, "double"),
        "step_timeout": (18, "double"),
        "task_seconds": (31, "double"),
        "unpack_seconds": (32, "double"),
        "node": (39, "NodeJob"),
    },
    "NodeJob": {
        "queue": (1, ["str"]),
        "budget": (2, "int"),
        "alone": (3, "bool"),
        "port": (4, "int"),
        "executor": (5, "int"),
        "work_folder": (6, "str"),
        "listener": (7, "int"),
    },
    "Note": {"member": (1, "int"), "text": (2, "bytes")},
    "Input": {"wish": (6, "Input.Wish"), "note": (7, "Note")},
    "Input.Wish": {"snapshot": (1, "bool"), "stop": (2, "bool")},
    "Event": {
        "listening": (1, "Event.Listening"),
        "joined": (2, "Event.Joined"),
        "failed": (7, "Event.Failed"),
        "done": (8, "Event.Done"),
        "started": (12, "Event.Started"),
        "note": (14, "Note"),
    },
    "Event.Listening": {"address": (1, "str")},
    "Event.Joined": {
        "worker": (1, "int"),
        "host": (2, "str"),
        "have": (3, "int"),
        "want": (4, "int"),
        "task_seconds": (5, "double"),
        "unpack_seconds": (6, "double"),
        "about": (7, "bytes"),
    },
    "Event.Failed": {"story": (1, "str"), "kind": (2, "str")},
    "Event.Done": {},
    "Event.Started": {},
    "ToCoordinator": {
        "hello": (1, "ToCoordinator.Hello"),
        "report": (4, "Event"),
        "query": (8, "ToCoordinator.Query"),
    },
    "ToCoordinator.Hello": {
        "version": (1, "str"),
        "member": (2, "int"),
        "host": (4, "str"),
        "pid": (5, "int"),
        "about": (10, "bytes"),
        "brief": (11, "bool"),
    },
    "ToCoordinator.Query": {"wait": (1, "bool")},
    "ToMember": {"abort": (3, "ToMember.Abort"), "members": (6, "ToMember.Members")},
    "ToMember.Abort": {"story": (1, "str"), "kind": (2, "str")},
    "ToMember.Members": {"about": (1, ["bytes"]), "complete": (2, "bool")},
    "NodeAbout": {"role": (1, "str"), "meta": (2, "bytes")},
    "NodeInput": {
        "join": (1, "NodeInput.Join"),
        "compute": (2, "NodeInput.Compute"),
        "here": (3, "NodeInput.Here"),
        "ended": (4, "NodeInput.Ended"),
        "leave": (5, "NodeInput.Leave"),
        "release": (6, "NodeInput.Release"),
    },
    "NodeInput.Join": {"about": (1, "bytes")},
    "NodeInput.Compute": {
        "argument": (1, ["str"]),
        "environment": (2, ["str"]),
        "folder": (3, "str"),
        "payload": (4, "bytes"),
        "stays": (5, "bool"),
        "beside": (6, "bool"),
    },
    "NodeInput.Here": {},
    "NodeInput.Ended": {"failed": (1, "str")},
    "NodeInput.Leave": {},
    "NodeInput.Release": {},
    "NodeEvent": {
        "ready": (1, "NodeEvent.Ready"),
        "started": (2, "NodeEvent.Started"),
        "computing": (3, "NodeEvent.Computing"),
        "failed": (4, "NodeEvent.Failed"),
        "over": (5, "NodeEvent.Over"),
    },
    "NodeEvent.Ready": {"address": (1, "str"), "port": (2, "int"), "feed": (3, "str")},
    "NodeEvent.Started": {"about": (1, ["bytes"]), "member": (2, "int")},
    "NodeEvent.Computing": {"pid": (1, "int")},
    "NodeEvent.Failed": {"story": (1, "str"), "kind": (2, "str")},
    "NodeEvent.Over": {},
    "NodeRequest": {
        "put": (1, "NodeRequest.Put"),
        "get": (2, "NodeRequest.Get"),
        "done": (3, "NodeRequest.Done"),
        "join": (4, "NodeRequest.Join"),
        "drop": (5, "NodeRequest.Drop"),
        "open": (6, "NodeRequest.Open"),
        "look": (7, "NodeRequest.Look"),
        "set": (8, "NodeRequest.Set"),
        "fail": (9, "NodeRequest.Fail"),
        "port": (10, "NodeRequest.Port"),
        "count": (11, "NodeRequest.Count"),
    },
    "NodeRequest.Put": {
        "queue": (1, "str"),
        "rows": (2, "int"),
        "bytes": (3, "int"),
        "mark": (4, "int"),
        "feed": (5, "int"),
        "keep": (6, "bool"),
        "timeout": (7, "double"),
        "block": (8, "bytes"),
    },
    "NodeRequest.Get": {"queue": (1, "str"), "feed": (2, "int"), "timeout": (3, "double")},
    "NodeRequest.Done": {"queue": (1, "str"), "bytes": (2, "int"), "count": (3, "int")},
    "NodeRequest.Join": {"queue": (1, "str"), "timeout": (2, "double")},
    "NodeRequest.Drop": {"queue": (1, "str")},
    "NodeRequest.Open": {},
    "NodeRequest.Look": {"key": (1, "str")},
    "NodeRequest.Set": {"key": (1, "str"), "value": (2, "bytes")},
    "NodeRequest.Fail": {"story": (1, "str")},
    "NodeRequest.Port": {},
    "NodeRequest.Count": {"queue": (1, "str")},
    "NodeAnswer": {
        "failed": (1, "str"),
        "kind": (2, "str"),
        "taken": (3, "bool"),
        "mark": (4, "int"),
        "rows": (5, "int"),
        "first": (6, "int"),
        "count": (7, "int"),
        "bytes": (8, "int"),
        "feed": (9, "int"),
        "value": (10, "bytes"),
        "block": (11, "bytes"),
    },
    "NodeNote": {
        "end": (1, "NodeNote.End"),
        "stop": (2, "NodeNote.Stop"),
        "drained": (3, "NodeNote.Drained"),
        "replay": (4, "NodeNote.Replay"),
        "replayed": (5, "NodeNote.Replayed"),
        "state": (6, "NodeNote.State"),
        "fed": (7, "NodeNote.Fed"),
    },
    "NodeNote.End": {},
    "NodeNote.Stop": {},
    "NodeNote.Drained": {"queue": (1, "str"), "serial": (2, "int")},
    "NodeNote.Replay": {"queue": (1, "str"), "epochs": (2, "int"), "serial": (3, "int")},
    "NodeNote.Replayed": {"serial": (1, "int"), "failed": (2, "str")},
    "NodeNote.State": {"state": (1, "str")},
    "NodeNote.Fed": {
        "rows": (1, "int"),
        "taken": (2, "int"),
        "bytes": (3, "int"),
        "idle": (4, "double"),
        "full": (5, "double"),
    },
}

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
    """The fields of a message that are set; fields that are not known are left out. ValueError for what is no message."""
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
