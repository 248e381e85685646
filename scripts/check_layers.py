#!/usr/bin/env python3
"""The architecture is the include graph: which folder may include which. A wrong edge, a file or a function too long
without a reason, or a read of the wall clock fails.
"""

import ast
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Folder -> folders it may include besides itself. Tests may also include gtest and tests/support.
MAY = {
    "base": "",
    "tensor": "base",
    "kernels": "base tensor",
    "model": "base",
    "data": "base tensor model",
    "picture": "base",
    "layers": "base tensor kernels model",
    "net": "base tensor kernels model",
    "solver": "base tensor kernels model net",
    "collective": "base tensor",
    "train": "base tensor kernels model data layers net solver collective",
    "exchange": "base tensor kernels model layers net",
    "cluster": "base",
    "node": "base cluster",
    "worker": "base tensor kernels model data layers net solver collective train cluster",
    "api": "base tensor kernels model data picture layers net solver train",
    "host": "base tensor kernels model data layers net solver collective train cluster worker node",
    "cli": "base tensor kernels model data picture layers net solver collective train exchange cluster worker node "
    "host",
}
MAY = {folder: set(others.split()) for folder, others in MAY.items()}
# Single files that a folder may include from one it may not include as a whole.
FILES = {
    "picture": {"data/encode.h"},
    "layers": {"data/batch_feed.h", "data/hdf5_source.h", "data/source.h", "data/image_list.h", "data/window_file.h"},
    "net": {
        "layers/layer.h",
        "layers/norm_group.h",
        "layers/pool_group.h",
        "layers/sum_group.h",
        "layers/registry.h",
        "layers/record_layer.h",
    },
    "solver": {"layers/layer.h", "layers/registry.h", "layers/record_layer.h"},
}
# Generated messages, and who may know them.
MESSAGES = {
    "caffe.pb.h": set(MAY) - {"base", "tensor", "kernels", "collective", "cluster", "node"},
    "wire.pb.h": {"cluster", "worker", "node", "host", "cli"},
    "control.pb.h": {"cluster", "worker", "node"},
    "node.pb.h": {"node", "host"},
    "engine.pb.h": {"host"},
    "onnx.pb.h": {"exchange", "cli"},
}
# The wall clock may jump: no wait and no deadline may depend on it (engine/base/clock.h; System.nanoTime,
# time.monotonic). Who reads it, and why that ends no wait:
WALL_CLOCK = re.compile(
    r"\b(system_clock|utc_clock|CLOCK_REALTIME|gettimeofday|timespec_get|cond_timedwait|sem_timedwait|mutex_timedlock)\b"
    r"|\btime\((nullptr|NULL|0|&\w+)\)|\btime\.time\("
    r"|\bcurrentTimeMillis\b|\bInstant\.now\b|\bnew (java\.util\.)?Date\(\)"
)
READS_WALL_CLOCK = {
    "engine/base/log.cc": "the time of a log line",
    "engine/base/temporary.cc": "the age of another machine's files, which have no other one",
    "spark/src/main/scala/com/crema/Budget.scala": "seconds that are printed, from the time at which Spark began",
    "spark/src/main/scala/com/crema/NativeBinary.scala": "the age of what another JVM has left",
}
LONGEST = 300  # lines; a file may say "length:" and why in its first 30 lines
LONGEST_FUNCTION = 40  # lines; a "length:" comment in the five lines above it gives the reason
HEAD = re.compile(
    r"^( {0,4})(?!namespace|struct|class|enum|\}|extern|if|for|while|switch|do|else|const struct).*\)( const)?( "
    r"noexcept)?( override)?( ->.*)?( : .*)? \{$"
)


def folder_of(path):
    parts = path.relative_to(ROOT).parts
    return parts[1] if parts[0] == "engine" else parts[0]


def check_length(path):
    name, lines = str(path.relative_to(ROOT)), path.read_text().splitlines()
    if len(lines) > LONGEST and "length:" not in "\n".join(lines[:30]):
        yield f"{name}: {len(lines)} lines; split it, or say why in a `length:` comment at its top"


def check_includes(path):
    folder = folder_of(path)
    test = path.name.endswith("_test.cc")
    text = path.read_text()
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*#include "([^"]+)"', line)
        if not match:
            continue
        target = match.group(1)
        where = f"{path.relative_to(ROOT)}:{number}"
        if target in MESSAGES:
            if folder not in MESSAGES[target]:
                yield f"{where}: {folder} must not know {target}"
            continue
        other = target.split("/")[0]
        if other == folder or (test and other == "support"):
            continue
        if other not in MAY[folder] and target not in FILES.get(folder, set()):
            yield f"{where}: {folder} must not include {target}"
        if "kernels/vector/" in target and folder != "kernels":
            yield f"{where}: only kernels may include vector code"


def check_namespace(path):
    """Code is in the namespace of its folder; base and tensor are `crema` itself. Tests may have one of their own."""
    wanted = "crema" if folder_of(path) in ("base", "tensor") else f"crema::{folder_of(path)}"
    lines = path.read_text().splitlines()
    for number, line in enumerate(lines, 1):
        space = re.match(r"namespace (crema[\w:]*) \{$", line)
        declares = re.match(r"(class|struct) \w+;$", lines[number]) if space else None  # of another folder, and no more
        if space and not declares and space[1] != wanted and not space[1].startswith(wanted + "::"):
            yield f"{path.relative_to(ROOT)}:{number}: namespace {space[1]}; code of this folder is in {wanted}"


def long_python_functions(path):
    lines = path.read_text().splitlines()
    for node in ast.walk(ast.parse("\n".join(lines))):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        length = node.end_lineno - node.lineno
        excused = any("length:" in line for line in lines[max(0, node.lineno - 6) : node.lineno])
        if length > LONGEST_FUNCTION and not excused:
            yield (
                f"{path.relative_to(ROOT)}:{node.lineno}: a function of {length + 1} lines; split it, or say why in "
                "a `length:` comment above it"
            )


def long_functions(path):
    """C++ functions by clang-format's layout: an opening line, then the brace that closes at the same indentation."""
    lines, open_heads = path.read_text().splitlines(), []
    for i, line in enumerate(lines):
        if head := HEAD.match(line):
            open_heads.append((len(head.group(1)), i))
        closing = re.match(r"^( *)\}", line)
        while closing and open_heads and len(closing.group(1)) <= open_heads[-1][0]:
            indent, start = open_heads.pop()
            excused = any("length:" in line for line in lines[max(0, start - 5) : start])
            if len(closing.group(1)) == indent and i - start > LONGEST_FUNCTION and not excused:
                yield (
                    f"{path.relative_to(ROOT)}:{start + 1}: a function of {i - start + 1} lines; split it, or say "
                    "why in a `length:` comment above it"
                )


def wall_clocks(paths):
    readers = {str(path.relative_to(ROOT)) for path in paths if WALL_CLOCK.search(path.read_text())}
    for name in sorted(readers - set(READS_WALL_CLOCK)):
        yield f"{name}: it reads the wall clock, which may jump; if no wait depends on it, add it to READS_WALL_CLOCK"
    for name in sorted(set(READS_WALL_CLOCK) - readers):
        yield f"{name}: it reads no wall clock any more; remove it from READS_WALL_CLOCK"


def types_of(path):
    """Types that a file defines at the top of a namespace that has a name."""
    spaces = []
    for line in path.read_text().splitlines():
        if space := re.match(r"namespace ?([\w:]*) ?\{", line):
            spaces.append(space[1])
        elif re.match(r"\}  // namespace", line) and spaces:
            spaces.pop()
        elif (
            type_ := re.match(r"(?:struct|class|enum|enum class) (\w+)(?: final)?(?: :[^;]*)? \{", line)
        ) and "" not in spaces:
            yield "::".join([*spaces, type_[1]])


def same_names(paths):
    """One program links all of them: two types of one name would be undefined behaviour without any diagnostic."""
    where = {}
    for path in paths:
        for name in types_of(path):
            if where.setdefault(name, path) != path:
                yield (
                    f"{path.relative_to(ROOT)}: there is a {name} in {where[name].relative_to(ROOT)} already; give "
                    "one of them another name"
                )


def tests_of_no_program(paths):
    text = (ROOT / "CMakeLists.txt").read_text()
    folders = [ROOT / m for m in re.findall(r"^  crema_tests\(\w+ (\S+) ", text, re.M)]
    for path in paths:
        if path.name.endswith("_test.cc") and not any(f in path.parents for f in folders):
            yield f"{path.relative_to(ROOT)}: no crema_tests() of CMakeLists.txt compiles it; add one for its folder"


def files(tops, *suffixes):
    return [f for top in tops for f in sorted((ROOT / top).rglob("*")) if f.suffix in suffixes]


def main():
    ours = files(("engine", "cluster", "worker", "node", "host", "api", "cli"), ".h", ".cc", ".cpp")
    tests, python = files(("tests",), ".h", ".cc", ".cpp"), files(("tests", "python"), ".py")
    mistakes = [m for f in ours for m in check_includes(f)]
    mistakes += [m for f in ours if not f.name.endswith("_test.cc") for m in check_namespace(f)]
    mistakes += [m for f in ours + tests + python for m in check_length(f)]
    mistakes += [m for f in ours + tests if not f.name.endswith("_test.cc") for m in long_functions(f)]
    mistakes += [m for f in python for m in long_python_functions(f)]
    hosts = files(("spark/src/main", "spark/tensorflow/src/main", "python"), ".scala", ".java", ".py")
    mistakes += wall_clocks([f for f in ours if not f.name.endswith("_test.cc")] + hosts)
    mistakes += tests_of_no_program(ours + tests)
    mistakes += same_names([f for f in ours if not f.name.endswith("_test.cc")])
    print(
        "\n".join(mistakes)
        if mistakes
        else f"{len(ours)} files, every include goes down; {len(tests + python)} more, none too long"
    )
    sys.exit(1 if mistakes else 0)


main()
