package com.crema

import com.crema.wire.Wire.Event
import org.scalatest.funsuite.AnyFunSuite

class BudgetSuite extends AnyFunSuite {
  private def joined(task: Double, unpack: Double) =
    Event.newBuilder.setJoined(Event.Joined.newBuilder.setTaskSeconds(task).setUnpackSeconds(unpack)).build()
  private val started = Event.newBuilder.setStarted(Event.Started.getDefaultInstance).build()
  private val progress = Event.newBuilder.setProgress(Event.Progress.getDefaultInstance).build()

  private def parsed(line: String): (Double, Map[String, Double]) = {
    val Whole = """first step done ([\d.]+) s after (?:submit|the call): (.*) s""".r
    val Whole(all, parts) = line
    def parsed(p: String) = p.substring(0, p.lastIndexOf(' ')) -> p.substring(p.lastIndexOf(' ') + 1).toDouble
    (all.toDouble, parts.split(", ").map(parsed).toMap)
  }

  test("the parts add up to the whole, and each has what passed in it") {
    var now = 10000L
    val budget = new Budget(Some(7000), () => now)
    budget.lap("Spark")
    now += 300
    budget.lap("plan and checks", "unpacking" -> 0.1)
    now += 500 // the stage starts; of this, the first worker's task knows 0.3 s
    assert(budget.follow(joined(0.3, 0.2)).isEmpty)
    assert(budget.follow(joined(0.4, 0.2)).isEmpty) // at the same time as the first: takes nothing more
    now += 100
    // Began when the first was there: these 0.1 s are a quarter of its own.
    assert(budget.follow(joined(0.4, 0.1)).isEmpty)
    now += 60
    assert(budget.follow(started).isEmpty)
    now += 40
    val (all, parts) = parsed(budget.follow(progress).get)
    assert(all === 4.0)
    assert(parts === Map("Spark" -> 3.2, "unpacking" -> 0.33, "plan and checks" -> 0.2, "staging" -> 0.18,
      "nets and data" -> 0.06, "first step" -> 0.04))
    assert(budget.follow(progress).isEmpty, "once")
  }

  test("what is done while executors are still coming is Spark's time") {
    var now = 1000L
    val budget = new Budget(Some(0), () => now)
    budget.lap("Spark")
    now += 400
    budget.lap("plan and checks")
    budget.executorsSince(1300) // 0.1 s ago the last one came
    budget.follow(started)
    assert(parsed(budget.follow(progress).get) === (1.4 -> Map("Spark" -> 1.3, "plan and checks" -> 0.1)))
  }

  test("executors that were there before all the work take nothing from it") {
    var now = 1000L
    val budget = new Budget(None, () => now)
    now += 400
    budget.lap("plan and checks")
    budget.executorsSince(500)
    budget.follow(started)
    assert(parsed(budget.follow(progress).get) === (0.4 -> Map("plan and checks" -> 0.4)))
  }
}
