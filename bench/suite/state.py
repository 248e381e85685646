"""What a figure is of: the state of the code, the processor, the day."""

import datetime
import functools
import hashlib
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENGINE = (ROOT / "build/release/cli/crema", ROOT / "build/release/python/caffe/libcrema.so")


@functools.cache
def of_code_and_machine():
    """{commit, processor, day}: the commit with a + where files differ from it."""
    git = ["git", "-C", ROOT, "describe", "--always", "--dirty=+", "--exclude=*"]
    said = subprocess.run(git, capture_output=True, text=True).stdout.strip()
    about = pathlib.Path("/proc/cpuinfo").read_text()
    name, family, model = (re.search(rf"^{k}\s*: (.*)$", about, re.M) for k in ("model name", "cpu family", "model"))
    kind = f" (family {family[1]}, model {model[1]})" if family and model else ""
    processor = (name[1] if name else "unknown") + kind
    return {"commit": said or "unknown", "processor": processor, "day": str(datetime.date.today())}


def digest(*files):
    """One hash of what these files contain."""
    sum = hashlib.sha256()
    for file in files:
        with open(file, "rb") as f:
            sum.update(hashlib.file_digest(f, "sha256").digest())
    return sum.hexdigest()
