package com.yahoo.ml.jcaffe;

/** What can be given up before the garbage collector comes. */
public abstract class BaseObject {
  /** Once of a native object; there is none in this JVM, and it stays 0. */
  protected long address = 0;

  /** Releases what this object holds; harmless when called again. */
  public void deallocate() {}
}
