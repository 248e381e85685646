package com.crema

import java.io.{FileNotFoundException, IOException}

import scala.collection.mutable

import org.apache.hadoop.security.AccessControlException
import org.scalatest.funsuite.AnyFunSuite

class RetrySuite extends AnyFunSuite {
  private class Hand(seconds: Double) {
    var time = 100.0
    val pauses = mutable.Buffer[Double]()
    val retry = new Retry(seconds, () => time, s => { pauses += s; time += s })
  }
  private def wrapped(e: Throwable) = new CremaException("hdfs://n/snap cannot be written", e)
  private def safeMode = wrapped(new IOException("Cannot create file. Name node is in safe mode."))

  test("what fails in a way that may pass is done again, at growing distances, until it is done") {
    val hand = new Hand(300)
    var left = 6
    assert(hand.retry("it fails") { left -= 1; if (left > 0) throw safeMode else "done" } == "done")
    assert(hand.pauses == Seq(1, 2, 4, 8, 15))
  }

  test("for so long in all, and then the failure is thrown as it is") {
    val (hand, mine) = (new Hand(20), safeMode)
    var done = 0
    assert(intercept[CremaException](hand.retry("it fails") { done += 1; throw mine }) eq mine)
    assert(done == 5 && hand.pauses.sum <= 20, hand.pauses)
  }

  test("what stays as it is is done once, and so is everything behind the end") {
    val lasting = Seq(
      new FileNotFoundException("/home/m"),
      new AccessControlException("permission denied"),
      new IOException("No space left on device"),
      new IllegalArgumentException("a name with a colon")
    )
    for (e <- lasting) {
      val hand = new Hand(300)
      assert(intercept[CremaException](hand.retry("it fails")(throw wrapped(e))).getCause eq e)
      assert(hand.pauses.isEmpty, e)
    }
    val hand = new Hand(300)
    hand.retry.end()
    intercept[CremaException](hand.retry("it fails")(throw safeMode))
    assert(hand.pauses.isEmpty)
  }
}
