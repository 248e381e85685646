"""What users read of an exception that ended their program on a node."""

import re
import traceback


def of_exception(role):
    """The traceback of the exception that is being handled, in a node of that job name; with a remedy where it is
    TensorFlow's about a path.
    """
    text = traceback.format_exc()
    scheme = re.search(r"File system scheme '([^']+)' not implemented", text)
    if not scheme:
        return f"Exception in {role}:\n{text}"
    remedy = (
        f"TensorFlow's wheels open no {scheme[1]}:// paths. Write to a local folder and copy it with "
        "ctx.upload(local, path); read by ctx.local_files(path) or ctx.local_folder(path), which copy to this node"
    )
    return f"Exception in {role}:\n{text}{remedy}\n"
