"""From COCO's caption files to the frames that a captioning net trains on, and back to captions."""

import html

from com.yahoo.ml.caffe._jvm import frame, in_words, singleton, sql_context
from com.yahoo.ml.caffe.DisplayUtils import encoded_tag, table
from com.yahoo.ml.caffe.RegisterContext import registerContext


class DFConversions:
    """
    :param sc: SparkContext, or SparkSession
    """

    def __init__(self, sc):
        sc = registerContext(sc)
        self._conversions = singleton(sc, "com.yahoo.ml.caffe.tools.Conversions")
        self._sql = sql_context(sc)

    def Coco2ImageCaptionFile(self, src, clusterSize):
        """A row for each caption of the file: id, height, width, file, url, caption; without annotations one for each
        image.
        """
        with in_words():
            return frame(self._conversions.Coco2ImageCaptionFile(self._sql, src, clusterSize))

    def Image2Embedding(self, imageRootFolder, imageCaptionDF):
        """The images of such a frame: id, data (height, width, image), label (0)."""
        with in_words():
            return frame(self._conversions.Image2Embedding(imageRootFolder, imageCaptionDF._jdf))

    def ImageCaption2Embedding(self, imageRootFolder, imageCaptionDF, vocab, captionLength):
        """The same with input_sentence, cont_sentence and target_sentence of captionLength ids."""
        with in_words():
            return frame(
                self._conversions.ImageCaption2Embedding(
                    imageRootFolder, imageCaptionDF._jdf, vocab.vocabObject, captionLength
                )
            )

    def Embedding2Caption(self, embeddingDF, vocab, embeddingColumn, captionColumn):
        """Ids back to words: id, and the captions in captionColumn."""
        with in_words():
            return frame(
                self._conversions.Embedding2Caption(embeddingDF._jdf, vocab.vocabObject, embeddingColumn, captionColumn)
            )


def get_image(image):
    """<img> of an image column: an array of signed bytes, or bytes."""
    return encoded_tag(bytes(b & 255 for b in image))


def show_captions(df, nrows=10):
    """A table of the first rows of a frame with id, data.image and prediction."""
    rows = ((html.escape(str(r.id)), get_image(r.data.image), html.escape(str(r.prediction))) for r in df.take(nrows))
    return table(("Image Id", "Image", "Prediction"), rows)
