package com.crema

import java.util.Locale

import com.crema.wire.Wire.Event

import scala.collection.JavaConverters._

/** What the driver shows while a run goes on: one live line on a terminal, now and then a plain line elsewhere. */
class Console(interval: Double = 2.0) {
  private val terminal = System.console() != null
  private var lastLine = 0.0
  private var live = false

  def say(text: String): Unit = synchronized {
    if (live) { System.err.print("\r\u001b[K"); live = false }
    System.err.println(s"crema: $text")
  }

  def show(event: Event): Unit = synchronized {
    if (event.hasJoined) {
      val j = event.getJoined
      say(s"worker ${j.getWorker} is there (${j.getHave} of ${j.getWant}, host ${j.getHost})")
    } else if (event.hasPreparing) {
      val p = event.getPreparing
      say(s"preparing rows: ${p.getReady} of ${p.getWant} workers have theirs, Spark still sorts for the others")
    } else if (event.hasTest) {
      val outputs = event.getTest.getOutputList.asScala
        .map(o => s"${o.getName} ${o.getValueList.asScala.map(v => "%.4f".formatLocal(Locale.ROOT, v)).mkString(" ")}")
      say(s"iteration ${event.getTest.getIteration}: test ${outputs.mkString("  ")}")
    } else if (event.hasSnapshot) {
      say(s"iteration ${event.getSnapshot.getIteration}: snapshot")
    } else if (event.hasLost) {
      say(s"${event.getLost.getStory}; ${if (event.getLost.getLast) "no worker is left" else "the run goes on"}")
    } else if (event.hasRegrouped) {
      val r = event.getRegrouped
      val came = if (r.getCameCount > 0) r.getCameList.asScala.mkString(" (new: ", ", ", ")") else ""
      val shares = if (r.getShares.isEmpty) "" else s"; ${r.getShares}"
      say("training goes on with %d worker(s)%s from iteration %d, after %.2f s%s"
          .formatLocal(Locale.ROOT, r.getWorkers, came, r.getIteration, r.getPause, shares))
    } else if (event.hasProgress) progress(event.getProgress)
  }

  private def progress(p: Event.Progress): Unit = {
    val now = System.nanoTime() / 1e9
    if (now - lastLine >= (if (terminal) 0.1 else interval)) {
      lastLine = now
      val seconds = math.round(p.getSecondsLeft)
      val left =
        if (p.hasSecondsLeft) "  %d:%02d left".formatLocal(Locale.ROOT, seconds / 60, seconds % 60) else ""
      def share(of: String, part: Double): String =
        if (part >= 0.01) "  %s %.0f %%".formatLocal(Locale.ROOT, of, 100 * part) else ""
      val shares = share("feed", p.getFeedShare) + share("compute", p.getComputeShare) +
        share("exchange", p.getExchangeShare) + share("wait", p.getWaitShare)
      val slow = if (p.getSlowestWorker >= 0) s"  slowest: worker ${p.getSlowestWorker}" else ""
      val line = "training  iteration %d/%d  loss %.4f  lr %.5f  %.0f records/s%s%s%s"
        .formatLocal(Locale.ROOT, p.getIteration + 1, p.getMaxIter, p.getLoss, p.getLr, p.getRecordsPerSecond,
          left, shares, slow)
      if (terminal) {
        System.err.print(s"\r\u001b[K\u001b[?7lcrema: ${line}\u001b[?7h") // cut at the terminal's width, not wrapped
        live = true
      } else say(line)
    }
  }
}
