package com.yahoo.ml.dl.caffe;

import java.io.Serializable;

/** Two values, as old SequenceFiles have them in their keys. New files have tuples. */
@Deprecated
public class Pair<F, S> implements Serializable {
  public F first;
  public S second;

  public Pair(F first, S second) {
    this.first = first;
    this.second = second;
  }
}
