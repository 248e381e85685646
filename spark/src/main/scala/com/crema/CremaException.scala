package com.crema

/** What went wrong, as a story for people: cause, place and remedy, then the last lines of the process that failed. */
class CremaException(message: String, cause: Throwable = null) extends RuntimeException(message, cause)

/** What was given is wrong: trying again changes nothing. */
class WrongInput(message: String, cause: Throwable = null) extends CremaException(message, cause)

/** The same, of the class that users of CaffeOnSpark know. */
class Refusal(message: String) extends IllegalStateException(message)

object CremaException {
  /** @param kind the executable's, as Event.Failed says (engine/base/error.h) */
  def of(kind: String, message: String, cause: Throwable = null): CremaException =
    if (kind == "invalid" || kind == "data") new WrongInput(message, cause) else new CremaException(message, cause)
}
