package com.yahoo.ml.jcaffe;

import caffe.Caffe.LayerParameter;
import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.List;

/**
 * Decoding, resizing and transforming as a loop, to see how many images a second that gives.
 *
 * Arguments: the root of a source tree laid out as CaffeOnSpark's
 * (caffe-distri/src/test/resources/caffenet_solver.prototxt, data/images), and the number of batches.
 */
public class Simulator {
  private static final int BATCH = 4, SIZE = 227;

  public static void main(String[] args) throws Exception {
    if (args.length != 2) throw new IllegalArgumentException("arguments: ROOT BATCHES");
    int batches = Integer.parseInt(args[1]);
    long start = System.nanoTime();
    new Simulator(args[0]).run(batches);
    double seconds = (System.nanoTime() - start) / 1e9;
    System.out.printf("%d images of %dx%d in %.2f s: %.1f images/s%n", batches * BATCH, SIZE, SIZE, seconds,
        batches * BATCH / seconds);
  }

  private final Path root;
  private final List<String> lines;
  private int next = 0;

  Simulator(String root) throws Exception {
    this.root = Paths.get(root);
    lines = Files.readAllLines(this.root.resolve("data/images/labels.txt"), StandardCharsets.UTF_8);
  }

  private void run(int batches) throws Exception {
    Path project = root.resolve("caffe-distri");
    String net =
        Utils.GetSolverParam(project.resolve("src/test/resources/caffenet_solver.prototxt").toString()).getNet();
    LayerParameter layer =
        Utils.GetNetParam(new File(net).isAbsolute() ? net : project.resolve(net).toString()).getLayer(0);
    FloatDataTransformer transformer = new FloatDataTransformer(layer.getTransformParam(), true);
    FloatBlob blob = new FloatBlob();
    blob.reshape(BATCH, 3, SIZE, SIZE);
    MatVector images = new MatVector(BATCH);
    for (int i = 0; i < batches; i++) {
      for (int k = 0; k < BATCH; k++) images.put(k, nextImage());
      transformer.transform(images, blob);
    }
  }

  private Mat nextImage() throws Exception {
    String name = lines.get(next++ % lines.size()).split(" ")[0];
    Mat mat = new Mat(Files.readAllBytes(root.resolve("data/images").resolve(name)));
    mat.decode(Mat.CV_LOAD_IMAGE_COLOR);
    if (mat.width() == 0) throw new IllegalArgumentException(name + " cannot be decoded");
    mat.resize(SIZE, SIZE);
    return mat;
  }
}
