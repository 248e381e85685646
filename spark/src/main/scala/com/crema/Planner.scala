package com.crema

import com.crema.wire.Wire.Plan

/** Asks the executable about a solver: one parser decides, on the driver, before anything starts. */
object Planner {
  private val Seconds = 60L

  /** @param seed for a solver that sets no random_seed
    * @throws IllegalArgumentException with the executable's own story when solver, net or features are wrong
    */
  def plan(solver: String, ranks: Int, seed: Int, features: Seq[String], train: Boolean, test: Boolean): Plan = {
    val arguments = Seq("plan", "-solver", solver, "-ranks", ranks.toString, "-random_seed", seed.toString, "-wire") ++
      (if (features.nonEmpty) Seq("-features", features.mkString(",")) else Nil) ++ (if (train) Seq("-train") else Nil) ++ (if (test) Seq("-test") else Nil)
    val done = Command.run(Seconds, arguments: _*)
    if (done.code != 0) throw new IllegalArgumentException(done.story)
    Plan.parseDelimitedFrom(new java.io.ByteArrayInputStream(done.out))
  }
}
