package com.yahoo.ml.caffe

import java.nio.{ByteBuffer, ByteOrder}

import com.crema.CremaException
import com.yahoo.ml.jcaffe.{FloatBlob, Mat}

/** Values as bytes of a row's field (engine/data/row.h), for sources that make batches themselves. */
private[caffe] object RowBytes {
  private def buffer(size: Int): ByteBuffer = ByteBuffer.allocate(size).order(ByteOrder.LITTLE_ENDIAN)

  def floats(values: Array[Float]): Array[Byte] = {
    val b = buffer(4 * values.length)
    b.asFloatBuffer().put(values)
    b.array
  }

  /** Sample i of a blob that holds `size` of them along its first axis, or along its second when transposed. */
  def slice(blob: FloatBlob, i: Int, size: Int, transposed: Boolean): Array[Byte] = {
    val values = blob.values()
    val width = values.length / size
    if (transposed) floats(Array.tabulate(width)(k => values(k * size + i)))
    else floats(java.util.Arrays.copyOfRange(values, i * width, (i + 1) * width))
  }

  /** Whether it holds encoded bytes: such a Mat is 1 x 1 x n, while a decoded one has the image's sizes. */
  private def encoded(mat: Mat): Boolean = {
    def begins(first: Int, second: Int) = mat.data()(0) == first.toByte && mat.data()(1) == second.toByte
    mat.channels == 1 && mat.height == 1 && mat.width == mat.data.length && mat.data.length > 3 &&
    (begins(0xff, 0xd8) || begins(0x89, 'P'))
  }

  private def there(mat: Mat): Mat =
    if (mat == null) throw new CremaException("nextBatch gave an id and left the image's place empty") else mat

  def image(mat: Mat): Array[Byte] = {
    val m = there(mat)
    val b = buffer(16 + m.data.length)
    if (encoded(m)) b.putInt(0).putInt(0).putInt(0).putInt(1)
    else b.putInt(m.channels).putInt(m.height).putInt(m.width).putInt(0)
    b.put(m.data).array
  }
}
