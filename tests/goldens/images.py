#!/usr/bin/env python3
"""What OpenCV makes of pictures: the goldens of engine/data/image_test.cc.

    python3 -m venv VENV && VENV/bin/pip install opencv-python-headless==4.10.0.84 'numpy<3' pillow==13.0.0
    VENV/bin/python tests/goldens/images.py [FOLDER_WITH_SHARED_DATA]

OpenCV 4.6 (Debian 12's, which Caffe builds with) and 4.12 give the same pixels for every picture. The pictures are made
here: each PNG colour type, depth and interlace by the writer below, JPEGs by OpenCV and Pillow. Written to images/,
beside this file:

    *.png *.jpg   the pictures
    decode.txt    file mode channels height width crc32 samples     pixels in OpenCV's order;
                                                                    mode: unchanged, grey, colour
    resize.txt    file height width crc32 samples                   the colour picture through cv2.resize, INTER_LINEAR
    photos.txt    file what channels height width crc32 sums        examples/images, photographs of the shared data:
                                                                    sums of 64 x 64 blocks, channel by channel
samples: 16 bytes at i * (n - 1) / 15. 16-bit results are written as their upper 8 bits.
"""

import pathlib
import struct
import sys
import zlib

import cv2
import numpy as np
from PIL import Image

HERE = pathlib.Path(__file__).resolve().parent / "images"
MODES = {"unchanged": cv2.IMREAD_UNCHANGED, "grey": cv2.IMREAD_GRAYSCALE, "colour": cv2.IMREAD_COLOR}
SIZES = [(227, 227), (256, 256), (7, 5), (19, 29), (37, 41), (1, 1), (64, 11), (38, 58), (100, 30)]
PHOTOS = [
    "examples/images/cat1.jpg",
    "examples/images/cat2.jpg",
    "examples/images/dog1.jpg",
    "examples/images/dog2.jpg",
    "images/cat.jpg",
    "images/cat_gray.jpg",
    "images/fish-bike.jpg",
    "coco/COCO_train2014_000000057870.jpg",
    "coco/COCO_train2014_000000384029.jpg",
]
ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


def picture(height, width, channels, top, seed):
    """Gradients, a disc and noise, integers 0..top."""
    y, x = np.mgrid[0:height, 0:width] / max(height, width)
    noise = np.random.RandomState(seed)
    planes = []
    for c in range(channels):
        wave = 0.5 + 0.3 * np.sin(7 * x + c) + 0.2 * np.cos(11 * y - 2 * c)
        disc = ((x - 0.4) ** 2 + (y - 0.3) ** 2 < 0.04) * (0.2 + 0.2 * c)
        planes.append(np.clip(wave + disc + noise.normal(0, 0.03, x.shape), 0, 1))
    return np.rint(np.stack(planes, -1) * top).astype(np.int64)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def packed(rows, depth):
    """Rows of samples as PNG stores them, with filter byte and, in turn, each of the filters 0, 1 and 2."""
    out, before = b"", None
    step = max(1, rows.shape[2] * depth // 8)
    for number, row in enumerate(rows.reshape(len(rows), -1)):
        if depth == 16:
            line = row.astype(">u2").tobytes()
        elif depth == 8:
            line = row.astype(np.uint8).tobytes()
        else:
            bits = ((row[:, None] >> np.arange(depth - 1, -1, -1)) & 1).astype(np.uint8).reshape(-1)
            line = np.packbits(bits).tobytes()
        now = np.frombuffer(line, np.uint8)
        kind = number % 3 if before is not None else 0
        left = np.concatenate([np.zeros(step, np.uint8), now[:-step]]) if len(now) > step else np.zeros_like(now)
        delta = {0: now, 1: now - left, 2: now - (before if before is not None else 0)}[kind]
        out += bytes([kind]) + delta.astype(np.uint8).tobytes()
        before = now
    return out


def png(pixels, colour_type, depth, interlaced=False, extra=b""):
    height, width = pixels.shape[:2]
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour_type, 0, 0, int(interlaced)))
    if interlaced:
        parts = [pixels[y::dy, x::dx] for x, y, dx, dy in ADAM7]
        data = b"".join(packed(p, depth) for p in parts if p.size)
    else:
        data = packed(pixels, depth)
    data = zlib.compress(data, 9)
    half = len(data) // 2
    return (
        b"\x89PNG\r\n\x1a\n"
        + head
        + extra
        + chunk(b"IDAT", data[:half])
        + chunk(b"IDAT", data[half:])
        + chunk(b"IEND", b"")
    )


def pngs():
    for interlaced in (False, True):
        for colour_type, depths in {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}.items():
            for depth in depths:
                extra = b""
                if colour_type == 3:
                    table = np.random.RandomState(depth).randint(0, 256, (2**depth, 3)).astype(np.uint8)
                    extra = chunk(b"PLTE", table.tobytes())
                pixels = picture(19, 29, CHANNELS[colour_type], 2**depth - 1, depth + colour_type)
                yield (
                    f"type{colour_type}_{depth}{'_i' if interlaced else ''}.png",
                    png(pixels, colour_type, depth, interlaced, extra),
                )
    table = np.random.RandomState(5).randint(0, 256, (16, 3)).astype(np.uint8)
    clear = chunk(b"PLTE", table.tobytes()) + chunk(b"tRNS", bytes(range(0, 160, 16)))
    yield "palette_clear.png", png(picture(19, 29, 1, 15, 4), 3, 4, False, clear)
    yield (
        "colour_clear.png",
        png(picture(19, 29, 3, 255, 4), 2, 8, False, chunk(b"tRNS", struct.pack(">HHH", 128, 128, 128))),
    )
    yield "grey_clear.png", png(picture(19, 29, 1, 255, 4), 0, 8, False, chunk(b"tRNS", struct.pack(">H", 128)))
    yield "colour_gamma.png", png(picture(19, 29, 3, 255, 4), 2, 8, False, chunk(b"gAMA", struct.pack(">I", 45455)))
    yield "one_pixel.png", png(picture(1, 1, 3, 255, 4), 2, 8)


def jpegs(tmp):
    colour, grey = picture(37, 53, 3, 255, 1).astype(np.uint8), picture(37, 53, 1, 255, 2).astype(np.uint8)
    sampling = {
        "444": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444,
        "422": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_422,
        "420": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420,
        "440": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_440,
        "411": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_411,
    }
    for name, factor in sampling.items():
        for progressive in (0, 1):
            options = [
                cv2.IMWRITE_JPEG_QUALITY,
                85,
                cv2.IMWRITE_JPEG_SAMPLING_FACTOR,
                factor,
                cv2.IMWRITE_JPEG_PROGRESSIVE,
                progressive,
            ]
            yield f"colour_{name}{'_p' if progressive else ''}.jpg", cv2.imencode(".jpg", colour, options)[1].tobytes()
    yield "grey.jpg", cv2.imencode(".jpg", grey)[1].tobytes()
    yield "grey_p.jpg", cv2.imencode(".jpg", grey, [cv2.IMWRITE_JPEG_PROGRESSIVE, 1])[1].tobytes()
    yield (
        "restarts.jpg",
        cv2.imencode(".jpg", colour, [cv2.IMWRITE_JPEG_RST_INTERVAL, 2, cv2.IMWRITE_JPEG_QUALITY, 40])[1].tobytes(),
    )
    inks = Image.fromarray(picture(37, 53, 4, 255, 3).astype(np.uint8), "CMYK")
    inks.save(tmp / "cmyk.jpg", quality=90)
    yield "cmyk.jpg", (tmp / "cmyk.jpg").read_bytes()
    turned = Image.Exif()
    turned[0x0112] = 6  # orientation: to be turned by 90 degrees, which imdecode is asked to ignore
    Image.fromarray(colour).save(tmp / "turned.jpg", exif=turned)
    yield "turned.jpg", (tmp / "turned.jpg").read_bytes()


def decoded(data, mode):
    flag = MODES[mode] if mode == "unchanged" else MODES[mode] | cv2.IMREAD_IGNORE_ORIENTATION
    out = cv2.imdecode(np.frombuffer(data, np.uint8), flag)
    if out.dtype == np.uint16:
        out = (out >> 8).astype(np.uint8)
    return out[:, :, None] if out.ndim == 2 else out


def line(*words):
    return " ".join(str(w) for w in words) + "\n"


def facts(pixels, channels):
    flat = np.ascontiguousarray(pixels).reshape(-1)
    places = [i * (flat.size - 1) // 15 for i in range(16)]
    shape = pixels.shape[:2] if channels is None else (channels, *pixels.shape[:2])
    return [*shape, f"{zlib.crc32(flat.tobytes()):08x}", ",".join(str(flat[p]) for p in places)]


def block_sums(pixels):
    height, width, channels = pixels.shape
    return ",".join(
        str(int(pixels[y : y + 64, x : x + 64, c].astype(np.int64).sum()))
        for c in range(channels)
        for y in range(0, height, 64)
        for x in range(0, width, 64)
    )


def main():
    HERE.mkdir(exist_ok=True)
    for old in HERE.iterdir():
        if old.name != "photos.txt" or len(sys.argv) > 1:
            old.unlink()
    decode, resize = "", ""
    for name, data in [*pngs(), *jpegs(HERE)]:
        (HERE / name).write_bytes(data)
        for mode in MODES:
            decode += line(name, mode, *facts(decoded(data, mode), decoded(data, mode).shape[2]))
        if name in ("type2_8.png", "colour_420.jpg", "type0_8.png"):
            pixels = decoded(data, "unchanged")
            for height, width in SIZES:
                resize += line(name, *facts(cv2.resize(pixels, (width, height), interpolation=cv2.INTER_LINEAR), None))
    (HERE / "decode.txt").write_text(decode)
    (HERE / "resize.txt").write_text(resize)
    if len(sys.argv) < 2:
        return
    photos = ""
    for name in PHOTOS:
        data = ((HERE.parents[2] if name.startswith("examples/") else pathlib.Path(sys.argv[1])) / name).read_bytes()
        colour = decoded(data, "colour")
        for what, pixels in [
            ("colour", colour),
            ("grey", decoded(data, "grey")),
            ("unchanged", decoded(data, "unchanged")),
            ("resized", cv2.resize(colour, (227, 227))),
            ("resized", cv2.resize(colour, (256, 256))),
        ]:
            photos += line(name, what, *facts(pixels, pixels.shape[2])[:4], block_sums(pixels))
    (HERE / "photos.txt").write_text(photos)


main()
