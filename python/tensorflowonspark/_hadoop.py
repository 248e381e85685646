"""Copies from and to Hadoop's file systems, through Hadoop's own client in the executor's class path.

TensorFlow's wheels open no hdfs://. A JVM of its own for each call costs a second or two and takes every file system,
configuration and delegation token that the executor has. Decided against: libhdfs, which is native and would have to be
installed; WebHDFS, which is HDFS alone, and not with Kerberos; the executor's JVM itself, which Python cannot call.
"""

import atexit
import functools
import glob
import itertools
import os
import shutil
import subprocess
import tempfile

from tensorflowonspark import _node

_SECONDS = 600  # for each of the two calls
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


def _shell(*arguments):
    """What `hadoop fs` prints. OSError with what it says when it fails."""
    pid = _node.executor_pid()
    if not pid:
        raise OSError(
            f"hadoop fs {' '.join(arguments[:2])} cannot run: there is no executor above process {os.getpid()}, whose "
            "class path has Hadoop's client; call it in a program that TFCluster or TFParallel runs"
        )
    command, environment, folder = _client(pid)
    done = subprocess.run(
        [*command, *arguments],
        env=environment,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
    )
    if done.returncode != 0:
        raise OSError(
            f"hadoop fs {' '.join(arguments[:2])} failed: {_reason(done.stderr, arguments[0][1:])}; look at the path, "
            "and at the configuration and rights that the executors have"
        )
    return done.stdout


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


def local_files(url, share):
    """Paths on this machine of files that match a pattern, in the order of their names.

    Args:
      url: absolute, with * ? [] {} as Hadoop's globs have them. Files of file:// are not copied.
      share: (index, count): of all n files those at index, index + count, ...
    """
    index, count = share
    if url.startswith("file://"):
        path = url.removeprefix("file://")
        found = sorted(p for p in glob.glob(path) if os.path.isfile(p))
    else:
        listed = _shell("-ls", "-d", url).splitlines()
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
        _shell("-get", *some, to)
        copies += [os.path.join(to, os.path.basename(name)) for name in some]
    return copies


def upload(local, url):
    """Copies a file, or a folder with what is in it, to a path; what is there is replaced, but in a folder."""
    if not os.path.exists(local):
        raise FileNotFoundError(f"{local} cannot be copied to {url}: there is no such file or folder on this machine")
    _shell("-put", "-f", os.path.abspath(local), url)
