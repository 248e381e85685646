"""Words of captions and their ids."""

from com.yahoo.ml.caffe._jvm import in_words, java_class, sql_context
from com.yahoo.ml.caffe.RegisterContext import registerContext


class Vocab:
    """0 starts and ends a sentence, 1 is an unknown word, words count from 2, the most frequent first.

    :param sc: SparkContext, or SparkSession
    """

    def __init__(self, sc):
        sc = registerContext(sc)
        self.vocabObject = java_class(sc, "com.yahoo.ml.caffe.tools.Vocab")(sql_context(sc))

    def genFromData(self, dataset, columnName, vocabSize=-1):
        """Builds the vocabulary from a column of sentences; vocabSize includes UNK, -1 keeps all words."""
        with in_words():
            self.vocabObject.genFromData(dataset._jdf, columnName, vocabSize)

    def save(self, vocabFilePath):
        """A folder with one text file: a word a line, the line's number is its id."""
        with in_words():
            self.vocabObject.save(vocabFilePath)

    def load(self, vocabFilePath):
        """Loads the words of a saved vocabulary."""
        with in_words():
            self.vocabObject.load(vocabFilePath)

    def size(self):
        """Ids in use, 0 included: the classes of a net over this vocabulary."""
        return self.vocabObject.size()

    def word2indexMap(self):
        lines = self.vocabObject.word2indexMap().mkString("\n")  # one call for all words, as no word has a line break
        return {word: int(i) for word, i in (line.rsplit(" -> ", 1) for line in lines.splitlines())}

    def index2wordMap(self):
        return {i: word for word, i in self.word2indexMap().items()}
