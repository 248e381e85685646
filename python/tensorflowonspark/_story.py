"""What users read of an exception that ended their program on a node."""

import re
import sys
import traceback


def of_exception(role):
    """The traceback of the exception that is being handled, in a node of that job name; with a remedy where a
    module is missing, or where it is TensorFlow's about a path.
    """
    text, error = traceback.format_exc(), sys.exc_info()[1]
    scheme = re.search(r"UnimplementedError: File system scheme '([^']+)'", text)
    remedy = ""
    if isinstance(error, ModuleNotFoundError):
        remedy = (
            f"{sys.executable}, the Python of this node, has no module {error.name}: install it there, name another "
            "Python with spark.pyspark.python or PYSPARK_PYTHON, or send files of your own with --py-files\n"
        )
    elif scheme:
        remedy = (
            f"TensorFlow's wheels open no {scheme[1]}:// paths. Write to a local folder and copy it with "
            "ctx.upload(local, path); read by ctx.local_files(path) or ctx.local_folder(path), which copy it here\n"
        )
    return f"Exception in {role}:\n{text}{remedy}"
