package com.crema

import java.io.{EOFException, File, RandomAccessFile}

import scala.collection.mutable

import org.apache.hadoop.conf.Configuration

/** The snapshots of a job that lie in a folder. */
object Snapshots {
  case class Found(iteration: Int, model: String, state: String)

  /** The one with the largest iteration. They get their names when they are whole; one without its model is passed
    * over, and on a disk of this machine one that is damaged since.
    *
    * @param say hears of those
    * @throws WrongInput where there are snapshots and all are passed over: to begin anew would write over them
    */
  def newest(folder: String, name: String, conf: Configuration, say: String => Unit): Option[Found] = {
    val flaws = mutable.Buffer[String]()
    def isWhole(s: Found, hasModel: Boolean) = {
      val flaw =
        if (!hasModel) Some(s"its model ${s.model} is missing")
        else Seq(s.model, s.state).find(f => Storage.isLocal(f) && isCut(new File(Storage.localPath(f))))
          .map(file => s"$file is damaged, its end is missing or zeros")
      flaw.foreach(f => say(s"the snapshot of iteration ${s.iteration} is passed over: $f"))
      flaws ++= flaw
      flaw.isEmpty
    }
    val newest = all(folder, name, conf).sortBy { case (s, _) => -s.iteration }.find((isWhole _).tupled)
    if (newest.isEmpty && flaws.nonEmpty)
      throw new WrongInput(
        s"-resume auto: none of the snapshots ${Storage.inFolder(folder, name)}_iter_N.solverstate can be resumed " +
          s"from; of the newest, ${flaws.head}. Put back what is missing, or move these files away to begin anew")
    newest.map(_._1)
  }

  /** All states, and whether their models are there. */
  private def all(folder: String, name: String, conf: Configuration): Seq[(Found, Boolean)] = Storage.reaching(folder) {
    val path = Storage.pathOf(folder)
    val fs = path.getFileSystem(conf)
    val State = s"(\\Q$name\\E_iter_(\\d{1,9}))\\.solverstate((?:\\.h5)?)".r
    val files = if (fs.exists(path)) fs.listStatus(path).map(_.getPath.getName).toSet else Set.empty[String]
    files.toSeq.collect { case state @ State(stem, number, h5) =>
      val model = s"$stem.caffemodel$h5"
      Found(number.toInt, Storage.inFolder(folder, model), Storage.inFolder(folder, state)) -> files(model)
    }
  }

  /** Whether a file ends in the middle, or a message in zeros, as one that was being written when a machine lost its
    * power. Of a message its end and the heads of the outermost fields are read, of HDF5 what it says of its own
    * length: it may end in values, which are zeros where a layer does not learn.
    */
  private[crema] def isCut(file: File): Boolean = {
    val in = new RandomAccessFile(file, "r")
    try if (in.length >= 8 && in.readLong() == Hdf5) endOfHdf5(in) > in.length
      else in.length == 0 || endsInZeros(in) || !endsWithField(in)
    catch { case _: EOFException => true }
    finally in.close()
  }

  private val Hdf5 = 0x894844460d0a1a0aL // the first eight bytes

  /** The end of file address in the superblock: of versions 0 and 1 behind base and free space, later behind base and
    * extension.
    */
  private def endOfHdf5(in: RandomAccessFile): Long = {
    val version = in.read()
    in.seek(if (version < 2) 13 else 9)
    if (in.read() != 8) 0 // addresses of another size, which no writer of snapshots has
    else {
      in.seek(version match { case 0 => 40; case 1 => 44; case _ => 28 })
      java.lang.Long.reverseBytes(in.readLong())
    }
  }

  /** No message of a float net does: the values of a blob have their shape behind them, and a number takes less. */
  private def endsInZeros(in: RandomAccessFile): Boolean = {
    val end = new Array[Byte](math.min(16L, in.length).toInt)
    in.seek(in.length - end.length)
    in.readFully(end)
    end.forall(_ == 0)
  }

  private def endsWithField(in: RandomAccessFile): Boolean = {
    in.seek(0)
    var good = true
    while (good && in.getFilePointer < in.length) {
      val tag = varint(in)
      val size = tag & 7 match {
        case 0 => varint(in); 0L
        case 1 => 8L
        case 2 => varint(in)
        case 5 => 4L
        case _ => -1L
      }
      good = tag >> 3 > 0 && size >= 0 && size <= in.length - in.getFilePointer
      if (good) in.seek(in.getFilePointer + size)
    }
    good
  }

  private def varint(in: RandomAccessFile): Long = {
    var (value, shift, byte) = (0L, 0, 0x80)
    while (byte >= 0x80 && shift < 64) {
      byte = in.readUnsignedByte()
      value |= (byte & 0x7fL) << shift
      shift += 7
    }
    value
  }
}
