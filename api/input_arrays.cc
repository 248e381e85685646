// The host's arrays for MemoryData.
#include <algorithm>

#include "api/handles.h"
#include "layers/record_layer.h"

namespace crema::api {

void InputArrays::set(const float* newData, const float* newLabels, int count, const int shape[3]) {
  data = newData, labels = newLabels, records = count, next = 0;
  dims.assign(shape, shape + 3);
}

void InputArrays::advance(int batch) {
  if (!data) invalid("MemoryData has no arrays yet; call set_input_arrays(data, labels) first");
  if (records <= 0 || records % batch)
    invalid("the arrays hold {} records, no multiple of batch_size {}", records, batch);
  const Shape shapes[2] = {{batch, dims[0], dims[1], dims[2]}, {batch, 1, 1, 1}};
  const float* const from[2] = {data, labels};
  view->clear();
  for (int i = 0; i < 2; ++i) {
    if (!windows[i]) windows[i] = std::make_unique<Blob>();
    windows[i]->reshape(shapes[i]);
    std::copy_n(from[i] + static_cast<int64_t>(next) * shapes[i].count(1), shapes[i].count(),
                windows[i]->mutableData<float>());
    view->push_back(windows[i].get());
  }
  next = (next + batch) % records;
}

bool readsMemorySource(const caffe::NetParameter& net) {
  return std::any_of(net.layer().begin(), net.layer().end(), [](const auto& layer) {
    return layer.type() == "MemoryData" && !layer.memory_data_param().source().empty();
  });
}

const layers::RecordLayer* leadingMemoryData(const net::Net& net) {
  const bool is = !net.layers().empty() && net.layers()[0]->type() == "MemoryData";
  return is ? dynamic_cast<const layers::RecordLayer*>(net.layers()[0].get()) : nullptr;
}

void advanceBeforeForward(net::Net& net, InputArrays* arrays, const std::function<void(int)>& hook) {
  const layers::RecordLayer* first = leadingMemoryData(net);
  net.hooks().beforeForward = hook;
  if (!first || !first->param().memory_data_param().source().empty()) return;
  net.hooks().beforeForward = [=, batch = first->batchSize()](int layer) {
    if (layer == 0) arrays->advance(batch);
    if (hook) hook(layer);
  };
}

}  // namespace crema::api
