package com.crema

/** Marks errors in what was given, which another attempt would meet again. Errors without the mark may be temporary,
  * such as a NameNode that is restarting or a killed process. IllegalArgumentException does not imply the mark: Hadoop
  * throws it for a host name that cannot be resolved at the moment.
  */
sealed trait Lasting extends Throwable

/** A failure with a message for users: cause, place and remedy, then the last log lines of the process that failed. */
class CremaException(message: String, cause: Throwable = null) extends RuntimeException(message, cause)

class WrongInput(message: String, cause: Throwable = null) extends CremaException(message, cause) with Lasting

/** The same with the exception type that users of CaffeOnSpark and of Spark ML know. */
class Refusal(message: String) extends IllegalStateException(message) with Lasting
class WrongArgument(message: String, cause: Throwable = null)
    extends IllegalArgumentException(message, cause) with Lasting

object CremaException {
  /** @param kind the executable's, as Event.Failed says (engine/base/error.h) */
  def of(kind: String, message: String, cause: Throwable = null): CremaException =
    if (kind == "invalid" || kind == "data") new WrongInput(message, cause) else new CremaException(message, cause)
}
