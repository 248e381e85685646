"""python -m caffe.detect WINDOWS.csv|LIST.txt OUTPUT.csv --model_def NET --pretrained_model WEIGHTS: predictions, one
row a window.
"""

import argparse
import csv
import pathlib
import sys
from typing import Any, Dict, List

from ._options import add_net, net_options, run
from .detector import Detector

COORDINATES = ["ymin", "xmin", "ymax", "xmax"]


def windows_of(path: pathlib.Path) -> Dict[str, List[Any]]:
    """Of a CSV with the columns filename, ymin, xmin, ymax, xmax."""
    found: Dict[str, List[Any]] = {}
    with open(path, newline="") as file:
        rows = csv.DictReader(file)
        missing = {"filename", *COORDINATES} - set(rows.fieldnames or ())
        if missing:
            sys.exit(
                f"error: {path} has no column {', '.join(sorted(missing))}; it needs filename, ymin, xmin, ymax, xmax"
            )
        for row in rows:
            found.setdefault(row["filename"], []).append([float(row[c]) for c in COORDINATES])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m caffe.detect", description="What a net says of windows of pictures, as a CSV."
    )
    parser.add_argument("input_file", help="a CSV of windows, or with selective_search a text file that lists pictures")
    parser.add_argument("output_file", help="the CSV to write")
    add_net(parser)
    parser.add_argument(
        "--crop_mode", choices=["list", "selective_search"], default="list", help="where windows come from"
    )
    parser.add_argument("--context_pad", type=int, default=16, help="pixels of surroundings, in the net's input")
    args = parser.parse_args()
    options = net_options(args)
    if options["mean"] is not None and options["mean"].shape[1:] != (1, 1):
        options["mean"] = options["mean"].mean(1).mean(1)
    net = Detector(args.model_def, args.pretrained_model, context_pad=args.context_pad, **options)
    place = pathlib.Path(args.input_file)
    if args.crop_mode == "list":
        found = net.detect_windows(list(windows_of(place).items()))
    else:
        found = net.detect_selective_search([line.strip() for line in place.read_text().splitlines() if line.strip()])
    with open(args.output_file, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(
            ["filename", *COORDINATES, *(f"class{k}" for k in range(len(found[0]["prediction"]) if found else 0))]
        )
        for f in found:
            out.writerow([f["filename"], *f["window"], *f["prediction"]])
    print(f"{len(found)} window(s): {args.output_file}")


if __name__ == "__main__":
    run(main)
