package com.yahoo.ml.caffe

import java.io.{ByteArrayInputStream, IOException, ObjectInputStream, ObjectStreamClass}

import com.crema.{CremaException, Piece, Records, RowBuilder, RowSource}
import com.yahoo.ml.dl.caffe.Pair
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.hadoop.io.{BytesWritable, SequenceFile}
import org.apache.hadoop.mapred.FileSplit
import org.apache.spark.SparkContext
import org.apache.spark.rdd.{HadoopRDD, RDD}

/** Images of a Hadoop SequenceFile: BytesWritable keys, Java-serialised, and BytesWritable values, the image's bytes.
  * Keys are a Pair or a tuple (id, label), whose images are encoded, or a tuple (id, label, channels, height, width,
  * encoded): what Binary2Sequence and LMDB2Sequence write, and always wrote.
  */
class SeqImageDataSource(conf: Config, layerId: Int, isTrain: Boolean) extends ImageDataSource(conf, layerId, isTrain) {
  override def makeRDD(sc: SparkContext): RDD[ImageDataSource.Record] = pieces(sc).map(_._2)

  /** The records, each with the piece of the file it is from, as a folder's files may be listed in any order. */
  private def pieces(sc: SparkContext): RDD[(Piece, ImageDataSource.Record)] = {
    val path = sourceFilePath
    SeqImageDataSource.checkClasses(path, sc.hadoopConfiguration)
    sc.sequenceFile(path, classOf[BytesWritable], classOf[BytesWritable], conf.clusterSize) match {
      case files: HadoopRDD[BytesWritable, BytesWritable] =>
        files.mapPartitionsWithInputSplit { (split, rows) =>
          val piece = split match {
            case f: FileSplit => Piece(f.getPath.toString, f.getStart)
            case _ => null
          }
          rows.map { case (key, value) => (piece, SeqImageDataSource.record(key.copyBytes(), value.copyBytes(), path)) }
        }
    }
  }

  override private[caffe] def records(sc: SparkContext): Records =
    if (getClass != classOf[SeqImageDataSource]) super.records(sc) else new SeqRows(describe, batchSize(), pieces(sc))
}

private[caffe] class SeqRows(val description: String, val batch: Int, val records: RDD[(Piece, ImageDataSource.Record)])
    extends RowSource[(Piece, ImageDataSource.Record)] {
  private val images = new ImageRows(description, batch, null)
  override val fields: Int = images.fields
  override def put(r: (Piece, ImageDataSource.Record), row: RowBuilder): Unit = images.put(r._2, row)
  override def piece(r: (Piece, ImageDataSource.Record)): Piece = r._1
  override def inPiece(r: (Piece, ImageDataSource.Record), piece: Piece): Boolean = r._1 == piece
}

private[caffe] object SeqImageDataSource {
  /** Checks the classes in the header of one file of a folder before a task starts.
    *
    * @throws CremaException when they are others, or it is no SequenceFile; a missing file is reported by Spark
    */
  def checkClasses(path: String, hadoop: Configuration): Unit = {
    val place = new Path(path)
    val fs = place.getFileSystem(hadoop)
    val listed = Option(fs.globStatus(place)).toSeq.flatten
      .flatMap(s => if (s.isDirectory) fs.listStatus(s.getPath).toSeq else Seq(s))
    val files = listed.filter(s => s.isFile && s.getLen > 0 && !s.getPath.getName.matches("[_.].*"))
    for (file <- files.sortBy(_.getPath.getName).headOption) {
      val held =
        try {
          val reader = new SequenceFile.Reader(hadoop, SequenceFile.Reader.file(file.getPath))
          try Seq(reader.getKeyClassName, reader.getValueClassName)
          finally reader.close()
        } catch {
          case e: IOException =>
            throw new CremaException(s"${file.getPath} cannot be read as a SequenceFile: ${e.getMessage}; " +
                "Binary2Sequence makes one of image files", e)
        }
      if (held != Seq.fill(2)(classOf[BytesWritable].getName))
        throw new CremaException(s"SequenceFile ${file.getPath} has keys of ${held.head} and values of ${held(1)}; " +
          s"keys and values of ${classOf[BytesWritable].getName} are read: a Java-serialised (id, label) and an " +
          "image's bytes, as Binary2Sequence writes them. Make it anew with that, or give the images as a DataFrame " +
          "(ImageDataFrame)")
    }
  }

  /** @throws CremaException for a key of a class that is not named above: no other class of a file is ever instantiated
    */
  def record(key: Array[Byte], value: Array[Byte], path: String): ImageDataSource.Record = {
    def text(x: Any): String = if (x == null) null else x.toString
    def of(id: Any, label: Any, rest: (Int, Int, Int, Boolean)): ImageDataSource.Record =
      (text(id), text(label), rest._1, rest._2, rest._3, rest._4, value)
    val unsized = (1, 0, 0, true)
    read(key, path) match {
      case p: Pair[_, _] => of(p.first, p.second, unsized)
      case (id, label) => of(id, label, unsized)
      case (id, label, c: Int, h: Int, w: Int, encoded: Boolean) => of(id, label, (c, h, w, encoded))
      case other =>
        val what = if (other == null) "null" else other.getClass.getName
        throw new CremaException(s"a key of SequenceFile $path is a $what; (id, label) or (id, label, channels, " +
          "height, width, encoded) is understood")
    }
  }

  private val allowed = Set(
    "com.yahoo.ml.dl.caffe.Pair",
    "java.lang.String",
    "java.lang.Integer",
    "java.lang.Boolean",
    "java.lang.Number",
    "java.lang.Long",
    "scala.Tuple2",
    "scala.Tuple6"
  )

  private def read(bytes: Array[Byte], path: String): Any = {
    val in = new ObjectInputStream(new ByteArrayInputStream(bytes)) {
      /** Uses this JVM's description of the class: files written with another Scala have another serialVersionUID and
        * the same fields.
        */
      override def readClassDescriptor(): ObjectStreamClass = {
        val name = super.readClassDescriptor().getName
        if (!allowed(name))
          throw new CremaException(s"a key of SequenceFile $path holds a $name, which is not read; " +
            "keys are pairs or tuples of texts and numbers")
        ObjectStreamClass.lookup(Class.forName(name, false, classOf[SeqImageDataSource].getClassLoader))
      }
    }
    try in.readObject()
    catch {
      case e: java.io.IOException =>
        throw new CremaException(s"a key of SequenceFile $path cannot be read (${e.getMessage}); " +
            "keys are Java-serialised (id, label) pairs, as Binary2Sequence writes them", e)
    } finally in.close()
  }
}
