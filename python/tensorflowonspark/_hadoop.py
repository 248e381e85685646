"""Copies from and to Hadoop's file systems, through Hadoop's own client in the executor's class path.

TensorFlow's wheels open no hdfs://. A JVM of its own for each call costs a second or two and takes every file system,
configuration and delegation token that the executor has. Decided against: libhdfs, which is native and would have to be
installed; WebHDFS, which is HDFS alone, and not with Kerberos; the executor's JVM itself, which Python cannot call.
"""

import atexit
import contextlib
import functools
import glob
import itertools
import os
import shutil
import subprocess
import tempfile
import time

from tensorflowonspark import _node

SILENCE = 600  #: seconds in which a copy may move nothing
_LIFE = 4096  # bytes; less is no copy but its client, which says that it still waits
_LOOK = 0.5  # seconds between two looks at what has been moved
_CLASS_PATH = ("-cp", "-classpath", "--class-path")
_LINE = 50_000  # bytes of names in one command; Linux takes 128 KiB in an argument and 2 MiB in all


def _words(pid, name):
    with open(f"/proc/{pid}/{name}", "rb") as f:
        return [os.fsdecode(word) for word in f.read().split(b"\0") if word]


def _options(words):
    """What a JVM that is to see the same files takes over of the options of another one."""
    options, words = [], iter(words)
    for word in words:
        if not word.startswith("-"):
            return options  # the main class
        if word in (*_CLASS_PATH, "--add-opens", "--add-exports", "--add-modules"):
            options += [word, next(words)]
        elif word.startswith(("-D", "--add-")) and not word.startswith("-Dcom.sun.management"):  # whose port is taken
            options.append(word)
    return options


def _default_configuration():
    """A folder with a core-site.xml that says nothing: Hadoop's shell does not start without one, and a Spark that was
    downloaded has none.
    """
    folder = os.path.join(_folder(os.getpid()), "configuration")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "core-site.xml"), "w") as f:
        f.write("<configuration/>")
    return folder


def _client(pid):
    """(command, environment, folder) of a JVM that runs Hadoop's shell as the JVM `pid` would: with its class path, its
    properties and its configuration.
    """
    brief = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    options = _options(_words(pid, "cmdline")[1:])
    environment = dict(word.partition("=")[::2] for word in _words(pid, "environ"))
    java, last = os.readlink(f"/proc/{pid}/exe"), ":" + _default_configuration()  # what is found before it wins
    path = next((i + 1 for i, word in enumerate(options) if word in _CLASS_PATH), None)
    if path is not None:
        options[path] += last
    else:
        environment["CLASSPATH"] = environment.get("CLASSPATH", "") + last
    return [java, *options, *brief, "org.apache.hadoop.fs.FsShell"], environment, os.readlink(f"/proc/{pid}/cwd")


def _reason(said, command):
    """What Hadoop's shell says, without the lines of its log and of Java's stack."""
    lines = said.splitlines()
    reasons = [line for line in lines if command + ": " in line]
    reasons = reasons or [line for line in lines if line.startswith(("Exception in thread", "Caused by: "))]
    return "; ".join(reasons) or said[-1000:]


def _moved(pid):
    """Bytes that a process has read and written, of files and connections."""
    try:
        with open(f"/proc/{pid}/io") as f:
            counts = dict(line.split(": ") for line in f.read().splitlines())
    except (OSError, ValueError):
        return 0
    return int(counts.get("rchar", 0)) + int(counts.get("wchar", 0))


def _run(command, environment, folder, silence):
    """(exit code, what it wrote to stdout, to stderr). It may take any time while it moves bytes: TimeoutError, and its
    end, after `silence` seconds without.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            command, env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=said
        )
        moved, since = 0, time.monotonic()
        try:
            while process.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(min(_LOOK, silence / 4))
                now = _moved(process.pid)
                if now >= moved + _LIFE:
                    moved, since = now, time.monotonic()
                elif time.monotonic() - since > silence and process.poll() is None:
                    raise TimeoutError(f"it has moved nothing for {silence:g} s, and was ended")
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        return process.returncode, *(f.seek(0) or f.read().decode(errors="replace") for f in (out, said))


def _shell(*arguments, silence=SILENCE):
    """What `hadoop fs` prints. OSError with what it says when it fails."""
    pid = _node.executor_pid()
    if not pid:
        raise OSError(
            f"hadoop fs {' '.join(arguments[:2])} cannot run: there is no executor above process {os.getpid()}, whose "
            "class path has Hadoop's client; call it in a program that TFCluster or TFParallel runs"
        )
    command, environment, folder = _client(pid)
    try:
        code, out, said = _run([*command, *arguments], environment, folder, silence)
    except TimeoutError as e:
        raise TimeoutError(
            f"hadoop fs {' '.join(arguments[:2])}: {e}; look at the file system's servers, or say a longer `silence`"
        ) from None
    if code != 0:
        raise OSError(
            f"hadoop fs {' '.join(arguments[:2])} failed: {_reason(said, arguments[0][1:])}; look at the path, and at "
            "the configuration and rights that the executors have"
        )
    return out


@functools.lru_cache(maxsize=1)
def _folder(process):
    """A folder of this process in its work folder, removed when it ends."""
    folder = tempfile.mkdtemp(prefix="crema-files-", dir=os.getcwd())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def remove_copies():
    """Removes what local_files() has copied: Spark's Python workers end without their exit handlers."""
    if _folder.cache_info().currsize:
        shutil.rmtree(_folder(os.getpid()), ignore_errors=True)
        _folder.cache_clear()


def _commands(files):
    """Lists of files: each of one folder, and with names that fit into a command."""
    for _, some in itertools.groupby(files, os.path.dirname):
        together, size = [], 0
        for file in some:
            if together and size + len(file) > _LINE:
                yield together
                together, size = [], 0
            together.append(file)
            size += len(file)
        yield together


def local_files(url, share, silence=SILENCE):
    """Paths on this machine of files that match a pattern, in the order of their names.

    Args:
      url: absolute, with * ? [] {} as Hadoop's globs have them. Files of file:// are not copied.
      share: (index, count): of all n files those at index, index + count, ...
      silence: seconds in which a copy may move nothing.
    """
    index, count = share
    if url.startswith("file://"):
        path = url.removeprefix("file://")
        found = sorted(p for p in glob.glob(path) if os.path.isfile(p))
    else:
        listed = _shell("-ls", "-d", url, silence=silence).splitlines()
        lines = [line.split(None, 7) for line in listed]
        found = sorted(fields[7] for fields in lines if len(fields) == 8 and fields[0].startswith("-"))
    if len(found) < count:
        raise FileNotFoundError(
            f"{url} matches {len(found)} file(s) and {count} node(s) take a share each: correct the pattern, write the "
            "data in more files, or let every node take all of them with share=(0, 1)"
        )
    mine = found[index::count]
    if url.startswith("file://"):
        return mine
    copies = []
    for some in _commands(mine):
        to = tempfile.mkdtemp(dir=_folder(os.getpid()))
        _shell("-get", *some, to, silence=silence)
        copies += [os.path.join(to, os.path.basename(name)) for name in some]
    return copies


def stat_files(pattern, silence=SILENCE):
    """Of the files that match: "milliseconds of their last change|bytes|name", in the order of their names."""
    lines = _shell("-stat", "%F|%Y|%b|%n", pattern, silence=silence).splitlines()
    return [line.partition("|")[2] for line in lines if line.startswith("regular file|")]


def get_folder(url, to, silence=SILENCE):
    """Copies a folder, with what is in it, to a path of this machine; what is there is replaced."""
    shutil.rmtree(to, ignore_errors=True)
    _shell("-get", url, to, silence=silence)


def local_folder(url, silence=SILENCE):
    """The path on this machine of a folder, or of its copy."""
    if url.startswith("file://"):
        if not os.path.isdir(url.removeprefix("file://")):
            raise FileNotFoundError(f"there is no folder {url} on this machine")
        return url.removeprefix("file://")
    to = os.path.join(tempfile.mkdtemp(dir=_folder(os.getpid())), "copy")
    get_folder(url, to, silence)
    return to


def _exists(url, silence):
    try:
        _shell("-ls", "-d", url, silence=silence)
    except OSError as e:
        if "No such file" in str(e):
            return False
        raise
    return True


def upload(local, url, silence=SILENCE):
    """Copies a file, which replaces one that is there, or a folder with what is in it. FileExistsError for a folder
    where something is: Hadoop would put it inside, and what is there would be taken for it.
    """
    if not os.path.exists(local):
        raise FileNotFoundError(f"{local} cannot be copied to {url}: there is no such file or folder on this machine")
    if os.path.isdir(local) and _exists(url, silence):
        raise FileExistsError(f"the folder {local} is not copied to {url}, which is there: remove it, or name another")
    _shell("-put", "-f", os.path.abspath(local), url, silence=silence)
