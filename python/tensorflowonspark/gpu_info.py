"""GPUs of this host on which nothing computes, as nvidia-smi reports them.

Index and UUID come from the queries that are meant for programs (`--query-gpu`). The list for people
(`--list-gpus`) has the GPU's name between them, of any number of words; it only serves to see whether there are GPUs.
"""

import logging
import random
import subprocess
import time

logger = logging.getLogger(__name__)

MAX_RETRIES = 3  #: times that get_gpus asks again; it waits 30, 60 and 90 s
AS_STRING = "string"
AS_LIST = "list"

_ANSWER_TIME = 30  # seconds; with a broken driver nvidia-smi may not answer at all
_CSV = "--format=csv,noheader,nounits"


def is_gpu_available():
    """Whether there is a GPU on this host: `nvidia-smi --list-gpus` ends with 0 and names one."""
    try:
        return bool(_ask("--list-gpus"))
    except Exception:
        return False


def get_gpus(num_gpu=1, worker_index=-1, format=AS_STRING):
    """`num_gpu` different GPUs of this host that no process computes on, by their index in nvidia-smi.

    worker_index: place of the caller among the processes of this host that ask; the free GPUs in the order of their
    indices are given out in blocks of `num_gpu`, and from the start again behind the last one, which is logged. -1
    gives any. format: AS_STRING "0,2", as CUDA_VISIBLE_DEVICES takes it, or AS_LIST ["0", "2"].
    Waits at most 180 s for GPUs that others are using, then raises an Exception.
    """
    if format not in (AS_STRING, AS_LIST):
        raise Exception(f"Unknown GPU format {format!r}; it is AS_STRING or AS_LIST")
    free = _await_free(num_gpu)
    if worker_index == -1:
        chosen = random.sample(free, num_gpu)
    else:
        first = worker_index * num_gpu
        if first + num_gpu > len(free):
            logger.warning(
                "process %d of this host wants %d GPU(s) and %d are free: it may share one",
                worker_index,
                num_gpu,
                len(free),
            )
        chosen = [free[(first + k) % len(free)] for k in range(num_gpu)]
    logger.info("chose GPU(s) %s of the free ones %s", chosen, free)
    return ",".join(chosen) if format == AS_STRING else chosen


def _ask(*arguments):
    """The lines that nvidia-smi prints."""
    try:
        done = subprocess.run(
            ["nvidia-smi", *arguments], check=True, capture_output=True, text=True, timeout=_ANSWER_TIME
        )
    except FileNotFoundError:
        raise Exception("there is no nvidia-smi on PATH; it comes with NVIDIA's driver") from None
    except subprocess.TimeoutExpired:
        raise Exception(f"nvidia-smi gave no answer within {_ANSWER_TIME} s; check NVIDIA's driver") from None
    except subprocess.CalledProcessError as e:
        said = (e.stderr or e.stdout).strip()
        raise Exception(f"nvidia-smi {' '.join(arguments)} ended with {e.returncode}: {said}") from None
    return [line.strip() for line in done.stdout.splitlines() if line.strip()]


def _all_gpus():
    """(index, UUID) of each GPU, by index."""
    gpus = []
    for line in _ask("--query-gpu=index,uuid", _CSV):
        index, comma, uuid = (part.strip() for part in line.partition(","))
        if not comma or not index.isdigit():
            raise Exception(f"nvidia-smi --query-gpu=index,uuid printed '{line}', which is no index and UUID")
        gpus.append((index, uuid))
    return sorted(gpus, key=lambda gpu: int(gpu[0]))


def _await_free(num_gpu):
    """Indices of free GPUs, at least `num_gpu` of them."""
    gpus = _all_gpus()
    if num_gpu > len(gpus):
        raise Exception(f"Unable to find {num_gpu} free GPU(s)\nthis host has {len(gpus)}")
    for attempt in range(MAX_RETRIES + 1):
        busy = set(_ask("--query-compute-apps=gpu_uuid", _CSV))
        free = [index for index, uuid in gpus if uuid not in busy]
        if len(free) >= num_gpu:
            return free
        if attempt < MAX_RETRIES:
            wait = 30 * (attempt + 1)
            logger.warning("%d GPU(s) wanted, %d free; asking again in %d s", num_gpu, len(free), wait)
            time.sleep(wait)
    users = "\n".join(_ask("--query-compute-apps=gpu_uuid,pid,process_name,used_gpu_memory", "--format=csv"))
    raise Exception(f"Unable to find {num_gpu} free GPU(s)\n{users}")
