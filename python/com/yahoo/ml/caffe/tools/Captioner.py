"""Captions for pictures, by a model that lrcn_solver trained."""

from com.yahoo.ml.caffe._jvm import frame, in_words, java_class
from com.yahoo.ml.caffe.RegisterContext import registerContext


class Captioner:
    """
    :param sc: SparkContext, or SparkSession
    :param model: path of the trained model
    :param imagenet: lstm_deploy.prototxt, or one of other sizes
    :param lstmnet: lrcn_word_to_preds.deploy.prototxt, or one of other sizes
    """

    def __init__(self, sc, model, imagenet, lstmnet):
        sc = registerContext(sc)
        made = java_class(sc, "com.yahoo.ml.caffe.tools.Captioner")
        with in_words():
            self._captioner = made(sc._jsc.sc(), str(model), str(imagenet), str(lstmnet))

    def captions(self, images, vocab, maxLength=50):
        """Columns id and prediction for a frame of pictures: id, and data (height, width, image) or these three as
        columns. A picture that cannot be decoded has no prediction; a caption that is cut ends in `...`.
        """
        with in_words():
            return frame(self._captioner.captions(images._jdf, vocab.vocabObject, maxLength))
