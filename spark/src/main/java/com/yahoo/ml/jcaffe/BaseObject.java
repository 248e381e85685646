package com.yahoo.ml.jcaffe;

/** What can be given up before the garbage collector comes. */
public abstract class BaseObject {
  /** Releases what this object holds; harmless when called again. */
  public void deallocate() {}
}
