"""tools.DFConversions, tools.Vocab and DisplayUtils."""

import base64
import json
import re
import struct
import zlib

import pytest
from pyspark.sql import Row

from spark_session import frames, session  # noqa: F401  fixtures

from com.yahoo.ml.caffe import CaffeError, DisplayUtils
from com.yahoo.ml.caffe.tools.DFConversions import DFConversions, get_image, show_captions
from com.yahoo.ml.caffe.tools.Vocab import Vocab
from conftest import others

SENTENCES = ["A cat and a dog.", "A bird, a cat", "the dog"]
JPEG = b"\xff\xd8" + bytes(range(256))


@pytest.fixture
def captions(tmp_path):
    (tmp_path / "1.jpg").write_bytes(JPEG)
    image = {"id": 7, "height": 4, "width": 5, "file_name": "1.jpg", "flickr_url": "f", "coco_url": "c"}
    notes = [{"image_id": 7, "id": i + 1, "caption": s} for i, s in enumerate(SENTENCES)]
    (tmp_path / "captions.json").write_text(json.dumps({"images": [image], "annotations": notes}, indent=1))
    return tmp_path / "captions.json"


def test_captions_to_ids_and_back(session, captions, tmp_path):
    conv, vocab = DFConversions(session.sparkContext), Vocab(session.sparkContext)
    rows = conv.Coco2ImageCaptionFile(str(captions), 1)
    assert [(r.id, r.file, r.caption) for r in rows.collect()] == [(i + 1, "1.jpg", s) for i, s in enumerate(SENTENCES)]
    vocab.genFromData(rows, "caption", 4)
    assert vocab.word2indexMap() == {"UNK": 1, "a": 2, "cat": 3, "dog": 4}  # 4, 2 and 2 times; the others once
    assert vocab.size() == 5
    vocab.save(str(tmp_path / "vocab"))
    again = Vocab(session)
    again.load(str(tmp_path / "vocab"))
    assert again.index2wordMap() == {1: "UNK", 2: "a", 3: "cat", 4: "dog"}
    made = conv.ImageCaption2Embedding(str(tmp_path), rows, again, 6)
    first = made.first()
    assert (first.input_sentence, first.cont_sentence, first.target_sentence) == (
        [0, 2, 3, 1, 2, 4],
        [0, 1, 1, 1, 1, 1],
        [2, 3, 1, 2, 4, 0],
    )
    assert bytes(b & 255 for b in first.data.image) == JPEG
    back = conv.Embedding2Caption(made, again, "target_sentence", "prediction")
    assert [r.prediction for r in back.collect()] == ["a cat UNK a dog", "a UNK UNK a cat", "UNK dog"]
    assert conv.Image2Embedding(str(tmp_path), rows).columns == ["id", "data", "label"]
    shown = show_captions(back.join(made.select("id", "data"), "id")).data
    assert shown.count("<tr>") == 4 and "a cat UNK a dog" in shown
    assert base64.b64decode(re.search(r"data:image/jpeg;base64,([^']*)'", shown)[1]) == JPEG
    assert get_image(first.data.image) in shown


def test_errors_of_lazy_frames_and_of_files(session, captions, tmp_path):
    conv, vocab = DFConversions(session), Vocab(session)
    with pytest.raises(CaffeError, match="no words to save"):
        vocab.save(str(tmp_path / "v"))
    with pytest.raises(CaffeError, match="caption length of 0"):
        conv.ImageCaption2Embedding(str(tmp_path), conv.Coco2ImageCaptionFile(str(captions), 1), vocab, 0)
    (tmp_path / "bad.txt").write_text("cat\n")
    with pytest.raises(CaffeError, match="bad.txt, line 1"):
        vocab.load(str(tmp_path / "bad.txt"))
    with pytest.raises(CaffeError, match="none.json"):
        conv.Coco2ImageCaptionFile(str(tmp_path / "none.json"), 1)


def test_a_file_as_coco_publishes_it(session, tmp_path):
    """A file with all the fields of COCO's captions of 2014, in one line, with annotations in another order than
    images; and two pictures of COCO's, where available.
    """
    image = {"license": 5, "coco_url": "c", "height": 480, "width": 640, "flickr_url": "f"}
    image["date_captured"] = "2013-11-14 16:28:13"
    info = {"description": "captions", "url": "u", "version": "1.0", "year": 2014, "contributor": "c"}
    published = {
        "info": {**info, "date_created": "2015-01-27 09:11:52.357475"},
        "images": [
            {**image, "file_name": "train_000000000007.jpg", "id": 126},
            {**image, "file_name": "train_000000000040.jpg", "height": 429, "id": 67},
        ],
        "annotations": [
            {"image_id": 67, "id": 2, "caption": "A wide view of a kitchen, and all of its drawers."},
            {"image_id": 126, "id": 3, "caption": "A green bathroom with fish on its tiles."},
        ],
    }
    (tmp_path / "captions.json").write_text(json.dumps(published))
    for number in (7, 40):
        (tmp_path / f"train_{number:012d}.jpg").write_bytes(JPEG + bytes(number))
    collections = [
        (tmp_path, "captions.json", 16, "drawers", {"2": "train_000000000040.jpg", "3": "train_000000000007.jpg"})
    ]
    if files := others(
        "coco/coco.json", "coco/COCO_train2014_000000384029.jpg", "coco/COCO_train2014_000000057870.jpg"
    ):
        collections.append((files[0].parent, "coco.json", 17, "butterfly", {"2": files[1].name, "3": files[2].name}))
    for folder, captions, words, rare, pictures in collections:
        rows = DFConversions(session).Coco2ImageCaptionFile(str(folder / captions), 2)
        vocab = Vocab(session)
        vocab.genFromData(rows, "caption")
        # And UNK and the end; a comma leaves an empty word behind it, as in CaffeOnSpark.
        assert vocab.size() == words + 2 and vocab.word2indexMap()[rare] > 1
        made = DFConversions(session).ImageCaption2Embedding(str(folder), rows, vocab, 20)
        assert {r.id: len(r.data.image) for r in made.collect()} == {
            i: (folder / name).stat().st_size for i, name in pictures.items()
        }


def decode_png(data):
    """A PNG written by hand from its chunks: (width, height, colour type, lines without their filter byte)."""
    at, pixels = 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size : at + 12 + size])[0] == zlib.crc32(kind + body)
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", body[:10])
        pixels += body if kind == b"IDAT" else b""
        at += 12 + size
    raw, line = zlib.decompress(pixels), width * (3 if colour == 2 else 1) + 1
    assert depth == 8 and len(raw) == line * height and all(raw[y * line] == 0 for y in range(height))
    return width, height, colour, b"".join(raw[y * line + 1 : (y + 1) * line] for y in range(height))


def test_raw_pictures_become_png():
    grey = Row(height=2, width=3, channels=1, data=bytearray(range(6)))
    assert DisplayUtils.get_np_array(grey).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert decode_png(DisplayUtils.png(DisplayUtils.get_np_array(grey))) == (3, 2, 0, bytes(range(6)))
    blue_first = Row(height=1, width=2, channels=3, data=bytearray([1, 2, 3, 4, 5, 6]))
    assert decode_png(DisplayUtils.png(DisplayUtils.get_np_array(blue_first))) == (2, 1, 2, bytes([3, 2, 1, 6, 5, 4]))
    assert DisplayUtils.image_tag(DisplayUtils.get_np_array(grey)).startswith("<img src='data:image/png;base64,")


def test_show_df(session, frames, captions):
    df = session.read.parquet(frames["test"])
    row = df.first()
    shown = DisplayUtils.show_df(df, 3).data
    assert shown.count("<tr>") == 4 and shown.count("<img") == 3 and "<td>00000000</td>" in shown
    data = base64.b64decode(re.search(r"base64,([^']*)'", shown)[1])
    assert decode_png(data) == (28, 28, 0, bytes(row.data))
    few = session.createDataFrame([("<x>", 1, bytearray(JPEG))], ["SampleID", "label", "data"])
    shown = DisplayUtils.show_df(few).data  # fewer rows than asked for, encoded, a name that is no tag
    assert "&lt;x&gt;" in shown and base64.b64encode(JPEG).decode() in shown and "image/jpeg" in shown
