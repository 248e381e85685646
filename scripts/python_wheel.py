"""The build backend of pyproject.toml: one wheel with the executable (bin/crema), `import caffe`, CaffeOnSpark's
Python API (com.yahoo.ml.caffe), crema.ml and tensorflowonspark. It needs no package: a wheel is a zip file and three
texts. The distribution is called crema-spark, as crema is another's on the public index. Its tag names the oldest glibc
that has all that libcrema.so asks for; `make wheel` lets auditwheel say the same.

CREMA_BUILD names a build folder, configured with -DCREMA_PYTHON=ON, to use instead of build/wheel. Jars that maven has
made already go along, under crema/jars/.
"""

import base64
import hashlib
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PYTHON = ROOT / "python"
VERSION = re.search(r'__version__ = "(.+)"', (PYTHON / "crema/__init__.py").read_text()).group(1)
NAME = f"crema_spark-{VERSION}"
INFO = f"{NAME}.dist-info"
METADATA = f"""Metadata-Version: 2.1
Name: crema-spark
Version: {VERSION}
Summary: Caffe networks and TensorFlow programs inside a Spark job
License: Apache-2.0
Requires-Python: >=3.10
Requires-Dist: numpy>=1.22
Requires-Dist: protobuf>=4.21
Provides-Extra: spark
Requires-Dist: pyspark>=3.5; extra == "spark"
Provides-Extra: pictures
Requires-Dist: pillow; extra == "pictures"
"""
WHEEL = f"""Wheel-Version: 1.0
Generator: crema {VERSION}
Root-Is-Purelib: false
Tag: """


def build():
    """The folder that cmake built into."""
    given = os.environ.get("CREMA_BUILD")
    folder = pathlib.Path(given or ROOT / "build/wheel").resolve()
    for tool in ("cmake", "ninja", "protoc"):
        if not shutil.which(tool):
            sys.exit(
                f"error: there is no {tool}; install the Debian packages that scripts/packages.txt lists under `run`"
            )
    if not given:
        subprocess.run(
            ["cmake", "-S", ROOT, "--preset", "release", "-B", folder, "-DCREMA_TESTS=OFF"], check=True, cwd=ROOT
        )
    subprocess.run(
        ["cmake", "--build", folder, "-j", str(os.cpu_count()), "--target", "crema", "crema_python"], check=True
    )
    return folder


def protobuf_beside(library):
    """libcrema.so takes libprotobuf.so from its own folder first; the one that it was linked with."""
    for line in subprocess.run(["ldd", library], check=True, capture_output=True, text=True).stdout.splitlines():
        if line.split()[0].startswith("libprotobuf.so"):
            return pathlib.Path(line.split()[2])
    raise RuntimeError(f"{library} is linked with no libprotobuf.so")


def tag(library):
    """The platforms that have what a library asks of glibc."""
    symbols = subprocess.run(["objdump", "-T", library], check=True, capture_output=True, text=True).stdout
    newest = max(tuple(map(int, v)) for v in re.findall(r"GLIBC_(\d+)\.(\d+)", symbols))
    return f"py3-none-manylinux_{newest[0]}_{newest[1]}_{platform.machine()}"


def contents(folder):
    """(name in the wheel, bytes, mode)"""
    library = folder / "python/caffe/libcrema.so"
    for source in sorted((folder / "python/caffe").rglob("*")):
        if source.is_file() and "__pycache__" not in source.parts:
            yield str(source.relative_to(folder / "python")), source.read_bytes(), 0o644
    protobuf = protobuf_beside(library)
    yield f"caffe/{protobuf.name}", protobuf.read_bytes(), 0o644
    for package in ("com", "crema", "tensorflowonspark"):
        for source in sorted((PYTHON / package).rglob("*.py")):
            yield str(source.relative_to(PYTHON)), source.read_bytes(), 0o644
    for jar in sorted((ROOT / "spark/target").glob(f"*/crema-spark-*-{VERSION}.jar")):
        if jar.with_name(jar.name + ".complete").exists():
            yield f"crema/jars/{jar.name}", jar.read_bytes(), 0o644
    yield f"{NAME}.data/scripts/crema", (folder / "cli/crema").read_bytes(), 0o755
    yield f"{INFO}/LICENSE", (ROOT / "LICENSE").read_bytes(), 0o644
    yield f"{INFO}/METADATA", METADATA.encode(), 0o644
    yield f"{INFO}/WHEEL", f"{WHEEL}{tag(library)}\n".encode(), 0o644


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    folder = build()
    name = f"{NAME}-{tag(folder / 'python/caffe/libcrema.so')}.whl"
    record = []
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:

        def add(path, content, mode):
            entry = zipfile.ZipInfo(path)  # without a time: the same sources give the same bytes
            entry.external_attr, entry.compress_type = (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED
            wheel.writestr(entry, content)

        for path, content, mode in contents(folder):
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={digest},{len(content)}\n")
            add(path, content, mode)
        add(f"{INFO}/RECORD", "".join(record + [f"{INFO}/RECORD,,\n"]).encode(), 0o644)
    return name
