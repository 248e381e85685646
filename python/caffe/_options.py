"""What the commands `python -m caffe.classify` and `caffe.detect` have in common: Caffe's flags for a net and its
input.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any, Callable, Dict, List

import numpy as np


def run(main: Callable[[], None]) -> None:
    """Runs a command's main function; an error that the user can correct becomes a message and exit code 1."""
    try:
        main()
    except (ImportError, OSError, RuntimeError, ValueError) as e:
        sys.exit(f"error: {e}")


def add_net(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model_def", required=True, help="the deploy net's prototxt")
    parser.add_argument("--pretrained_model", required=True, help="its weights")
    parser.add_argument("--gpu", action="store_true", help="refused: this engine computes on the CPU")
    parser.add_argument(
        "--mean_file", default="", help="an .npy of the mean, channels x height x width; none: no mean is taken off"
    )
    parser.add_argument("--input_scale", type=float, help="what input is multiplied by at the end")
    parser.add_argument("--raw_scale", type=float, default=255.0, help="what pictures in [0, 1] are multiplied by")
    parser.add_argument("--channel_swap", default="2,1,0", help="the order of channels; RGB becomes Caffe's BGR")


def numbers(text: str) -> List[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        sys.exit(f"error: '{text}' is no list of whole numbers such as 2,1,0")


def net_options(args: Any) -> Dict[str, Any]:
    """The arguments for Classifier and Detector."""
    if args.gpu:
        sys.exit("error: --gpu: this engine computes on the CPU; leave it out")
    return {
        "mean": np.load(args.mean_file) if args.mean_file else None,
        "input_scale": args.input_scale,
        "raw_scale": args.raw_scale,
        "channel_swap": numbers(args.channel_swap) if args.channel_swap else None,
    }
