"""CaffeOnSpark's captioning nets, narrow enough for tests."""

import re

CROP, FULL = 67, 76  # as 227 and 256


def small(text, classes):
    """A prototxt of CaffeOnSpark's examples with other sizes; fillers fit narrow layers."""
    text = re.sub(r"(crop_size|out_height|out_width): 227", rf"\1: {CROP}", text)
    text = re.sub(r"(height|width): (227|256)", lambda m: f"{m[1]}: {CROP if m[2] == '227' else FULL}", text)
    text = re.sub(r"dim: 227", f"dim: {CROP}", text)
    widths = {"96": 16, "256": 16, "384": 16, "4096": 64, "1000": 32, "8801": classes}
    text = re.sub(
        r"(num_output|dim|input_dim): (96|256|384|4096|1000|8801)\b", lambda m: f"{m[1]}: {widths[m[2]]}", text
    )
    head, conv1, rest = text.partition('name: "conv2"')  # conv1 sees pixels, up to 151: its small weights stay
    rest = rest.replace("dropout_ratio: 0.5", "dropout_ratio: 0.1")
    return head + conv1 + re.sub(r'type: "gaussian"\s+std: 0.0\d+', 'type: "xavier"', rest)
