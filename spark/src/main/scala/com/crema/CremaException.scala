package com.crema

/** What was given is wrong: trying again changes nothing. An exception that does not say so may be of a moment: a
  * NameNode that is being restarted, a process that was killed. Java's own IllegalArgumentException says nothing:
  * Hadoop throws it for a host that is not known just now.
  */
sealed trait Lasting extends Throwable

/** What went wrong, as a story for people: cause, place and remedy, then the last lines of the process that failed. */
class CremaException(message: String, cause: Throwable = null) extends RuntimeException(message, cause)

class WrongInput(message: String, cause: Throwable = null) extends CremaException(message, cause) with Lasting

/** The same, of the classes that users of CaffeOnSpark and of Spark ML know. */
class Refusal(message: String) extends IllegalStateException(message) with Lasting
class WrongArgument(message: String, cause: Throwable = null)
    extends IllegalArgumentException(message, cause) with Lasting

object CremaException {
  /** @param kind the executable's, as Event.Failed says (engine/base/error.h) */
  def of(kind: String, message: String, cause: Throwable = null): CremaException =
    if (kind == "invalid" || kind == "data") new WrongInput(message, cause) else new CremaException(message, cause)
}
