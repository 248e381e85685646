package com.yahoo.ml.caffe

import com.crema.{Journal, Refusal}

/** What an earlier attempt of this application has already done.
  *
  * @param isTrained whether its model is there
  * @param output the folder that it was writing
  */
private[caffe] class Earlier(val isTrained: Boolean, val output: Option[String])

private[caffe] object Earlier {
  /** Resumes where the earlier attempt's journal ends, and says so: with its model, or from its newest complete
    * snapshot, with its random_seed.
    *
    * @throws Refusal when there were snapshots or the model, and they cannot be used: training must not silently begin
    *   again
    */
  def of(attempt: Option[Int], journal: Option[Journal], conf: Config): Earlier = (attempt, journal) match {
    case (Some(number), Some(j)) if number > 1 =>
      j.read()
      j.seed.foreach(conf.seedIfUnset = _)
      val trained = if (conf.isTraining) j.model else None
      def say(text: String): Unit = System.err.println(s"crema: attempt $number of this application: $text")
      if (trained.isDefined) {
        say(s"the one before has trained the model at ${trained.get}, which is taken")
        conf.modelPath = trained.get
      } else if (conf.isTraining) j.snapshot match {
        case Some((iteration, model, state)) =>
          say(s"the one before has failed; training goes on from its snapshot of iteration $iteration, $state")
          conf.snapshotModelFile = model
          conf.snapshotStateFile = state
        case None =>
          val where = if (conf.snapshotStateFile.isEmpty) "at iteration 0" else s"from ${conf.snapshotStateFile}"
          say(s"the one before has failed, and left no snapshot: training begins again $where")
      }
      for (place <- j.output if conf.isFeature && place == conf.at(conf.outputPath))
        say(s"the one before had begun to write $place, which is written anew")
      new Earlier(trained.isDefined, j.output)
    case (Some(number), None) if number > 1 && conf.isTraining =>
      throw new Refusal(
        s"attempt $number cannot know what the one before did, as the container has no SPARK_YARN_STAGING_DIR: " +
          "submit the job anew, with -snapshot and -weights if there are snapshots")
    case _ => new Earlier(isTrained = false, None)
  }
}
