"""What users read of an exception that ended their program on a node, or a job of Spark's that was to feed it."""

import re
import sys
import traceback

_RAISED = re.compile(r"Traceback \(most recent call last\):\n((?:[ \t].*\n)*)(\S.*)")
_FRAME = re.compile(r'^ +File "(.+)", line (\d+), in (.+)$', re.MULTILINE)
_LOST_TASK = re.compile(r"most recent failure: Lost task \S+ in stage \S+ \(TID \d+\) \([^)]*\): (.+)")
_CALLED = re.compile(r"An error occurred while calling .+\n: (.+)")  # py4j's
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([^']+)'")
_MODULE_REMEDY = (
    "install it there, name another Python with spark.pyspark.python or PYSPARK_PYTHON, or send files of your own with "
    "--py-files"
)


class JobError(Exception):
    """A job of Spark's that was to feed the programs has failed. Attributes: why, in a line."""

    def __init__(self, why):
        super().__init__(
            f"a job of Spark's that was to feed the programs has failed: {why}; correct what makes the rows, and call "
            "train() again"
        )
        self.why = why


def of_exception(role):
    """The traceback of the exception that is being handled, in a node of that job name; with a remedy where a
    module is missing, or where it is TensorFlow's about a path.
    """
    text, error = traceback.format_exc(), sys.exc_info()[1]
    scheme = re.search(r"UnimplementedError: File system scheme '([^']+)'", text)
    remedy = ""
    if isinstance(error, ModuleNotFoundError):
        remedy = f"{sys.executable}, the Python of this node, has no module {error.name}: {_MODULE_REMEDY}\n"
    elif scheme:
        remedy = (
            f"TensorFlow's wheels open no {scheme[1]}:// paths. Write to a local folder and copy it with "
            "ctx.upload(local, path); read by ctx.local_files(path) or ctx.local_folder(path), which copy it here\n"
        )
    return f"Exception in {role}:\n{text}{remedy}"


def of_job(error):
    """What a job of Spark's has failed with, in a line, where its errors have hundreds: of a function in Python the
    exception and where it was raised, else the cause of the last task that was lost, else Java's exception. With a
    remedy where a module is missing.
    """
    if isinstance(error, KeyboardInterrupt):
        return "it was interrupted (KeyboardInterrupt)"
    if isinstance(error, JobError):
        return error.why
    text = str(error)
    # An error of Java's in Python's callback has a traceback of its own before that of the executor.
    raised = next((r for r in _RAISED.finditer(text) if not r[2].startswith("py4j.")), None)
    if raised is None:
        java = _LOST_TASK.search(text) or _CALLED.search(text)
        kind = "" if type(error) is Exception else f"{type(error).__name__}: "
        return java[1] if java else f"{kind}{' '.join(text.split())[:500]}"
    frames, what = raised.groups()
    missing = _NO_MODULE.match(what)
    if missing:
        return f"the executors' Python has no module {missing[1]}: {_MODULE_REMEDY}"
    frame = [f for f in _FRAME.findall(frames)[-1:] if "tensorflowonspark/" not in f[0]]  # else the text says it
    return what.removeprefix("Exception: ") + "".join(
        f' (File "{path}", line {line}, in {name})' for path, line, name in frame
    )
