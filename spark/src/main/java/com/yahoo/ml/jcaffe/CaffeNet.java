package com.yahoo.ml.jcaffe;

import caffe.Caffe.SolverParameter;
import com.crema.Cluster;
import com.crema.wire.Engine;
import com.crema.wire.Engine.Nothing;
import com.crema.wire.Engine.Reply;
import com.crema.wire.Engine.Request;
import java.io.IOException;
import java.lang.ref.Cleaner;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.Arrays;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A solver with its nets, to which the caller passes every batch. Each object has a process of the executable.
 *
 * With cluster_size > 1 and SOCKET each node is one rank. Connections are not authenticated: whoever knows the
 * addresses can connect, so use it on networks that you trust. The only solver index is 0, for the only device; a
 * negative one gives false, -1 or null, another one an exception. System properties: crema.host (numeric address to
 * listen on), crema.threads (0: all cores), crema.engine.seconds (deadline of one call, 3600).
 */
public class CaffeNet extends BaseObject {
  public static final int NONE = 0;
  public static final int RDMA = 1;
  public static final int SOCKET = 2;

  private static final Logger LOG = LoggerFactory.getLogger(CaffeNet.class);
  private static final Cleaner CLEANER = Cleaner.create();
  private static final long SECONDS = Long.getLong("crema.engine.seconds", 3600), CONNECT_SECONDS = 60;

  private final EngineChild engine;
  private final Cleaner.Cleanable cleanable;
  private final Engine.Opened facts;
  private final int clusterSize, rank, device;
  private Engine.Blobs validated = Engine.Blobs.getDefaultInstance();

  /**
   * @param input_model_file .caffemodel to start from, or with a state to resume with; "" for none
   * @param start_device_id the device before the first one taken; -1 for the first
   * @throws IOException the solver cannot be read
   * @throws RuntimeException with the engine's sentence when the net cannot be made
   */
  public CaffeNet(String solver_conf_file, String input_model_file, String input_state_file, int num_local_devices,
      int cluster_size, int node_rank, boolean isTraining, int connection_type, int start_device_id,
      int validation_net_id) throws IOException {
    SolverParameter solver = Utils.GetSolverParam(solver_conf_file);
    if (solver.getSolverMode() == SolverParameter.SolverMode.GPU && solver.hasSolverMode())
      throw failed("Cannot use GPU in CPU-only Caffe: check mode.");
    if (num_local_devices < 1) throw failed("number of local Devices must be greater than or equal to 1");
    if (num_local_devices > 1) throw failed("CPU mode only allow single device");
    checkConnection(cluster_size, connection_type);
    clusterSize = cluster_size;
    rank = node_rank;
    device = start_device_id + 1;
    Engine.Open.Builder open = Engine.Open.newBuilder();
    open.setSolver(solver_conf_file).setModel(orEmpty(input_model_file)).setState(orEmpty(input_state_file));
    open.setTraining(isTraining).setClusterSize(cluster_size).setRank(node_rank);
    open.setValidationNet(validation_net_id).setThreads(Integer.getInteger("crema.threads", 0));
    if (cluster_size > 1) open.setHost(Cluster.ownAddress()).setEncrypted(Cluster.encryptsHere());
    engine = new EngineChild();
    try {
      facts = engine.ask(Request.newBuilder().setOpen(open).build(), SECONDS).getOpened();
    } catch (RuntimeException e) {
      engine.close();
      throw new RuntimeException("Failed to create CaffeNet object: " + e.getMessage(), e);
    }
    cleanable = CLEANER.register(this, engine::close);
  }

  private static void checkConnection(int clusterSize, int connection) {
    if (clusterSize < 1) throw failed("cluster size must be positive");
    if (clusterSize == 1 || connection == SOCKET) return;
    throw failed(connection == RDMA ? "RDMA is not offered; use SOCKET (-connection ethernet)"
            : connection == NONE    ? "a cluster of " + clusterSize + " nodes needs a connection: SOCKET"
                                    : "connection type " + connection + " is unknown; use SOCKET");
  }

  private static RuntimeException failed(String why) {
    return new RuntimeException("Failed to create CaffeNet object: " + why);
  }

  private static String orEmpty(String text) {
    return text == null ? "" : text;
  }

  /** False for a negative index. @throws IllegalArgumentException for one beyond the only device */
  private static boolean checked(int solver_index) {
    if (solver_index > 0)
      throw new IllegalArgumentException("solver_index must be 0 for local CaffeNet in CPU mode, not " + solver_index);
    return solver_index == 0;
  }

  private Reply ask(Request.Builder request) {
    return engine.ask(request.build(), SECONDS);
  }

  @Override
  public void deallocate() {
    cleanable.clean();
  }

  /**
   * Connects to the other nodes; all then have rank 0's weights. False, with the reason in the log, when that fails,
   * within ten seconds.
   *
   * @param addresses for each rank what that node's localAddresses() gives at this node's index; null for a single
   *   node
   */
  public boolean connect(String[] addresses) {
    if (clusterSize == 1) return true;
    if (addresses == null) return false;
    try {
      Engine.Addresses.Builder all = Engine.Addresses.newBuilder();
      for (int i = 0; i < addresses.length; i++) all.addAddress(i == rank ? "" : numeric(orEmpty(addresses[i])));
      engine.ask(Request.newBuilder().setConnect(all).build(), CONNECT_SECONDS);
      return true;
    } catch (EngineChild.Refused | UnknownHostException e) {
      LOG.error("node {} of {} cannot connect: {}", rank, clusterSize, e.getMessage());
      return false;
    }
  }

  /**
   * Resolves host names, as the executable does not. An address without a port is passed on for the executable to
   * refuse.
   */
  private static String numeric(String address) throws UnknownHostException {
    int colon = address.lastIndexOf(':');
    if (colon < 1 || address.startsWith("[") || address.substring(0, colon).matches("[0-9.]+")) return address;
    String host = InetAddress.getByName(address.substring(0, colon)).getHostAddress();
    return (host.contains(":") ? "[" + host + "]" : host) + address.substring(colon);
  }

  /** Waits until every node has come here. */
  public boolean sync() {
    ask(Request.newBuilder().setSync(Nothing.getDefaultInstance()));
    return true;
  }

  public boolean init(int solver_index) {
    return init(solver_index, false);
  }

  /** Nothing is bound to a thread: any thread may train. */
  public boolean init(int solver_index, boolean enableNN) {
    return checked(solver_index);
  }

  /**
   * One forward pass of the train net, or when this is not for training of the test net, on the first batch_size
   * samples of `data`.
   *
   * @return the named blobs as they are then; null without names
   */
  public FloatBlob[] predict(int solver_index, FloatBlob[] data, String[] output_blobnames) {
    checkData(data);
    if (!checked(solver_index) || output_blobnames.length == 0) return null;
    Engine.Predict.Builder predict = Engine.Predict.newBuilder().addAllName(Arrays.asList(output_blobnames));
    for (FloatBlob blob : data) predict.addData(EngineChild.toMessage(blob));
    return toBlobs(ask(Request.newBuilder().setPredict(predict)).getBlobs(), output_blobnames.length);
  }

  /** One iteration of the solver on the first batch_size samples of `data`, one blob for each top of the data layer. */
  public boolean train(int solver_index, FloatBlob[] data) {
    checkData(data);
    if (!checked(solver_index)) return false;
    ask(Request.newBuilder().setTrain(toMessage(data)));
    return true;
  }

  private static void checkData(FloatBlob[] data) {
    if (data == null) throw new IllegalArgumentException("data is NULL");
    for (int i = 0; i < data.length; i++)
      if (data[i] == null) throw new IllegalArgumentException("data is NULL: blob " + i);
  }

  private static Engine.Blobs toMessage(FloatBlob[] data) {
    Engine.Blobs.Builder blobs = Engine.Blobs.newBuilder();
    for (FloatBlob blob : data) blobs.addBlob(EngineChild.toMessage(blob));
    return blobs.build();
  }

  private static FloatBlob[] toBlobs(Engine.Blobs from, int length) {
    FloatBlob[] blobs = new FloatBlob[length];
    for (int i = 0; i < Math.min(length, from.getBlobCount()); i++) blobs[i] = EngineChild.toBlob(from.getBlob(i));
    return blobs;
  }

  /**
   * The addresses at which the other nodes reach this one, such as 10.0.0.4:5012/KEY: one for each of them by rank, ""
   * at its own index; none for a single node. The key lets in who has it: give it to the other nodes alone.
   */
  public String[] localAddresses() {
    if (clusterSize == 1) return new String[0];
    String[] all = new String[clusterSize];
    Arrays.fill(all, facts.getAddress());
    all[rank] = "";
    return all;
  }

  public int deviceID(int solver_index) {
    return checked(solver_index) ? device : -1;
  }

  /** The iteration at which this object began: more than 0 after a state was restored. */
  public int getInitIter(int solver_index) {
    return checked(solver_index) ? facts.getIteration() : -1;
  }

  public int getMaxIter(int solver_index) {
    return checked(solver_index) ? facts.getMaxIter() : -1;
  }

  public int getTestIter(int solver_index) {
    return checked(solver_index) ? facts.getTestIter() : -1;
  }

  public int getTestInterval() {
    return facts.getTestInterval();
  }

  /** Writes model and state by snapshot_prefix; the iteration in their names. */
  public int snapshot() {
    return ask(Request.newBuilder().setSnapshot(Nothing.getDefaultInstance())).getSnapshot().getIteration();
  }

  public String[] getValidationOutputBlobNames() {
    return facts.getOutputList().toArray(new String[0]);
  }

  /** The validation net's outputs for the last batch, by getValidationOutputBlobNames(); null beyond them. */
  public synchronized FloatBlob[] getValidationOutputBlobs(int length) {
    return toBlobs(validated, length);
  }

  /** The file that snapshot() writes at an iteration; null for a negative one. */
  public String snapshotFilename(int iter, boolean isState) {
    if (iter < 0) return null;
    return facts.getSnapshotPrefix() + "_iter_" + iter + (isState ? ".solverstate" : ".caffemodel")
        + facts.getSnapshotSuffix();
  }

  /** One forward pass of the validation net; its outputs are added up for aggregateValidationOutputs(). */
  public synchronized void validation(FloatBlob[] data) {
    checkData(data);
    validated = ask(Request.newBuilder().setValidation(toMessage(data))).getBlobs();
  }

  /** Logs the means of the outputs over the batches since the last call, in Caffe's words. */
  public void aggregateValidationOutputs() {
    ask(Request.newBuilder().setAggregate(Nothing.getDefaultInstance()));
  }

  /** SHA-256 of all parameters: equal on all nodes after every step. */
  String weightsDigest() {
    return ask(Request.newBuilder().setWeights(Nothing.getDefaultInstance())).getWeights();
  }
}
