package com.yahoo.ml.jcaffe;

import com.crema.wire.Engine;
import com.crema.wire.Engine.Request;
import com.google.protobuf.ByteString;

/**
 * An image of 8-bit values: pixels row by row with their channels side by side, or bytes that are not decoded yet (1 x
 * 1 x n).
 */
public class Mat extends BaseObject {
  public static final int CV_LOAD_IMAGE_UNCHANGED = -1, CV_LOAD_IMAGE_GRAYSCALE = 0, CV_LOAD_IMAGE_COLOR = 1,
                          CV_LOAD_IMAGE_ANYDEPTH = 2, CV_LOAD_IMAGE_ANYCOLOR = 4;

  private int channels, height, width;
  private byte[] data;

  /** Bytes as they are, such as a JPEG's. @throws NullPointerException for none */
  public Mat(byte[] data) {
    this(1, 1, data.length, data);
  }

  public Mat(int channels, int height, int width, byte[] data) {
    if (data == null) throw new NullPointerException("no bytes are given for an image");
    this.channels = channels;
    this.height = height;
    this.width = width;
    this.data = data;
  }

  /**
   * Decodes JPEG or PNG bytes in place, as OpenCV's imdecode does with these flags at 8 bits. What cannot be decoded
   * leaves an empty image: width() is 0.
   */
  public synchronized void decode(int flags) {
    Engine.Decode.Builder decode = Engine.Decode.newBuilder().setFile(ByteString.copyFrom(data)).setFlags(flags);
    try {
      take(EngineChild.askImages(Request.newBuilder().setDecode(decode).build()).getImage());
    } catch (EngineChild.Refused e) {
      if (!e.kind.equals("data")) throw e;
      channels = 1;
      height = width = 0;
      data = new byte[0];
    }
  }

  /** Bilinear, OpenCV's bits. @throws RuntimeException for sizes below 1, or an empty image */
  public synchronized void resize(int height, int width) {
    if (height < 1 || width < 1)
      throw new IllegalArgumentException("invalid dimensions to resize: " + height + "x" + width);
    Engine.Resize.Builder resize = Engine.Resize.newBuilder().setImage(toMessage()).setHeight(height).setWidth(width);
    take(EngineChild.askImages(Request.newBuilder().setResize(resize).build()).getImage());
  }

  synchronized Engine.Image toMessage() {
    return Engine.Image.newBuilder()
        .setChannels(channels)
        .setHeight(height)
        .setWidth(width)
        .setPixels(ByteString.copyFrom(data))
        .build();
  }

  private void take(Engine.Image image) {
    channels = image.getChannels();
    height = image.getHeight();
    width = image.getWidth();
    data = image.getPixels().toByteArray();
  }

  public int channels() {
    return channels;
  }

  public int height() {
    return height;
  }

  public int width() {
    return width;
  }

  public byte[] data() {
    return data;
  }
}
