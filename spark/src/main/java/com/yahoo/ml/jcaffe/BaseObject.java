package com.yahoo.ml.jcaffe;

/** An object that can be released before the garbage collector collects it. */
public abstract class BaseObject {
  /** In CaffeOnSpark the address of a native object; there is none in this JVM, and it stays 0. */
  protected long address = 0;

  /** Releases what this object holds; harmless when called again. */
  public void deallocate() {}
}
