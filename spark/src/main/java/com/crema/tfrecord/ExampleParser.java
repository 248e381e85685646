package com.crema.tfrecord;

/**
 * Goes over the features of a tf.train.Example:
 *
 * <pre>message Example { Features features = 1; }
 * message Features { map&lt;string, Feature&gt; feature = 1; }
 * on the wire: repeated { string key = 1; Feature value = 2; }</pre>
 *
 * Five messages by hand instead of protobuf's classes, which make an object for each feature and have names that other
 * jars of TensorFlow's have too (decision 0092). Not for several threads.
 */
public final class ExampleParser {
  /** Takes one feature: its name is bytes[nameFrom .. nameTo), its Feature bytes[from .. to), which may be empty. */
  public interface Sink {
    void feature(byte[] bytes, int nameFrom, int nameTo, int from, int to) throws BadRecord;
  }

  private static final int FIRST = 1 << 3 | WireCursor.BYTES;
  private static final int SECOND = 2 << 3 | WireCursor.BYTES;
  private final WireCursor example = new WireCursor();
  private final WireCursor features = new WireCursor();
  private final WireCursor entry = new WireCursor();

  /**
   * Hands over the features in the order in which they stand. Of two with the same name the later one counts.
   *
   * @throws BadRecord when bytes[from .. to) are no Example
   */
  public void parse(byte[] bytes, int from, int to, Sink sink) throws BadRecord {
    example.set(bytes, from, to);
    while (example.more()) {
      int tag = example.tag();
      if (tag != FIRST) {
        example.skip(tag);
        continue;
      }
      inside(example, features);
      while (features.more()) {
        int inner = features.tag();
        if (inner != FIRST) {
          features.skip(inner);
          continue;
        }
        inside(features, entry);
        parseEntry(sink);
      }
    }
  }

  private static void inside(WireCursor outer, WireCursor inner) throws BadRecord {
    int n = outer.length();
    inner.set(outer.bytes, outer.at, outer.at + n);
    outer.at += n;
  }

  private void parseEntry(Sink sink) throws BadRecord {
    int nameFrom = entry.at;
    int nameTo = entry.at;
    int from = entry.at;
    int to = entry.at;
    while (entry.more()) {
      int tag = entry.tag();
      if (tag == FIRST) {
        int n = entry.length();
        nameFrom = entry.at;
        nameTo = entry.at += n;
      } else if (tag == SECOND) {
        int n = entry.length();
        from = entry.at;
        to = entry.at += n;
      } else {
        entry.skip(tag);
      }
    }
    sink.feature(entry.bytes, nameFrom, nameTo, from, to);
  }
}
