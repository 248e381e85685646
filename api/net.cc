// The functions of crema.h on nets.
#include "net/net.h"

#include <algorithm>

#include "api/handles.h"
#include "base/file.h"
#include "base/log.h"
#include "layers/record_layer.h"
#include "model/upgrade.h"

namespace crema::api {
namespace {

const std::vector<std::string> kNothing;

void checkLayer(const NetBox& box, int layer) {
  if (layer < 0 || layer >= box.layers()) invalid("there is no layer {}: the net has {}", layer, box.layers());
}

// Whether one of the layers first..last has no bottoms, so that data comes from it.
bool makesBlobs(const net::Net& net, int first, int last) {
  for (int i = first; i <= last; ++i)
    if (net.bottoms(i).empty()) return true;
  return false;
}

}  // namespace

NetBox::NetBox(std::shared_ptr<Compute> e, std::shared_ptr<net::Net> n, std::shared_ptr<InputArrays> f)
    : compute(std::move(e)), net(std::move(n)), arrays(std::move(f)) {
  for (int i = 0; i < layers(); ++i) {
    const layers::Layer& layer = *net->layers()[static_cast<size_t>(i)];
    names_.push_back(layer.name()), types_.push_back(layer.type());
    for (const std::string& top : net->topNames(i)) {
      const bool made = net->hasBlob(top) && std::find(blobNames.begin(), blobNames.end(), top) == blobNames.end();
      if (made) blobNames.push_back(top);
      if (made && layer.type() == "Input") inputs.push_back(top);
    }
  }
}

const std::vector<std::string>* NetBox::list(crema_list which, int layer) const {
  const bool known = layer >= 0 && layer < layers();
  switch (which) {
    case CREMA_LAYERS:
      return &names_;
    case CREMA_LAYER_TYPES:
      return &types_;
    case CREMA_BLOBS:
      return &blobNames;
    case CREMA_INPUTS:
      return &inputs;
    case CREMA_OUTPUTS:
      return &net->outputs();
    case CREMA_BOTTOMS:
      return known ? &net->bottomNames(layer) : &kNothing;
    case CREMA_TOPS:
      return known ? &net->topNames(layer) : &kNothing;
  }
  return &kNothing;
}

crema_net* newNet(std::unique_ptr<NetBox> box) { return new crema_net{std::move(box)}; }

}  // namespace crema::api

using namespace crema;
using namespace crema::api;

int crema_net_create(const char* prototxt, int phase, int level, const char* const* stages, int stage_count,
                     crema_net** made) {
  return guard([&] {
    if (phase != caffe::TRAIN && phase != caffe::TEST) invalid("a phase is TRAIN (0) or TEST (1), not {}", phase);
    const caffe::NetParameter description = model::readNet(prototxt);
    caffe::NetState state = description.state();
    state.set_phase(static_cast<caffe::Phase>(phase));
    state.set_level(level);
    for (int i = 0; i < stage_count; ++i) state.add_stage(stages[i]);
    const auto compute = std::make_shared<Compute>();
    const auto arrays = std::make_shared<InputArrays>();
    net::NetOptions o;
    o.registry = &hostRegistry();
    o.kernels = &compute->kernels;
    o.seed = nextSeed();
    o.log = logsInfo();
    if (!readsMemorySource(description)) o.data.source = layers::FromBlobs{arrays->view.get()};
    o.data.folder = parentDirectory(prototxt);
    struct Whole {  // order of members: the net is destroyed before what it uses
      std::shared_ptr<Compute> compute;
      std::shared_ptr<InputArrays> arrays;
      std::unique_ptr<net::Net> net;
    };
    const auto whole = std::make_shared<Whole>(Whole{compute, arrays, nullptr});
    whole->net = std::make_unique<net::Net>(description, state, o, prototxt);
    std::shared_ptr<net::Net> net(whole, whole->net.get());
    auto box = std::make_unique<NetBox>(compute, net, arrays);
    box->planned = std::make_shared<PlannedPasses>(compute, std::move(net));
    *made = newNet(std::move(box));
    advanceBeforeForward(*whole->net, arrays.get(), {});
  });
}

void crema_net_free(crema_net* net) {
  if (net && net->box->compute->inherited()) net->box.release();  // not freed: its threads are the parent's
  delete net;
}

int crema_net_count(const crema_net* net, crema_list list, int layer) {
  return static_cast<int>(net->box->list(list, layer)->size());
}

const char* crema_net_text(const crema_net* net, crema_list list, int layer, int i) {
  const auto& all = *net->box->list(list, layer);
  return i >= 0 && static_cast<size_t>(i) < all.size() ? all[static_cast<size_t>(i)].c_str() : nullptr;
}

int crema_net_blob(const crema_net* net, const char* name, crema_blob** made) {
  return guard([&] { *made = newBlob(net->box->net->blob(name), net->box->compute, false, net->box->planned); });
}

double crema_net_loss_weight(const crema_net* net, const char* blob) {
  double weight = 0;
  guard([&] { weight = net->box->net->outputLossWeight(blob); });  // out of memory: as for a blob without one
  return weight;
}

int crema_net_params(const crema_net* net, int layer) {
  if (layer < 0 || layer >= net->box->layers()) return 0;
  return static_cast<int>(net->box->net->layers()[static_cast<size_t>(layer)]->params().size());
}

int crema_net_param(const crema_net* net, int layer, int i, crema_blob** made) {
  return guard([&] {
    if (i < 0 || i >= crema_net_params(net, layer)) invalid("layer {} has no parameter {}", layer, i);
    const auto& params = net->box->net->layers()[static_cast<size_t>(layer)]->params();
    *made = newBlob(*params[static_cast<size_t>(i)], net->box->compute, true, net->box->planned);
  });
}

int64_t crema_net_instance(const crema_net* net, int layer) {
  if (layer < 0 || layer >= net->box->layers()) return -1;
  return instanceOf(*net->box->net->layers()[static_cast<size_t>(layer)]);
}

int crema_net_forward(crema_net* net, int first, int last, double* loss) {
  return guard([&] {
    NetBox& box = *net->box;
    checkLayer(box, first), checkLayer(box, last);
    const auto hold = box.compute->hold();
    const bool feeds = makesBlobs(*box.net, first, last), whole = first == 0 && last + 1 == box.layers();
    const int64_t step = feeds ? box.batches++ : std::max<int64_t>(0, box.batches - 1), draw = box.passes++;
    box.net->statistics().moveAtOnce();
    if (!whole) endPlanned(box);
    if (const auto planned = whole && box.planned ? box.planned->forward(step, draw) : std::nullopt) {
      *loss = *planned;
      return;
    }
    box.net->setStep(step, 0, draw);
    *loss = box.net->forwardRange(first, last);
  });
}

int crema_net_backward(crema_net* net, int from, int down_to) {
  return guard([&] {
    checkLayer(*net->box, from), checkLayer(*net->box, down_to);
    const auto hold = net->box->compute->hold();
    endPlanned(*net->box);
    net->box->net->backwardRange(from, down_to);
  });
}

int crema_net_reshape(crema_net* net) {
  return guard([&] {
    const auto hold = net->box->compute->hold();
    net->box->net->reshape();
    if (net->box->planned) net->box->planned->reshaped();
  });
}

int crema_net_clear_param_diffs(crema_net* net) {
  return guard([&] {
    const auto hold = net->box->compute->hold();
    net->box->net->clearParamDiffs();
  });
}

int crema_net_copy_from(crema_net* net, const char* weights) {
  return guard([&] {
    const auto hold = net->box->compute->hold();
    if (net->box->planned) net->box->planned->weightsChange();
    net::copyTrainedFiles(*net->box->net,
                          std::vector<std::string>{weights});  // one name, commas and all, as in pycaffe
  });
}

int crema_net_share_with(crema_net* net, const crema_net* other) {
  return guard([&] {
    if (net->box->ownsWeights)
      invalid("a solver updates the weights of its train net in their place; share the other way: other.share_with()");
    const auto holds = net->box->compute->holdWith(*other->box->compute);
    endPlanned(*net->box);
    if (!other->box->compute->inherited()) endPlanned(*other->box);
    net->box->net->shareTrainedWith(*other->box->net);
  });
}

int crema_net_save(const crema_net* net, const char* file, int hdf5) {
  return guard([&] {
    const auto hold = net->box->compute->holdToRead();
    model::writeModel(file, net->box->net->toProto(false, hdf5 != 0),
                      hdf5 ? caffe::SolverParameter::HDF5 : caffe::SolverParameter::BINARYPROTO);
  });
}

int crema_net_set_input_arrays(crema_net* net, const float* data, const float* labels, int records, const int dims[3]) {
  return guard([&] {
    const auto hold = net->box->compute->hold();
    if (net->box->layers() == 0) invalid("the net has no layers");
    const layers::RecordLayer* takes = leadingMemoryData(*net->box->net);
    if (!takes)
      invalid("set_input_arrays may only be called if the first layer is a MemoryData layer; it is {}",
              net->box->net->layers().front()->label());
    const layers::RecordLayer& first = *takes;
    if (records <= 0 || records % first.batchSize())
      invalid("first dimensions of input arrays must be a multiple of batch size: {} records, batch_size {}", records,
              first.batchSize());
    const Shape want = net->box->net->tops(0)[0]->shape();
    const std::vector<int> have = {want[0], dims[0], dims[1], dims[2]};
    if (want.dims() != have)
      invalid("data of {}x{}x{} does not fit {}, which takes {}x{}x{}", dims[0], dims[1], dims[2], first.label(),
              want[1], want[2], want[3]);
    net->box->arrays->set(data, labels, records, dims);
  });
}

int crema_net_set_hook(crema_net* net, crema_moment moment, int (*hook)(void*, int), void* user) {
  return guard([&] {
    const auto hold = net->box->compute->hold();
    if (hook) endPlanned(*net->box);
    net::Net::Hooks& hooks = net->box->net->hooks();
    Compute& compute = *net->box->compute;  // the net does not outlive it
    const std::function<void(int)> hooked =
        hook ? [=, &compute](int layer) { compute.askPaused([&] { return hook(user, layer); }); }
             : std::function<void(int)>();
    if (moment == CREMA_AFTER_FORWARD) hooks.afterForward = hooked;
    if (moment == CREMA_BEFORE_BACKWARD) hooks.beforeBackward = hooked;
    if (moment == CREMA_AFTER_BACKWARD) hooks.afterBackward = hooked;
    if (moment != CREMA_BEFORE_FORWARD) return;
    advanceBeforeForward(*net->box->net, net->box->arrays.get(), hooked);
  });
}
