package com.crema

import java.util.concurrent.{ConcurrentHashMap, RejectedExecutionException}

import com.crema.wire.Wire.{Event, Input, Job, LmdbIndex, RemoteFile}
import com.google.protobuf.ByteString
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataInputStream, Path}
import org.apache.spark.SparkContext

/** An LMDB on a Hadoop FileSystem. Children read ranges of it through their JVM, so that executors copy only what their
  * ranks read.
  *
  * @param path its data.mdb
  * @param modified the file system's modification time: another time means another file
  * @param index wire.LmdbIndex, made once per application
  */
case class StoredFile(uri: String, path: String, length: Long, modified: Long, index: Array[Byte]) {
  private lazy val parsed = LmdbIndex.parseFrom(index)
  def records: Long = { var n = 0L; parsed.getCountList.forEach(c => n += c.longValue); n }

  /** @param batch number of records that are read in sequence; reading ahead asks for that many at once */
  def message(batch: Int): RemoteFile = {
    val file = RemoteFile.newBuilder.setSize(length).setDescription(uri)
    if (index.isEmpty) file.setReadAhead(StoredFile.IndexReadAhead).build()
    else {
      val batchBytes = length / math.max(1L, records) * batch
      file.setIndex(parsed).setReadAhead(math.min(StoredFile.MostReadAhead, batchBytes)).build()
    }
  }

  /** @throws CremaException when the file has changed since the run began */
  def open(conf: Configuration): FSDataInputStream = {
    val p = new Path(path)
    val fs = p.getFileSystem(conf)
    val status = fs.getFileStatus(p)
    if (status.getLen != length || status.getModificationTime != modified)
      throw new CremaException(
        s"$path has changed since the run began (it had $length bytes, now ${status.getLen}); " +
          "leave the records alone while they are read, and run again")
    fs.open(p)
  }
}

object StoredFile {
  private val IndexReadAhead = 4L << 20
  private val MostReadAhead = 8L << 20
  private val known = new ConcurrentHashMap[String, StoredFile]()

  /** The database at `uri`. Its index is read once, in a task, so that the reading happens near the data. */
  def lmdb(sc: SparkContext, uri: String): StoredFile = {
    val file = Storage.reaching(uri)(found(uri, sc.hadoopConfiguration))
    val key = s"${file.path} ${file.length} ${file.modified}"
    Option(known.get(key)).getOrElse {
      val hadoop = HadoopSettings.of(sc.hadoopConfiguration)
      val index = JobError.explained(sc.parallelize(Seq(file), 1).map(f => readIndex(f, hadoop)).collect().head)
      val made = file.copy(index = index)
      known.put(key, made)
      made
    }
  }

  private def found(uri: String, conf: Configuration): StoredFile = {
    val folder = new Path(uri)
    val fs = folder.getFileSystem(conf)
    if (!fs.exists(folder)) throw new WrongInput(s"there is no LMDB at $uri; check `source`")
    val inside = new Path(folder, "data.mdb")
    val path = if (fs.exists(inside)) inside else folder
    val status = fs.getFileStatus(path)
    if (status.isDirectory) throw new WrongInput(s"$uri holds no data.mdb, so it is no LMDB; check `source`")
    StoredFile(uri, path.toString, status.getLen, status.getModificationTime, Array.emptyByteArray)
  }

  private def readIndex(file: StoredFile, hadoop: HadoopSettings): Array[Byte] = {
    val job = Job.newBuilder.setTestFile(file.message(1)).setWorkFolder(Storage.workFolder.getPath)
    val child = Child.ofTask("index", job)
    child.serve(None, Some(file), hadoop)
    val events = Iterator.continually(child.next()).takeWhile(_.isDefined).map(_.get).toList
    events.find(_.hasFailed).foreach(e => child.finish(Some(e.getFailed)))
    child.finish(None)
    val made = events.find(_.hasIndex)
      .getOrElse(throw new CremaException(s"no index of ${file.uri} came${child.tail()}"))
    made.getIndex.toByteArray
  }
}

/** Answers a child's requests for ranges in order, in a thread of its own, so that the child's other events do not wait
  * for a file system.
  */
private[crema] class RangeServer(child: Child, train: Option[StoredFile], test: Option[StoredFile],
    hadoop: HadoopSettings) extends AutoCloseable {
  private val thread = Daemon.executor("crema-ranges")
  private lazy val conf = hadoop.configuration
  private val open = scala.collection.mutable.Map[Boolean, FSDataInputStream]()

  def answer(need: Event.Need): Unit =
    orNot { thread.execute(() => child.send(Input.newBuilder.setBytes(bytes(need)).build())) }

  /** Submits work; after close() it is dropped, as nobody waits for the answer. */
  private def orNot(submit: => Unit): Unit =
    try submit
    catch { case _: RejectedExecutionException => }

  private def bytes(need: Event.Need): Input.Bytes = {
    val reply = Input.Bytes.newBuilder.setTest(need.getTest).setOffset(need.getOffset)
    val file = (if (need.getTest) test else train)
      .getOrElse(throw new IllegalStateException("a file is asked for that was not announced"))
    try {
      val in = open.getOrElseUpdate(need.getTest, file.open(conf))
      val buffer = new Array[Byte](need.getLength.toInt)
      in.readFully(need.getOffset, buffer)
      reply.setData(ByteString.copyFrom(buffer)).build()
    } catch {
      case e: CremaException => reply.setFailed(e.getMessage).build()
      case e: Throwable => reply.setFailed(s"reading ${file.path} failed at byte ${need.getOffset}: $e").build()
    }
  }

  override def close(): Unit = {
    orNot { thread.execute(() => open.values.foreach(_.close())) }
    thread.shutdown()
  }
}
