package com.crema

import com.crema.wire.Wire.Plan

/** Weights: a local copy, and the name under which the user gave them. */
case class Weights(path: String, name: String)

/** Asks the executable on the driver (`crema plan`) what a solver and its nets mean, and whether weights and blobs fit
  * them, so that one parser judges them everywhere: before a job starts, and whenever a stage of Spark ML is used.
  */
object Planner {
  private val Seconds = 60L

  /** The warning, printed once, that layers of a net that is to score have no weights in the model. */
  def untrainedWarning(plan: Plan, model: String): Option[String] =
    if (plan.getUntrainedCount == 0) None
    else {
      val layers = String.join(", ", plan.getUntrainedList)
      Some(s"$model has no values for $layers: the random values of their fillers enter the results")
    }

  /** @param weights are checked against the TEST net, unless that cannot be built without its data
    * @param seed for a solver that sets no random_seed
    * @throws WrongArgument with the executable's own sentence, when it ended with one: solver, net and weights are
    *   files of this machine, so another attempt would find them as they are
    * @throws CremaException when it ended without a sentence, as a killed one does, or not within a minute
    */
  def plan(solver: String, ranks: Int, seed: Int, features: Seq[String], train: Boolean, test: Boolean,
      weights: Option[Weights] = None, label: String = ""): Plan = {
    val arguments = Seq("plan", "-solver", solver, "-ranks", ranks.toString, "-random_seed", seed.toString, "-wire") ++
      (if (features.nonEmpty) Seq("-features", features.mkString(",")) else Nil) ++
      (if (train) Seq("-train") else Nil) ++
      (if (test) Seq("-test") else Nil) ++
      (if (label.nonEmpty) Seq("-label", label) else Nil) ++
      weights.toSeq.flatMap(w => Seq("-weights", w.path, "-weights_name", w.name))
    val done = Command.run(Seconds, arguments: _*)
    if (done.code != 0)
      throw (if (done.hasReason) new WrongArgument(done.explanation) else new CremaException(done.explanation))
    Plan.parseDelimitedFrom(new java.io.ByteArrayInputStream(done.out))
  }
}
