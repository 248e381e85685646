package com.yahoo.ml.caffe.tools

import com.crema.CremaException
import org.apache.spark.sql.{DataFrame, SQLContext}

/** The words of captions and their ids: 0 starts and ends a sentence, 1 is any unknown word, and words count from 2, by
  * falling frequency, then in alphabetical order. A vocabulary file holds the words of ids 1 and up, one a line, `UNK`
  * first: line n is id n. A net over it has `size` classes.
  *
  * (CaffeOnSpark numbered the lines from 0 in training and from 1 when it made captions.)
  */
class Vocab(val sqlContext: SQLContext) {
  private var words = Vector.empty[String] // of ids 1, 2, ...
  private var ids = Map.empty[String, Int]

  private def become(all: Vector[String]): Unit = synchronized {
    words = all
    ids = all.zipWithIndex.map { case (word, i) => word -> (i + Vocab.UNKNOWN_ID) }.toMap
  }

  /** Builds the vocabulary from a column of sentences. `vocabSize` includes UNK, so that a net has vocabSize + 1
    * classes; 0 or less means all words.
    */
  def genFromData(dataset: DataFrame, columnName: String, vocabSize: Int = -1): Unit = {
    val counts = dataset.select(columnName).rdd
      .flatMap(row => if (row.isNullAt(0)) Nil else Conversions.sentence2Words(row.getString(0)).toSeq)
      .filter(_ != Vocab.UNKNOWN_TOKEN.toLowerCase).map(_ -> 1L).reduceByKey(_ + _)
    val order = Ordering.by[(String, Long), (Long, String)] { case (word, count) => (-count, word) }
    val top = if (vocabSize > 0) counts.takeOrdered(vocabSize - 1)(order) else counts.collect().sorted(order)
    become(Vocab.UNKNOWN_TOKEN +: top.map(_._1).toVector)
  }

  /** A folder with one text file. @throws IllegalStateException before there are words */
  def save(vocabFilePath: String): Unit = {
    if (words.isEmpty)
      throw new IllegalStateException("this vocabulary has no words to save; call genFromData or load first")
    sqlContext.sparkContext.parallelize(words, 1).saveAsTextFile(vocabFilePath)
  }

  /** Replaces the words by those of a file or folder. @throws CremaException with the line when the file does not
    * number its words by lines
    */
  def load(vocabFilePath: String): Unit = {
    val lines = sqlContext.sparkContext.textFile(vocabFilePath).collect().map(_.trim).toVector
    def bad(line: Int, what: String) = throw new CremaException(
      s"vocabulary $vocabFilePath, line $line: $what; lines are words, each once, the first is ${Vocab.UNKNOWN_TOKEN}")
    if (!lines.headOption.exists(Vocab.UNKNOWN_SPELLINGS))
      bad(1, lines.headOption.fold("the file is empty")(w => s"'$w' stands where the unknown word does"))
    val seen = scala.collection.mutable.Map[String, Int]()
    for ((word, i) <- lines.zipWithIndex) {
      if (word.isEmpty) bad(i + 1, "no word")
      seen.put(word, i + 1).foreach(first => bad(i + 1, s"'$word' was on line $first already"))
    }
    become(Vocab.UNKNOWN_TOKEN +: lines.tail)
  }

  /** The number of ids in use, including 0: num_output of the layer that predicts words, input_dim of the one that
    * embeds them.
    */
  def size: Int = words.size + Vocab.UNKNOWN_ID

  def id(word: String): Int = ids.getOrElse(word, Vocab.UNKNOWN_ID)

  /** UNK and the words; id 0 is no word. */
  def word2indexMap(): scala.collection.Map[String, Int] = ids
  def index2wordMap(): scala.collection.Map[Int, String] = ids.map(_.swap)
}

object Vocab {
  val UNKNOWN_TOKEN = "UNK"
  val UNKNOWN_ID = 1
  val START_END_ID = 0
  val VALID_TOKEN_INDEX = 1
  /** The id that pads an array behind its sentence. */
  val NO_TOKEN: Int = -1

  private val UNKNOWN_SPELLINGS = Set(UNKNOWN_TOKEN, "<unk>", "unk")
}
