"""caffe.Classifier and caffe.Detector, and the accuracy of models that Caffe trained."""

import re

import numpy as np

from pycaffe_module import caffe, write

import conftest
from caffe.proto import caffe_pb2

PICTURES = conftest.ROOT / "tests/goldens/images"


def values(*shape, seed=1):
    return np.random.default_rng(seed).random(shape).astype(np.float32)


CLASSES = """layer { name: 'in' type: 'Input' top: 'data' input_param { shape { dim: 4 dim: 3 dim: 6 dim: 6 } } }
layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip'
  inner_product_param { num_output: 5 weight_filler { type: 'gaussian' std: 0.1 } } }
layer { name: 'prob' type: 'Softmax' bottom: 'ip' top: 'prob' }"""


def softmax_of(made, picture):
    w, b = (p.data.astype(np.float64) for p in made.params["ip"])
    e = np.exp(w @ picture.transpose(2, 0, 1).ravel() + b)
    return e / e.sum()


def test_classifier_and_detector(tmp_path):
    text = write(tmp_path, "net.prototxt", CLASSES)
    caffe.Net(text, caffe.TEST).save(str(tmp_path / "w.caffemodel"))
    made = caffe.Classifier(text, str(tmp_path / "w.caffemodel"), image_dims=(8, 10))
    pictures = [values(8, 10, 3, seed=k) for k in range(5)]
    for picture, centre, ten in zip(pictures, made.predict(pictures, oversample=False), made.predict(pictures)):
        np.testing.assert_allclose(centre, softmax_of(made, picture[1:7, 2:8]), atol=1e-6)
        crops = caffe.io.oversample([picture], (6, 6))
        np.testing.assert_allclose(ten, np.mean([softmax_of(made, c) for c in crops], 0), atol=1e-6)
    detector = caffe.Detector(text, str(tmp_path / "w.caffemodel"))
    name = str(PICTURES / "colour_444.jpg")
    whole = caffe.io.load_image(name)
    found = detector.detect_windows([(name, [(1, 2, 7, 8), (0, 0) + whole.shape[:2]])])
    np.testing.assert_allclose(found[0]["prediction"], softmax_of(detector, whole[1:7, 2:8]), atol=1e-6)
    np.testing.assert_allclose(
        found[1]["prediction"], softmax_of(detector, caffe.io.resize_image(whole, (6, 6))), atol=1e-6
    )
    with_context = caffe.Detector(text, str(tmp_path / "w.caffemodel"), mean=np.array([0.1, 0.2, 0.3]), context_pad=1)
    # A window of 4 x 4 fills the middle 4 x 4 of 6 x 6: the crop is the 6 x 6 around it, and the mean where the picture
    # ends.
    crop = with_context.crop(whole, (0, 3, 4, 7))
    np.testing.assert_allclose(crop[1:], whole[0:5, 2:8], atol=1e-6)
    np.testing.assert_allclose(crop[0], np.tile(np.float32([0.1, 0.2, 0.3]), (6, 1)), atol=1e-6)


def right(prototxt, weights, mean, pixels, labels):
    """The number of pictures (records x channels x height x width, 0..255) that the net classifies correctly."""
    made = caffe.Net(str(prototxt), caffe.TEST, weights=str(weights))
    mean = caffe.io.blobproto_to_array(caffe_pb2.BlobProto.FromString(mean.read_bytes()))
    out = made.forward_all(data=pixels.astype(np.float32) - mean)
    return (next(iter(out.values())).argmax(1) == labels).sum()


def test_a_model_that_caffe_trained():
    """Weights in HDF5 and a mean file by BVLC Caffe, on the test digits; and others' models, where available, on 500
    pictures of CIFAR-10.
    """
    run = conftest.RECORDED / "quick"
    pixels, labels = conftest.digits()
    pixels = np.frombuffer(b"".join(pixels), np.uint8).reshape(-1, 1, 28, 28)
    accuracy = float(re.search(r"^run_iter_800.*: accuracy = (\S+)$", (run / "log.txt").read_text(), re.M)[1])
    assert right(
        run / "deploy.prototxt",
        run / "run_iter_800.caffemodel.h5",
        run / "mean.binaryproto",
        pixels,
        np.frombuffer(labels, np.uint8),
    ) == round(10000 * accuracy)
    if files := conftest.others(
        "caffe_runs/cifar10/cifar10_quick.prototxt",
        "caffe_runs/cifar10/cifar10_quick_iter_4000.caffemodel.h5",
        "cifar10/mean.binaryproto",
        "cifar10/test_0000-0499.bin",
    ):
        records = np.frombuffer(files[3].read_bytes(), np.uint8).reshape(-1, 3073)
        assert (
            right(*files[:3], records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0]) == 357
        )  # as the data's README says of Caffe's file
