package com.yahoo.ml.jcaffe;

import caffe.Caffe.NetParameter;
import caffe.Caffe.SolverParameter;
import com.google.protobuf.TextFormat;
import java.io.IOException;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;

/** Prototxts as they are written: nothing is upgraded or checked. */
public class Utils {
  public static SolverParameter GetSolverParam(String file) throws IOException {
    SolverParameter.Builder solver = SolverParameter.newBuilder();
    merge(file, solver);
    return solver.build();
  }

  public static NetParameter GetNetParam(String file) throws IOException {
    NetParameter.Builder net = NetParameter.newBuilder();
    merge(file, net);
    return net.build();
  }

  private static void merge(String file, com.google.protobuf.Message.Builder into) throws IOException {
    try (Reader reader = Files.newBufferedReader(Paths.get(file), StandardCharsets.UTF_8)) {
      TextFormat.merge(reader, into);
    } catch (TextFormat.ParseException e) {
      throw new IOException(file + ":" + e.getMessage(), e);
    }
  }
}
