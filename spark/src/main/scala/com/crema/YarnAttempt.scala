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

/** This driver as the ApplicationMaster of YARN's cluster mode: nobody sees its console, what it leaves are the
  * application's diagnostics, and a failed attempt is followed by another one.
  *
  * Spark's ApplicationMaster unregisters, which is what keeps YARN from another attempt and what carries diagnostics,
  * after success or in the last attempt only, and not at all before there is a SparkContext. So what cannot be mended
  * by trying again is told to the ResourceManager here, with this container's own token; Spark then finds the
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

  /** What this application's attempts leave for the next one; YARN gives every application a staging folder of its own,
    * which lives until its last attempt.
    */
  lazy val journal: Option[Journal] = staging.map(folder => new Journal(new Path(folder, "crema-journal"), yarn))

  private def page =
    try s"\nits page: ${WebAppUtils.getResolvedRMWebAppURLWithScheme(yarn)}/cluster/app/$application"
    catch { case NonFatal(_) => "" }
  private def whereToLook = s"the whole log: yarn logs -applicationId $application$page"

  /** After the SparkContext has ended, if there was one: the failure as the application's diagnostics, and as what is
    * to be thrown out of main. Without another attempt when that would change nothing.
    */
  def ended(e: Throwable): CremaException = {
    val sentence = s"crema: error: ${Option(e.getMessage).getOrElse(e.toString)}"
    val last = Story.lasting(e) || number >= most
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
  /** Spark's own master registers as soon as there is a SparkContext. */
  @volatile private var sparkRegistered = false
  def began(sc: SparkContext): Unit = sparkRegistered = true

  /** Nothing where main is not the ApplicationMaster's. */
  def of(settings: SparkConf): Option[YarnAttempt] =
    if (settings.get("spark.master", "") != "yarn" || settings.get("spark.submit.deployMode", "client") != "cluster")
      None
    else {
      val container = Option(System.getenv(Environment.CONTAINER_ID.name))
      container.map(c => new YarnAttempt(ContainerId.fromString(c).getApplicationAttemptId, settings))
    }
}
