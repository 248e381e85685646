package com.yahoo.ml.jcaffe;

import caffe.Caffe.TransformationParameter;
import com.crema.wire.Engine;
import com.crema.wire.Engine.Request;
import com.google.protobuf.ByteString;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.util.Arrays;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Converts images to the input of a net: crop, mirror, (pixel - mean) * scale. Crop and mirror are drawn anew for each
 * batch and image.
 */
public class FloatDataTransformer extends BaseObject {
  private final TransformationParameter parameter;
  private final boolean isTrain;
  private final long seed = ThreadLocalRandom.current().nextLong();
  private final AtomicLong batches = new AtomicLong();

  /** @throws NullPointerException without a parameter */
  public FloatDataTransformer(TransformationParameter parameter, boolean isTrain) throws IOException {
    if (parameter == null) throw new NullPointerException("no TransformationParameter is given");
    this.parameter = parameter;
    this.isTrain = isTrain;
  }

  /**
   * Writes image i to place i of the blob, whose sizes must be those of the result; it may have more places than there
   * are images.
   */
  public void transform(MatVector images, FloatBlob blob) {
    if (images == null || blob == null) throw new NullPointerException("NULL object");
    Engine.Transform.Builder transform = Engine.Transform.newBuilder();
    for (int i = 0; i < images.size(); i++) {
      if (images.get(i) == null) throw new NullPointerException("place " + i + " of the MatVector holds no image");
      transform.addImage(images.get(i).toMessage());
    }
    transform(transform, blob);
  }

  /** Transforms item i of a blob N x C x H x W into item i of the other. */
  public void transform(FloatBlob input, FloatBlob output) throws Exception {
    if (input == null || output == null) throw new NullPointerException("NULL object");
    ByteBuffer bytes = ByteBuffer.allocate(4 * input.count()).order(ByteOrder.LITTLE_ENDIAN);
    bytes.asFloatBuffer().put(input.values());
    Engine.Blob.Builder blob = Engine.Blob.newBuilder().setData(ByteString.copyFrom(bytes.array()));
    for (int size : input.shape()) blob.addDim(size);
    transform(Engine.Transform.newBuilder().setBlob(blob), output);
  }

  private void transform(Engine.Transform.Builder transform, FloatBlob blob) {
    transform.setParameter(parameter.toByteString())
        .setTrain(isTrain)
        .setSeed(seed)
        .setSequence(batches.getAndIncrement());
    Engine.Blob result =
        EngineChild.askImages(Request.newBuilder().setTransform(transform).build()).getBlobs().getBlob(0);
    int[] have = blob.shape(), made = result.getDimList().stream().mapToInt(Integer::intValue).toArray();
    boolean fits =
        have.length == made.length && have[0] >= made[0] && Arrays.equals(have, 1, have.length, made, 1, made.length);
    if (!fits)
      throw new IllegalArgumentException("the images become " + Arrays.toString(made) + ", the blob is "
          + Arrays.toString(have) + "; reshape it, resize the images or set crop_size");
    FloatBuffer values = EngineChild.floats(result);
    values.get(blob.values(), 0, values.remaining());
  }
}
