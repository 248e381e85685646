package com.crema.tfrecord;

import java.io.IOException;

/** A TFRecord file that is damaged, or a record that does not hold what was asked for; the message is for users. */
public final class BadRecord extends IOException {
  private static final long serialVersionUID = 1L;

  public BadRecord(String message) {
    super(message);
  }

  public BadRecord(String message, Throwable cause) {
    super(message, cause);
  }
}
