#include "model/upgrade.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "model/proto_io.h"

namespace crema::model {
namespace {

void announce(const char* form, const std::string& name) {
  LOG_INFO("Attempting to upgrade input file specified using deprecated {}: {}", form, name);
}
void done(const char* form, bool whole) {
  if (whole)
    LOG_INFO("Successfully upgraded file specified using deprecated {}", form);
  else
    LOG_WARNING("Note that future Caffe releases will not support {}; some fields could not be carried over, see above",
                form);
}

// V1's type names are the enum's; V2's are these. length: a table.
const char* newType(caffe::V1LayerParameter::LayerType type) {
  using L = caffe::V1LayerParameter;
  switch (type) {
    case L::NONE:
      return "";
    case L::ABSVAL:
      return "AbsVal";
    case L::ACCURACY:
      return "Accuracy";
    case L::ARGMAX:
      return "ArgMax";
    case L::BNLL:
      return "BNLL";
    case L::CONCAT:
      return "Concat";
    case L::CONTRASTIVE_LOSS:
      return "ContrastiveLoss";
    case L::CONVOLUTION:
      return "Convolution";
    case L::DATA:
      return "Data";
    case L::DECONVOLUTION:
      return "Deconvolution";
    case L::DROPOUT:
      return "Dropout";
    case L::DUMMY_DATA:
      return "DummyData";
    case L::EUCLIDEAN_LOSS:
      return "EuclideanLoss";
    case L::ELTWISE:
      return "Eltwise";
    case L::EXP:
      return "Exp";
    case L::FLATTEN:
      return "Flatten";
    case L::HDF5_DATA:
      return "HDF5Data";
    case L::HDF5_OUTPUT:
      return "HDF5Output";
    case L::HINGE_LOSS:
      return "HingeLoss";
    case L::IM2COL:
      return "Im2col";
    case L::IMAGE_DATA:
      return "ImageData";
    case L::INFOGAIN_LOSS:
      return "InfogainLoss";
    case L::INNER_PRODUCT:
      return "InnerProduct";
    case L::LRN:
      return "LRN";
    case L::MEMORY_DATA:
      return "MemoryData";
    case L::MULTINOMIAL_LOGISTIC_LOSS:
      return "MultinomialLogisticLoss";
    case L::MVN:
      return "MVN";
    case L::POOLING:
      return "Pooling";
    case L::POWER:
      return "Power";
    case L::RELU:
      return "ReLU";
    case L::SIGMOID:
      return "Sigmoid";
    case L::SIGMOID_CROSS_ENTROPY_LOSS:
      return "SigmoidCrossEntropyLoss";
    case L::SILENCE:
      return "Silence";
    case L::SOFTMAX:
      return "Softmax";
    case L::SOFTMAX_LOSS:
      return "SoftmaxWithLoss";
    case L::SPLIT:
      return "Split";
    case L::SLICE:
      return "Slice";
    case L::TANH:
      return "TanH";
    case L::WINDOW_DATA:
      return "WindowData";
    case L::THRESHOLD:
      return "Threshold";
  }
  return "";
}

// Typed option messages have the same name in both forms, so they are carried over by name.
void copyOptions(const caffe::V1LayerParameter& from, caffe::LayerParameter* to) {
  const auto* mine = from.GetReflection();
  const auto* theirs = to->GetReflection();
  for (int i = 0; i < from.GetDescriptor()->field_count(); ++i) {
    const auto* field = from.GetDescriptor()->field(i);
    const auto* target = to->GetDescriptor()->FindFieldByName(field->name());
    const bool option = field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE &&
                        !field->is_repeated() && field->name() != "layer";
    if (option && target && mine->HasField(from, field))
      theirs->MutableMessage(to, target)->CopyFrom(mine->GetMessage(from, field));
  }
}

bool upgradeLayer(const caffe::V1LayerParameter& from, caffe::LayerParameter* to) {
  bool whole = true;
  *to->mutable_bottom() = from.bottom();
  *to->mutable_top() = from.top();
  if (from.has_name()) to->set_name(from.name());
  *to->mutable_include() = from.include();
  *to->mutable_exclude() = from.exclude();
  if (from.has_type()) to->set_type(newType(from.type()));
  *to->mutable_blobs() = from.blobs();
  *to->mutable_loss_weight() = from.loss_weight();
  const auto param = [&](int i) {
    while (to->param_size() <= i) to->add_param();
    return to->mutable_param(i);
  };
  for (int i = 0; i < from.param_size(); ++i) param(i)->set_name(from.param(i));
  for (int i = 0; i < from.blob_share_mode_size(); ++i)
    param(i)->set_share_mode(from.blob_share_mode(i) == caffe::V1LayerParameter::PERMISSIVE
                                 ? caffe::ParamSpec::PERMISSIVE
                                 : caffe::ParamSpec::STRICT);
  for (int i = 0; i < from.blobs_lr_size(); ++i) param(i)->set_lr_mult(from.blobs_lr(i));
  for (int i = 0; i < from.weight_decay_size(); ++i) param(i)->set_decay_mult(from.weight_decay(i));
  copyOptions(from, to);
  if (from.has_layer()) {
    LOG_ERROR("layer '{}' still has V0 fields; they are ignored", from.name());
    whole = false;
  }
  return whole;
}

}  // namespace

bool upgradeV1(caffe::NetParameter* net, const std::string& name) {
  if (net->layers_size() == 0) return true;
  if (net->layer_size())
    invalid("{} mixes `layer` and the old `layers`; write all layers in one form (upgrade the old ones)", name);
  announce("V1LayerParameter", name);
  bool whole = true;
  caffe::NetParameter out = *net;
  out.clear_layers();
  for (const auto& layer : net->layers()) whole = upgradeLayer(layer, out.add_layer()) && whole;
  net->Swap(&out);
  done("V1LayerParameter", whole);
  return whole;
}

void upgradeDataTransform(caffe::NetParameter* net, const std::string& name) {
  using L = caffe::V1LayerParameter;
  bool announced = false;
  const auto move = [&](auto* options, L* layer) {
    if (!(options->has_scale() || options->has_mean_file() || options->has_crop_size() || options->has_mirror()))
      return;
    if (!announced) announce("transformation parameters", name);
    announced = true;
    auto* transform = layer->mutable_transform_param();
    if (options->has_scale()) transform->set_scale(options->scale()), options->clear_scale();
    if (options->has_mean_file()) transform->set_mean_file(options->mean_file()), options->clear_mean_file();
    if (options->has_crop_size()) transform->set_crop_size(options->crop_size()), options->clear_crop_size();
    if (options->has_mirror()) transform->set_mirror(options->mirror()), options->clear_mirror();
  };
  for (auto& layer : *net->mutable_layers()) {
    if (layer.type() == L::DATA && layer.has_data_param()) move(layer.mutable_data_param(), &layer);
    if (layer.type() == L::IMAGE_DATA && layer.has_image_data_param()) move(layer.mutable_image_data_param(), &layer);
    if (layer.type() == L::WINDOW_DATA && layer.has_window_data_param())
      move(layer.mutable_window_data_param(), &layer);
  }
  if (announced) done("transformation parameters", true);
}

// `input` names with input_shape, or four input_dim each; names without shapes (old .caffemodels) are dropped.
void upgradeInput(caffe::NetParameter* net, const std::string& name) {
  if (net->input_size() == 0) return;
  const bool shaped = net->input_shape_size() > 0 || net->input_dim_size() > 0;
  if (shaped) {
    announce("input fields", name);
    if (net->input_shape_size() ? net->input_shape_size() != net->input_size()
                                : net->input_dim_size() != 4 * net->input_size())
      invalid("{}: {} `input` names need as many input_shape, or 4 input_dim each ({} and {} are given)", name,
              net->input_size(), net->input_shape_size(), net->input_dim_size());
    caffe::NetParameter out = *net;
    out.clear_layer();
    auto* input = out.add_layer();
    input->set_name("input");
    input->set_type("Input");
    for (int i = 0; i < net->input_size(); ++i) {
      input->add_top(net->input(i));
      auto* shape = input->mutable_input_param()->add_shape();
      if (net->input_shape_size())
        *shape = net->input_shape(i);
      else
        for (int d = 0; d < 4; ++d) shape->add_dim(net->input_dim(4 * i + d));
    }
    for (const auto& layer : net->layer()) *out.add_layer() = layer;
    net->Swap(&out);
    done("input fields", true);
  }
  net->clear_input();
  net->clear_input_shape();
  net->clear_input_dim();
}

void upgradeBatchNorm(caffe::NetParameter* net, const std::string&) {
  for (auto& layer : *net->mutable_layer()) {
    if (layer.type() != "BatchNorm" || layer.param_size() != 3) continue;
    for (auto& param : *layer.mutable_param()) param.set_lr_mult(0), param.set_decay_mult(0);
  }
}

bool upgradeNet(caffe::NetParameter* net, const std::string& name) {
  bool whole = upgradeV0(net, name);
  upgradeDataTransform(net, name);
  whole = upgradeV1(net, name) && whole;
  upgradeInput(net, name);
  upgradeBatchNorm(net, name);
  return whole;
}

caffe::NetParameter readNet(const std::string& path) {
  caffe::NetParameter net;
  try {
    net = readText<caffe::NetParameter>(path);
  } catch (const Error&) {
    refuseSolver(path);
    throw;
  }
  upgradeNet(&net, path);
  if (net.layer_size() == 0 && net.input_size() == 0)
    invalid("{} describes no layers; is it the file of the net?", path);
  return net;
}

caffe::NetParameter readNetBinary(const std::string& path) {
  auto net = readBinary<caffe::NetParameter>(path);
  upgradeNet(&net, path);
  if (net.layer_size() == 0)
    badData("{} holds no layers, so it is no .caffemodel; take it anew from where it was made", path);
  return net;
}

}  // namespace crema::model
