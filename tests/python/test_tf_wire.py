"""The Python that speaks to `crema node` and `crema coordinator` knows their messages as the .proto files have them."""

import struct
import subprocess

import pytest

import spark_session  # noqa: E402,F401  puts python/ on the path

from conftest import ROOT  # noqa: E402
from tensorflowonspark import _wire  # noqa: E402

TYPES = {1: "double", 3: "int", 4: "int", 5: "int", 8: "bool", 9: "str", 12: "bytes", 13: "int", 14: "int"}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """{message: {field: (number, type)}} of the .proto files, as protoc reads them."""
    descriptor_pb2 = pytest.importorskip("google.protobuf.descriptor_pb2")
    out = tmp_path_factory.mktemp("proto") / "all"
    protos = ["wire.proto", "node.proto", "control.proto"]
    subprocess.run(
        ["protoc", f"-I{ROOT / 'proto'}", f"--descriptor_set_out={out}", *protos], check=True, cwd=ROOT / "proto"
    )
    files = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())
    messages = {}

    def add(message, prefix, package):
        name = prefix + message.name
        fields = {}
        for f in message.field:
            kind = TYPES[f.type] if f.type in TYPES else f.type_name.removeprefix(f".{package}.")
            kind = kind.removeprefix(".crema.wire.")
            fields[f.name] = (f.number, [kind] if f.label == 3 else kind)
        messages[name] = fields
        for inner in message.nested_type:
            add(inner, name + ".", package)

    for file in files.file:
        for message in file.message_type:
            add(message, "", file.package)
    return messages


def test_every_field_is_as_the_proto_files_have_it(written):
    assert "NodeRequest.Put" in written
    for message, fields in _wire.MESSAGES.items():
        for name, field in fields.items():
            assert written[message].get(name) == field, f"{message}.{name}"


def test_all_of_the_private_sockets_messages_are_known(written):
    for message, fields in written.items():
        if message.split(".")[0] in ("NodeRequest", "NodeAnswer", "NodeNote", "NodeInput", "NodeEvent", "NodeAbout"):
            assert _wire.MESSAGES[message].keys() == fields.keys(), message


def test_what_protobuf_writes_is_read_and_the_other_way_round(written, tmp_path):
    fields = {
        "queue": "Zürich",
        "rows": -3,
        "bytes": 1 << 40,
        "mark": 2,
        "feed": 300,
        "keep": True,
        "timeout": 0.1,
    }
    text = (
        'put {queue: "Zürich" rows: -3 bytes: 1099511627776 mark: END_OF_PARTITION feed: 300 keep: true timeout: 0.1}'
    )
    protoc = ["protoc", f"-I{ROOT / 'proto'}", "node.proto"]
    data = subprocess.run(
        [*protoc, "--encode=crema.wire.NodeRequest"],
        input=text.encode(),
        capture_output=True,
        check=True,
        cwd=ROOT / "proto",
    ).stdout
    assert _wire.decode("NodeRequest", data) == {"put": fields}
    assert _wire.encode("NodeRequest", {"put": fields}) == data


def test_unknown_fields_are_passed_over():
    extra = _wire.encode("NodeNote", {"fed": {"rows": 5, "idle": 2.5}})
    strange = b"\xf8\x07\x01" + b"\xfa\x07\x03abc" + b"\xf9\x07" + struct.pack("<d", 1) + b"\xfd\x07" + bytes(4)
    assert _wire.decode("NodeNote", strange + extra) == {"fed": {"rows": 5, "idle": 2.5}}


@pytest.mark.parametrize("data", [b"\x0a", b"\x0a\x05abc", b"\x80" * 11, b"\x0b", b"\x39\x00"])
def test_what_is_no_message_is_a_value_error(data):
    with pytest.raises(ValueError):
        _wire.decode("NodeRequest", data)
