package com.yahoo.ml.jcaffe

import org.scalatest.funsuite.AnyFunSuite

class BlobSuite extends AnyFunSuite {
  test("an array's index") {
    val blob = new FloatBlob
    blob.reshape(5, 1, 1, 1)
    val values = blob.cpu_data()
    assert(values.get(-1) === 0f)
    intercept[Exception](values.set(-1, -1f))
    intercept[IndexOutOfBoundsException](values.get(5)) // the original read whatever lay there
    values.set(4, 2.5f)
    assert(blob.cpu_data().get(4) === 2.5f)
    blob.deallocate()
  }

  test("what is null or of another size is refused") {
    val blob = new FloatBlob
    assert(!blob.set_cpu_data(null) && blob.count === 0)
    assert(blob.reshape(1, 1, 2, 2) && !blob.copyFrom(null) && !blob.set_cpu_data(new Array[Float](3)))
    assert(!blob.reshape(0, 0, 0, 0) && blob.count === 4)
    assert(!blob.reshape(1 << 16, 1 << 16, 1, 1)) // 2^32 values
    assert(new FloatBlob(-1, false).count === 0)
    blob.deallocate()
    blob.deallocate()
  }

  test("values go in, out and across") {
    val (a, b) = (new FloatBlob, new FloatBlob)
    assert(a.reshape(1, 1, 2, 2) && b.reshape(Array(1, 1, 2, 2)))
    val input = Array(1f, 2f, 3f, 4f)
    assert(a.set_cpu_data(input) && b.copyFrom(a) && b.count === 4)
    a.cpu_data().set(0, 9f)
    assert(input.indices.map(b.cpu_data().get(_)) === input.toSeq)
    assert(
      intercept[UnsupportedOperationException](a.gpu_data()).getMessage.startsWith("Cannot use GPU in CPU-only Caffe"))
  }
}
