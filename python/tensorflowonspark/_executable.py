"""Where the executable `crema` is: in this process's environment, or shipped by the driver with the job."""

import hashlib
import os
import pathlib
import platform
import shutil
import sys
import sysconfig
import tempfile
import urllib.parse
import zipfile

from tensorflowonspark import util

VARIABLE = "CREMA_EXECUTABLE"  # its path; comes before all else


_folders = []  # each is removed when this process ends


def _folder():
    _folders.append(tempfile.TemporaryDirectory(prefix="crema-", ignore_cleanup_errors=True))
    return _folders[-1].name


def _beside():
    """Candidates, without the network: of this installation, of a checkout, of the search path."""
    here = pathlib.Path(__file__).resolve()
    yield pathlib.Path(sysconfig.get_path("scripts")) / "crema"
    yield pathlib.Path(sys.executable).parent / "crema"
    if len(here.parents) > 2:
        yield here.parents[2] / "build/release/cli/crema"
    found = shutil.which("crema")
    if found:
        yield pathlib.Path(found)


def _of_jar(jar, folder):
    """The executable of a jar, unpacked into a folder; None when it has none."""
    try:
        with zipfile.ZipFile(jar) as archive:
            names = [n for n in archive.namelist() if n.endswith("/crema") and "linux" in n]
            if not names:
                return None
            to = pathlib.Path(folder) / "crema"
            to.write_bytes(archive.read(names[0]))
    except (OSError, zipfile.BadZipFile):
        return None
    to.chmod(0o755)
    return to


def local(jars=()):
    """The path of an executable on this machine. FileNotFoundError, with what to do, when there is none.

    Args:
      jars: paths of jars that may hold it.
    """
    given = os.environ.get(VARIABLE)
    if given:
        if not os.access(given, os.X_OK):
            raise FileNotFoundError(f"{VARIABLE} is {given}, which cannot be executed; name the executable crema")
        return given
    shipped = _shipped()
    for path in filter(None, [shipped, *_beside()]):
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    for jar in jars:
        unpacked = _of_jar(jar, _folder())
        if unpacked:
            return str(unpacked)
    raise FileNotFoundError(
        f"there is no executable crema here: install the wheel, give Spark crema's jar with --jars, or set {VARIABLE}"
    )


_PREFIX = "crema-executable-"


def _shipped():
    """What the driver has sent with SparkContext.addFile."""
    try:
        from pyspark import SparkFiles

        root = pathlib.Path(SparkFiles.getRootDirectory()).resolve()
    except Exception:  # no Spark here, or not in a task
        return None
    return next(iter(sorted(root.glob(_PREFIX + "*"))), None)


def _jars(sc):
    """Paths of the jars of a SparkContext that may hold it. The driver's class path says it however the jar came there:
    --jars is spark.jars on some managers and spark.yarn.dist.jars on another, and may name a file on HDFS.
    """
    loader = sc._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    found = loader.getResource(f"native/linux-{platform.machine()}/crema")
    url = found.toString() if found is not None else ""  # jar:file:/folder/some.jar!/native/...
    if url.startswith("jar:file:"):
        yield urllib.parse.unquote(url.removeprefix("jar:file:").rpartition("!")[0])
    # A session that was made in a JVM that ran already has its jars for executors only.
    for jar in filter(None, sc.getConf().get("spark.jars", "").split(",")):
        yield jar.split(":", 1)[-1] if jar.startswith("file:") else jar


def ship(sc):
    """Sends the executable to all executors of a SparkContext, or of a session of Spark Connect, once."""
    if util.is_connect(sc):
        _send(sc, local(), lambda path: sc.addArtifacts(path, file=True))
    else:
        _send(sc, local(_jars(sc)), sc.addFile)


def _send(sc, path, send):
    with open(path, "rb") as f:
        digest = hashlib.sha256(f.read()).hexdigest()[:16]
    if getattr(sc, "_crema_shipped", None) == digest:
        return
    to = pathlib.Path(_folder()) / (_PREFIX + digest)
    shutil.copyfile(path, to)
    to.chmod(0o755)
    send(str(to))
    sc._crema_shipped = digest
