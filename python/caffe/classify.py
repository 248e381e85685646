"""python -m caffe.classify PICTURE|FOLDER|NPY OUTPUT.npy --model_def NET --pretrained_model WEIGHTS: predictions, one
row a picture.
"""

import argparse
import pathlib
import sys

import numpy as np

from . import io
from ._options import add_net, net_options, numbers, run
from .classifier import Classifier


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m caffe.classify", description="What a net says of pictures, as an .npy."
    )
    parser.add_argument("input_file", help="a picture, a folder of them, or an .npy of pictures N x H x W x K")
    parser.add_argument("output_file", help="the .npy to write")
    add_net(parser)
    parser.add_argument("--center_only", action="store_true", help="the centre's crop alone, not the mean over ten")
    parser.add_argument(
        "--images_dim", default="256,256", help="height,width that pictures are resized to before they are cropped"
    )
    parser.add_argument("--ext", default="jpg", help="the ending of pictures in a folder")
    args = parser.parse_args()
    net = Classifier(args.model_def, args.pretrained_model, image_dims=numbers(args.images_dim), **net_options(args))
    place = pathlib.Path(args.input_file).expanduser()
    if place.suffix == ".npy":
        pictures = list(np.load(place))
    else:
        files = sorted(place.glob(f"*.{args.ext}")) if place.is_dir() else [place]
        if not files:
            sys.exit(f"error: there is no *.{args.ext} in {place}; name the ending with --ext")
        pictures = [io.load_image(str(file)) for file in files]
    np.save(args.output_file, net.predict(pictures, not args.center_only))
    print(f"{len(pictures)} picture(s): {args.output_file}")


if __name__ == "__main__":
    run(main)
