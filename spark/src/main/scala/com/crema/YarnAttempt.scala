package com.crema

import java.net.InetAddress

import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path
import org.apache.hadoop.yarn.api.ApplicationConstants.Environment
import org.apache.hadoop.yarn.api.records.{ApplicationAttemptId, ContainerId, FinalApplicationStatus}
import org.apache.hadoop.yarn.client.api.AMRMClient
import org.apache.hadoop.yarn.client.api.AMRMClient.ContainerRequest
import org.apache.hadoop.yarn.conf.YarnConfiguration
import org.apache.hadoop.yarn.webapp.util.WebAppUtils
import org.apache.spark.{SparkConf, SparkContext}
import org.apache.spark.crema.Edges

/** This driver as the ApplicationMaster of YARN's cluster mode, where users see no console: what reaches them are the
  * application's diagnostics, and YARN starts another attempt after a failed one.
  *
  * Unregistering prevents another attempt and sets the diagnostics, but Spark's ApplicationMaster unregisters only
  * after success or in the last attempt, and never before there is a SparkContext. So an error that another attempt
  * would meet again is reported to the ResourceManager here, with this container's own token; Spark then finds the
  * application finished.
  */
class YarnAttempt private (id: ApplicationAttemptId, settings: SparkConf) {
  private val log = org.slf4j.LoggerFactory.getLogger(getClass)
  private val yarn = new YarnConfiguration()
  private val staging = Option(System.getenv("SPARK_YARN_STAGING_DIR")).map(new Path(_))

  def number: Int = id.getAttemptId
  def application: String = id.getApplicationId.toString
  private def most = math.min(
    settings.getInt("spark.yarn.maxAppAttempts", Int.MaxValue),
    yarn.getInt(YarnConfiguration.RM_AM_MAX_ATTEMPTS, YarnConfiguration.DEFAULT_RM_AM_MAX_ATTEMPTS)
  )

  /** The journal through which this application's attempts pass on their state. It is in the application's staging
    * folder, which YARN keeps until the last attempt.
    */
  lazy val journal: Option[Journal] = staging.map(folder => new Journal(new Path(folder, "crema-journal"), yarn))

  private def page =
    try s"\nits page: ${WebAppUtils.getResolvedRMWebAppURLWithScheme(yarn)}/cluster/app/$application"
    catch { case NonFatal(_) => "" }
  private def whereToLook = s"the whole log: yarn logs -applicationId $application$page"

  /** After the SparkContext has ended, if there was one: sets the failure as the application's diagnostics, prevents
    * another attempt when that would fail in the same way, and returns the exception to throw from main.
    */
  def ended(e: Throwable): CremaException = {
    val sentence = s"crema: error: ${JobError.lastWord(e, settings)}"
    val last = JobError.isLasting(e) || number >= most
    if (last && !Edges.ending) finish(s"$sentence\n$whereToLook")
    val next =
      if (last) ""
      else s"\nattempt $number of $application has failed; YARN starts attempt ${number + 1}, at most $most"
    System.err.println(sentence + next)
    new CremaException(s"$sentence$next\n$whereToLook", e)
  }

  private def finish(diagnostics: String): Unit =
    try {
      val client = AMRMClient.createAMRMClient[ContainerRequest]()
      client.init(yarn)
      client.start()
      try {
        if (!YarnAttempt.sparkRegistered) client.registerApplicationMaster(InetAddress.getLocalHost.getHostName, -1, "")
        client.unregisterApplicationMaster(FinalApplicationStatus.FAILED, diagnostics, "")
      } finally client.stop()
      if (!settings.getBoolean("spark.yarn.preserve.staging.files", false))
        staging.foreach(p => p.getFileSystem(yarn).delete(p, true))
    } catch {
      case NonFatal(e) =>
        log.warn(s"the ResourceManager was not told why $application ended; YARN may start another attempt", e)
    }
}

object YarnAttempt {
  /** Whether Spark's own ApplicationMaster has registered, which it does as soon as there is a SparkContext. */
  @volatile private var sparkRegistered = false
  def began(sc: SparkContext): Unit = sparkRegistered = true

  /** None where main does not run as the ApplicationMaster. */
  def of(settings: SparkConf): Option[YarnAttempt] =
    if (settings.get("spark.master", "") != "yarn" || settings.get("spark.submit.deployMode", "client") != "cluster")
      None
    else {
      val container = Option(System.getenv(Environment.CONTAINER_ID.name))
      container.map(c => new YarnAttempt(ContainerId.fromString(c).getApplicationAttemptId, settings))
    }
}
