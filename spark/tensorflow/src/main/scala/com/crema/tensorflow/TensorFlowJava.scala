package com.crema.tensorflow

import com.crema.{Storage, WrongInput}

/** TensorFlow Java is the user's own dependency. This object mentions none of its classes, and says what to do where
  * they, or the native library, are not there.
  */
object TensorFlowJava {
  val Version = "1.1.0"

  /** @throws WrongInput when body needs what is missing, instead of the JVM's error */
  def required[A](body: => A): A =
    try body
    catch { case e: LinkageError => throw new WrongInput(refusal(e), e) }

  private def refusal(e: LinkageError): String = {
    val chain = Iterator.iterate[Throwable](e)(_.getCause).takeWhile(_ != null).take(20).toList
    val absent = chain.collectFirst {
      case missing: ClassNotFoundException => missing.getMessage.replace('/', '.')
      case missing: NoClassDefFoundError if !String.valueOf(missing.getMessage).contains(" ") =>
        missing.getMessage.replace('/', '.')
    }
    absent match {
      case Some(name) => s"TensorFlow Java is not on the class path (there is no class $name); $remedy"
      case None =>
        s"TensorFlow Java cannot be started on this machine: ${Storage.cause(e)}; it must be of one version, with " +
          s"the native library of this system and processor: $remedy"
    }
  }

  // Not tensorflow-core-platform: of its artifacts of one name, Spark's --packages leaves out the one with the classes.
  private def remedy =
    s"add to spark-submit --packages org.tensorflow:tensorflow-core-api:$Version, and to its --jars " +
      s"tensorflow-core-native-$Version-linux-x86_64.jar, which is that artifact of org.tensorflow with this classifier"
}
