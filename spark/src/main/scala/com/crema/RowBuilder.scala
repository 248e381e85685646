package com.crema

import java.nio.charset.StandardCharsets.UTF_8
import java.util.zip.CRC32C

import com.crema.wire.Wire.{Input, RowBatch}
import com.google.protobuf.{CodedOutputStream, UnsafeByteOperations}

/** Rows for the executable, stored column by column: the id first, then the fields in order, with bytes as
  * engine/data/row.h defines them. A row is one call of `begin` and one call for each field.
  *
  * Cost: every byte is copied once into its column; nothing is boxed.
  */
class RowBuilder(fields: Int) {
  private val columns = Array.fill(fields + 1)(new RowBuilder.Column)
  private var next = 0
  private var count = 0

  def rows: Int = count
  def bytes: Int = columns.map(_.size).sum

  def begin(id: String): Unit = begin(if (id == null) RowBuilder.NoBytes else id.getBytes(UTF_8))
  def begin(id: Array[Byte]): Unit = {
    if (next != 0) throw new IllegalStateException(s"a row was begun after $next of its ${fields + 1} columns")
    count += 1
    put(id, 0, id.length)
  }

  def put(value: Array[Byte], from: Int, length: Int): Unit = {
    column().append(value, from, length)
    columns(next).endRow()
    advance()
  }
  def float(value: Float): Unit = {
    column().appendInt(java.lang.Float.floatToRawIntBits(value))
    columns(next).endRow()
    advance()
  }
  def floats(values: Array[Float]): Unit = {
    val c = column()
    var i = 0
    while (i < values.length) { c.appendInt(java.lang.Float.floatToRawIntBits(values(i))); i += 1 }
    c.endRow()
    advance()
  }

  /** An image; sizes are 0 when unknown. */
  def image(channels: Int, height: Int, width: Int, encoded: Boolean, value: Array[Byte]): Unit = {
    val c = column()
    c.appendInt(channels); c.appendInt(height); c.appendInt(width); c.appendInt(if (encoded) 1 else 0)
    c.append(value, 0, value.length)
    c.endRow()
    advance()
  }

  private def column(): RowBuilder.Column = {
    if (next > fields) throw new IllegalStateException(s"a row has more than $fields fields")
    columns(next)
  }
  private def advance(): Unit = next = if (next == fields) 0 else next + 1

  /** Removes all rows and returns them as one delimited wire.Input. @param first number of the first row in the whole
    * source
    */
  def take(test: Boolean, first: Long): Array[Byte] = {
    val batch = RowBatch.newBuilder.setRows(count).setFirst(first)
    columns.foreach(c => batch.addColumn(c.message(count)))
    val input = Input.newBuilder.setRows(Input.Rows.newBuilder.setTest(test).setBatch(batch)).build()
    val out =
      new Array[Byte](CodedOutputStream.computeUInt32SizeNoTag(input.getSerializedSize) + input.getSerializedSize)
    val stream = CodedOutputStream.newInstance(out)
    stream.writeUInt32NoTag(input.getSerializedSize)
    input.writeTo(stream)
    stream.checkNoSpaceLeft()
    clear()
    out
  }

  /** Adds the last row to a checksum. */
  def addLastTo(sum: CRC32C): Unit = columns.foreach(_.addLastTo(sum))

  def clear(): Unit = { columns.foreach(_.clear()); count = 0; next = 0 }
}

object RowBuilder {
  private val NoBytes = new Array[Byte](0)

  /** Bytes of all rows, and where each row ends. */
  private class Column {
    private var bytes = new Array[Byte](1 << 12)
    private var ends = new Array[Int](64)
    private var rows = 0
    var size = 0

    private def reserve(more: Int): Unit = if (size.toLong + more > bytes.length) {
      if (size.toLong + more > RowBuilder.Most) throw new CremaException(
        s"a batch of rows has ${size.toLong + more} bytes; a single row may have ${RowBuilder.Most >> 20} MiB")
      val room = math.min(RowBuilder.Most.toLong, math.max(bytes.length.toLong * 2, size.toLong + more))
      bytes = java.util.Arrays.copyOf(bytes, room.toInt)
    }
    def append(from: Array[Byte], offset: Int, length: Int): Unit = {
      reserve(length)
      System.arraycopy(from, offset, bytes, size, length)
      size += length
    }
    def appendInt(v: Int): Unit = {
      reserve(4)
      for (i <- 0 until 4) bytes(size + i) = (v >> (8 * i)).toByte
      size += 4
    }
    def endRow(): Unit = {
      if (rows == ends.length) ends = java.util.Arrays.copyOf(ends, rows * 2)
      ends(rows) = size
      rows += 1
    }
    def message(expected: Int): RowBatch.Column = {
      if (rows != expected) throw new IllegalStateException(s"a column has $rows values for $expected rows")
      val c = RowBatch.Column.newBuilder.setValues(UnsafeByteOperations.unsafeWrap(bytes, 0, size))
      val width = if (rows == 0) 0 else ends(0)
      if ((0 until rows).forall(r => ends(r) == (r + 1) * width)) c.setWidth(width)
      else (0 until rows).foreach(r => c.addLength(ends(r) - (if (r == 0) 0 else ends(r - 1))))
      c.build()
    }
    def addLastTo(sum: CRC32C): Unit = {
      val from = if (rows < 2) 0 else ends(rows - 2)
      sum.update(bytes, from, size - from)
      sum.update(1) // the checksum includes where values end
    }
    def clear(): Unit = { size = 0; rows = 0 }
  }

  /** The most bytes of a column. Batches are sent long before that, unless a single row is that large. */
  private val Most = 1 << 30

  /** A batch is sent at this size: large enough that its header costs nothing, small enough to be shuffled and kept in
    * memory.
    */
  val SendBytes: Int = 1 << 20
  val SendRows = 4096
}
