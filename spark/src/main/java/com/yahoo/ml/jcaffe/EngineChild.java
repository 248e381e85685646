package com.yahoo.ml.jcaffe;

import com.crema.Child;
import com.crema.CremaException;
import com.crema.wire.Engine.Nothing;
import com.crema.wire.Engine.Reply;
import com.crema.wire.Engine.Request;
import com.google.protobuf.ByteString;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import scala.Option;

/**
 * A process `crema engine` and the requests to it, one after the other; any thread may call. It ends with close(), or
 * with this JVM.
 */
final class EngineChild implements AutoCloseable {
  /** The engine refused a request, with its own message; the process goes on. */
  static final class Refused extends RuntimeException {
    private static final long serialVersionUID = 1L;
    final String kind;

    Refused(String kind, String message) {
      super(message);
      this.kind = kind;
    }
  }

  static final long IMAGE_SECONDS = 120;
  private static final ScheduledExecutorService CLOCK = Executors.newSingleThreadScheduledExecutor(run -> {
    Thread thread = new Thread(run, "crema-engine-deadlines");
    thread.setDaemon(true);
    return thread;
  });
  private static EngineChild images;

  private final Child child;

  EngineChild() {
    child = new Child("engine", Request.newBuilder().setHello(Nothing.getDefaultInstance()).build());
    answer("hello", IMAGE_SECONDS, null);
  }

  /**
   * Sends a request and waits for its reply.
   *
   * @throws Refused when the engine refuses it
   * @throws CremaException when the process has ended or does not answer in time, when it is killed
   */
  synchronized Reply ask(Request request, long seconds) {
    String what = request.getWhatCase().toString().toLowerCase();
    if (!child.alive()) throw gone(what);
    return answer(what, seconds, request);
  }

  /** Also of a request that a stopped process does not take. request: null where it has been sent. */
  private Reply answer(String what, long seconds, Request request) {
    AtomicBoolean late = new AtomicBoolean();
    ScheduledFuture<?> deadline = CLOCK.schedule(() -> {
      late.set(true);
      child.close();
    }, seconds, TimeUnit.SECONDS);
    Option<Reply> reply;
    try {
      reply = request == null || child.send(request) ? child.next(Reply.parser()) : Option.empty();
    } finally {
      deadline.cancel(false);
    }
    if (late.get())
      throw new CremaException(
          "`crema engine` did not answer '" + what + "' within " + seconds + " s and was ended", null);
    if (reply.isEmpty()) {
      child.close();
      throw gone(what);
    }
    if (reply.get().hasFailed())
      throw new Refused(reply.get().getFailed().getKind(), reply.get().getFailed().getStory());
    return reply.get();
  }

  private CremaException gone(String what) {
    return new CremaException(
        "`crema engine` (pid " + child.pid() + ") is gone; it had been asked for '" + what + "'" + child.tail(), null);
  }

  long pid() {
    return child.pid();
  }

  @Override
  public void close() {
    child.close();
  }

  /**
   * The process that works on pictures, one per JVM: started by the first request, and again when it has died. A reply
   * depends on the request alone.
   */
  static Reply askImages(Request request) {
    EngineChild asked = images();
    try {
      return asked.ask(request, IMAGE_SECONDS);
    } catch (CremaException e) { // it died meanwhile; a request that kills the new one too is reported
      forget(asked);
      return images().ask(request, IMAGE_SECONDS);
    }
  }

  /** A process counts as alive for a moment after it was killed; so the caller that found it dead clears the field. */
  private static synchronized void forget(EngineChild gone) {
    if (images == gone) images = null;
  }

  static synchronized EngineChild images() {
    if (images == null || !images.child.alive()) images = new EngineChild();
    return images;
  }

  static com.crema.wire.Engine.Blob toMessage(FloatBlob blob) {
    float[] values = blob.values();
    ByteBuffer bytes = ByteBuffer.allocate(Math.multiplyExact(4, values.length)).order(ByteOrder.LITTLE_ENDIAN);
    bytes.asFloatBuffer().put(values);
    com.crema.wire.Engine.Blob.Builder out =
        com.crema.wire.Engine.Blob.newBuilder().setData(ByteString.copyFrom(bytes));
    for (int size : blob.shape()) out.addDim(size);
    return out.build();
  }

  static FloatBuffer floats(com.crema.wire.Engine.Blob blob) {
    return blob.getData().asReadOnlyByteBuffer().order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer();
  }

  static FloatBlob toBlob(com.crema.wire.Engine.Blob from) {
    FloatBlob blob = new FloatBlob();
    blob.reshape(from.getDimList().stream().mapToInt(Integer::intValue).toArray());
    floats(from).get(blob.values());
    return blob;
  }
}
