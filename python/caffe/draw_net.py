"""python -m caffe.draw_net NET PICTURE: a net as a picture; with shapes and without Python: `crema draw`."""

import argparse
import pathlib
import sys

from google.protobuf import text_format

from . import draw
from ._options import run
from .proto import caffe_pb2


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m caffe.draw_net", description="A net as a picture.")
    parser.add_argument("input_net_proto_file", help="the net prototxt")
    parser.add_argument("output_image_file", help="the picture: .svg or .png")
    parser.add_argument("--rankdir", default="LR", help="LR, RL, TB or BT: which way the net runs")
    parser.add_argument("--phase", default="ALL", choices=["TRAIN", "TEST", "ALL"], help="which layers")
    parser.add_argument("--display_lrm", action="store_true", help="learning-rate multipliers that are not 1")
    args = parser.parse_args()
    phase = None if args.phase == "ALL" else caffe_pb2.Phase.Value(args.phase)
    net = caffe_pb2.NetParameter()
    try:
        text_format.Parse(pathlib.Path(args.input_net_proto_file).read_text(), net)
    except (OSError, text_format.ParseError) as e:
        sys.exit(f"error: {args.input_net_proto_file}: {e}")
    draw.draw_net_to_file(net, args.output_image_file, args.rankdir, phase, args.display_lrm)
    print(f"Drawing net to {args.output_image_file}")


if __name__ == "__main__":
    run(main)
