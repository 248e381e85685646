package com.crema

/** What went wrong, as a story for people: cause, place and remedy, then the last lines of the process that failed. */
class CremaException(message: String, cause: Throwable = null) extends RuntimeException(message, cause)
