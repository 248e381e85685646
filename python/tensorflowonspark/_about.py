"""What a node says about itself to all others, as bytes."""

import base64
import json

from tensorflowonspark import _wire


def _json_of(meta):
    def other(value):
        if isinstance(value, (bytes, bytearray)):
            return {"__bytes__": base64.b64encode(value).decode()}
        if hasattr(value, "item"):
            return value.item()
        raise TypeError(
            f"a reservation cannot hold {type(value).__name__}: numbers, str, bytes, lists and dicts it can"
        )

    return json.dumps(meta, default=other).encode()


def _of_json(data):
    return json.loads(data, object_hook=lambda d: base64.b64decode(d["__bytes__"]) if set(d) == {"__bytes__"} else d)


def about(meta):
    """The bytes with which a member says `meta`, a dict, about itself."""
    fields = {"role": "a client", "meta": _json_of(meta)}
    if isinstance(meta, dict) and "job_name" in meta:
        fields |= {"role": f"{meta['job_name']}:{meta['task_index']}", "number": meta.get("executor_id")}
        fields["serves"] = meta["job_name"] in ("ps", "evaluator")
    return _wire.encode("NodeAbout", fields)


def meta_of(data):
    """What about() was given."""
    return _of_json(_wire.decode("NodeAbout", data).get("meta", b"{}"))
