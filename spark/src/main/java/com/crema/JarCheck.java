package com.crema;

import java.io.IOException;
import java.io.InputStream;
import java.util.Properties;

/**
 * Checks that this jar is for the Spark that runs it. Written in Java, as it must run before any class of another
 * Scala version is loaded.
 */
public final class JarCheck {
  private JarCheck() {}

  /** The error message, or null. */
  public static String complaint() {
    return complaint(read("/crema-build.properties", "spark.line"), read("/crema-build.properties", "scala.binary"),
        read("/spark-version-info.properties", "version"), read("/library.properties", "version.number"));
  }

  /**
   * For a main program: ends the JVM with the message. In YARN's cluster mode it is thrown instead, as YARN reports
   * the exception that leaves main.
   */
  public static void orEnd() {
    final String text = complaint();
    if (text == null) return;
    System.err.println("crema: error: " + text);
    if ("cluster".equals(System.getProperty("spark.submit.deployMode"))) throw new IllegalArgumentException(text);
    System.exit(1);
  }

  static String complaint(String line, String scala, String spark, String runningScala) {
    if (line == null || spark == null) return null; // nothing is known: what does not fit will say so itself
    if (spark.equals("4.0.0"))
      return "Spark 4.0.0 is not supported: its first release has faults that later ones mend; "
          + "use Spark 4.0.1 or later, or 3.5";
    final boolean four = spark.startsWith("4."), known = four || spark.startsWith("3.5.");
    final String running = runningScala == null ? scala : runningScala.replaceFirst("^(\\d+\\.\\d+).*", "$1");
    if ((line.equals("4") ? four : spark.startsWith(line + ".")) && running.equals(scala)) return null;
    return "this jar is for Spark " + line + " with Scala " + scala + ", and this is Spark " + spark + " with Scala "
        + running + "; take the jar crema-spark-"
        + (four ? "4_2.13" : "3.5_" + (running.equals("2.13") ? "2.13" : "2.12"))
        + (known ? "" : " and Spark 3.5 or 4");
  }

  private static String read(String resource, String key) {
    try (InputStream in = JarCheck.class.getResourceAsStream(resource)) {
      if (in == null) return null;
      final Properties p = new Properties();
      p.load(in);
      return p.getProperty(key);
    } catch (IOException e) {
      return null;
    }
  }
}
