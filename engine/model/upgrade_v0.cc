// V0 (2013): every layer is `layers { layer { name type and all options } bottom top }`. Every option belongs to
// certain types only.
#include <map>
#include <string>

#include "base/error.h"
#include "base/log.h"
#include "model/upgrade.h"

namespace crema::model {
namespace {

using V0 = caffe::V0LayerParameter;
using V1 = caffe::V1LayerParameter;

const std::map<std::string, V1::LayerType>& types() {
  static const std::map<std::string, V1::LayerType> map = {{"accuracy", V1::ACCURACY},
                                                           {"bnll", V1::BNLL},
                                                           {"concat", V1::CONCAT},
                                                           {"conv", V1::CONVOLUTION},
                                                           {"data", V1::DATA},
                                                           {"dropout", V1::DROPOUT},
                                                           {"euclidean_loss", V1::EUCLIDEAN_LOSS},
                                                           {"flatten", V1::FLATTEN},
                                                           {"hdf5_data", V1::HDF5_DATA},
                                                           {"hdf5_output", V1::HDF5_OUTPUT},
                                                           {"im2col", V1::IM2COL},
                                                           {"images", V1::IMAGE_DATA},
                                                           {"infogain_loss", V1::INFOGAIN_LOSS},
                                                           {"innerproduct", V1::INNER_PRODUCT},
                                                           {"lrn", V1::LRN},
                                                           {"multinomial_logistic_loss", V1::MULTINOMIAL_LOGISTIC_LOSS},
                                                           {"pool", V1::POOLING},
                                                           {"relu", V1::RELU},
                                                           {"sigmoid", V1::SIGMOID},
                                                           {"softmax", V1::SOFTMAX},
                                                           {"softmax_loss", V1::SOFTMAX_LOSS},
                                                           {"split", V1::SPLIT},
                                                           {"tanh", V1::TANH},
                                                           {"window_data", V1::WINDOW_DATA}};
  return map;
}

// Carries the options of one layer over; an option that does not belong to the layer's type is logged and dropped.
class Carrier {
 public:
  Carrier(const V0& from, V1* to) : from_(from), to_(to), type_(from.type()) {}

  bool carry() {
    if (from_.has_name()) to_->set_name(from_.name());
    if (from_.has_type()) setType();
    *to_->mutable_blobs() = from_.blobs();
    *to_->mutable_blobs_lr() = from_.blobs_lr();
    *to_->mutable_weight_decay() = from_.weight_decay();
    learnt();
    windows();
    normalisation();
    data();
    detection();
    if (from_.has_dropout_ratio())
      type_ == "dropout" ? to_->mutable_dropout_param()->set_dropout_ratio(from_.dropout_ratio())
                         : lose("dropout_ratio");
    if (from_.has_concat_dim())
      type_ == "concat" ? to_->mutable_concat_param()->set_concat_dim(from_.concat_dim()) : lose("concat_dim");
    if (from_.has_hdf5_output_param()) {
      if (type_ == "hdf5_output")
        *to_->mutable_hdf5_output_param() = from_.hdf5_output_param();
      else
        lose("hdf5_output_param");
    }
    return whole_;
  }

 private:
  void lose(const char* field) {
    LOG_ERROR("Unknown parameter {} for layer type {} (layer '{}')", field, type_, from_.name());
    whole_ = false;
  }
  bool is(const char* type) const { return type_ == type; }

  void setType() {
    const auto found = types().find(type_);
    if (found == types().end()) invalid("Unknown layer type: {} (a V0 type of layer '{}')", type_, from_.name());
    to_->set_type(found->second);
  }

  void learnt() {
    if (from_.has_num_output()) {
      if (is("conv"))
        to_->mutable_convolution_param()->set_num_output(from_.num_output());
      else if (is("innerproduct"))
        to_->mutable_inner_product_param()->set_num_output(from_.num_output());
      else
        lose("num_output");
    }
    if (from_.has_biasterm()) {
      if (is("conv"))
        to_->mutable_convolution_param()->set_bias_term(from_.biasterm());
      else if (is("innerproduct"))
        to_->mutable_inner_product_param()->set_bias_term(from_.biasterm());
      else
        lose("biasterm");
    }
    if (from_.has_weight_filler()) {
      if (is("conv"))
        *to_->mutable_convolution_param()->mutable_weight_filler() = from_.weight_filler();
      else if (is("innerproduct"))
        *to_->mutable_inner_product_param()->mutable_weight_filler() = from_.weight_filler();
      else
        lose("weight_filler");
    }
    if (from_.has_bias_filler()) {
      if (is("conv"))
        *to_->mutable_convolution_param()->mutable_bias_filler() = from_.bias_filler();
      else if (is("innerproduct"))
        *to_->mutable_inner_product_param()->mutable_bias_filler() = from_.bias_filler();
      else
        lose("bias_filler");
    }
  }

  void windows() {
    if (from_.has_pad()) {
      if (is("conv"))
        to_->mutable_convolution_param()->add_pad(from_.pad());
      else if (is("pool"))
        to_->mutable_pooling_param()->set_pad(from_.pad());
      else
        lose("pad");
    }
    if (from_.has_kernelsize()) {
      if (is("conv"))
        to_->mutable_convolution_param()->add_kernel_size(from_.kernelsize());
      else if (is("pool"))
        to_->mutable_pooling_param()->set_kernel_size(from_.kernelsize());
      else
        lose("kernelsize");
    }
    if (from_.has_stride()) {
      if (is("conv"))
        to_->mutable_convolution_param()->add_stride(from_.stride());
      else if (is("pool"))
        to_->mutable_pooling_param()->set_stride(from_.stride());
      else
        lose("stride");
    }
    if (from_.has_group()) is("conv") ? to_->mutable_convolution_param()->set_group(from_.group()) : lose("group");
    if (from_.has_pool())
      is("pool")
          ? to_->mutable_pooling_param()->set_pool(static_cast<caffe::PoolingParameter::PoolMethod>(from_.pool()))
          : lose("pool");
  }

  void normalisation() {
    if (from_.has_local_size())
      is("lrn") ? to_->mutable_lrn_param()->set_local_size(from_.local_size()) : lose("local_size");
    if (from_.has_alpha()) is("lrn") ? to_->mutable_lrn_param()->set_alpha(from_.alpha()) : lose("alpha");
    if (from_.has_beta()) is("lrn") ? to_->mutable_lrn_param()->set_beta(from_.beta()) : lose("beta");
    if (from_.has_k()) is("lrn") ? to_->mutable_lrn_param()->set_k(from_.k()) : lose("k");
  }

  // length: a table of fields and the layer types that have them.
  void data() {
    if (from_.has_source()) {
      if (is("data"))
        to_->mutable_data_param()->set_source(from_.source());
      else if (is("hdf5_data"))
        to_->mutable_hdf5_data_param()->set_source(from_.source());
      else if (is("images"))
        to_->mutable_image_data_param()->set_source(from_.source());
      else if (is("window_data"))
        to_->mutable_window_data_param()->set_source(from_.source());
      else if (is("infogain_loss"))
        to_->mutable_infogain_loss_param()->set_source(from_.source());
      else
        lose("source");
    }
    if (from_.has_scale()) to_->mutable_transform_param()->set_scale(from_.scale());
    if (from_.has_meanfile()) to_->mutable_transform_param()->set_mean_file(from_.meanfile());
    if (from_.has_cropsize()) to_->mutable_transform_param()->set_crop_size(from_.cropsize());
    if (from_.has_mirror()) to_->mutable_transform_param()->set_mirror(from_.mirror());
    if (from_.has_batchsize()) {
      if (is("data"))
        to_->mutable_data_param()->set_batch_size(from_.batchsize());
      else if (is("hdf5_data"))
        to_->mutable_hdf5_data_param()->set_batch_size(from_.batchsize());
      else if (is("images"))
        to_->mutable_image_data_param()->set_batch_size(from_.batchsize());
      else if (is("window_data"))
        to_->mutable_window_data_param()->set_batch_size(from_.batchsize());
      else
        lose("batchsize");
    }
    if (from_.has_rand_skip()) {
      if (is("data"))
        to_->mutable_data_param()->set_rand_skip(from_.rand_skip());
      else if (is("images"))
        to_->mutable_image_data_param()->set_rand_skip(from_.rand_skip());
      else
        lose("rand_skip");
    }
    if (from_.has_shuffle_images())
      is("images") ? to_->mutable_image_data_param()->set_shuffle(from_.shuffle_images()) : lose("shuffle_images");
    if (from_.has_new_height())
      is("images") ? to_->mutable_image_data_param()->set_new_height(static_cast<uint32_t>(from_.new_height()))
                   : lose("new_height");
    if (from_.has_new_width())
      is("images") ? to_->mutable_image_data_param()->set_new_width(static_cast<uint32_t>(from_.new_width()))
                   : lose("new_width");
  }

  void detection() {
    auto* w = is("window_data") ? to_->mutable_window_data_param() : nullptr;
    if (from_.has_det_fg_threshold()) w ? w->set_fg_threshold(from_.det_fg_threshold()) : lose("det_fg_threshold");
    if (from_.has_det_bg_threshold()) w ? w->set_bg_threshold(from_.det_bg_threshold()) : lose("det_bg_threshold");
    if (from_.has_det_fg_fraction()) w ? w->set_fg_fraction(from_.det_fg_fraction()) : lose("det_fg_fraction");
    if (from_.has_det_context_pad()) w ? w->set_context_pad(from_.det_context_pad()) : lose("det_context_pad");
    if (from_.has_det_crop_mode()) w ? w->set_crop_mode(from_.det_crop_mode()) : lose("det_crop_mode");
  }

  const V0& from_;
  V1* to_;
  const std::string& type_;
  bool whole_ = true;
};

// Removes `padding` layers; the convolution or pooling behind gets their pad.
caffe::NetParameter withoutPadding(const caffe::NetParameter& net) {
  caffe::NetParameter out = net;
  out.clear_layers();
  std::map<std::string, int> writer;
  for (const auto& name : net.input()) writer[name] = -1;
  for (int i = 0; i < net.layers_size(); ++i) {
    const V1& connection = net.layers(i);
    const bool padding = connection.layer().type() == "padding";
    V1* kept = nullptr;
    if (padding && connection.bottom_size() != 1)
      invalid("the padding layer '{}' has {} bottoms; it needs 1", connection.layer().name(), connection.bottom_size());
    if (!padding) kept = out.add_layers(), *kept = connection;
    for (int j = 0; kept && j < connection.bottom_size(); ++j) {
      const auto found = writer.find(connection.bottom(j));
      if (found == writer.end())
        invalid("Unknown blob input {} to layer {}", connection.bottom(j), connection.layer().name());
      if (found->second < 0 || net.layers(found->second).layer().type() != "padding") continue;
      const V1& source = net.layers(found->second);
      const std::string& type = connection.layer().type();
      if (type != "conv" && type != "pool")
        invalid("the padding layer '{}' is read by '{}' ({}); only conv and pool can take its pad over",
                source.layer().name(), connection.layer().name(), type);
      kept->mutable_layer()->set_pad(source.layer().pad());
      kept->set_bottom(j, source.bottom(0));
    }
    for (const auto& top : connection.top()) writer[top] = i;
  }
  return out;
}

}  // namespace

bool upgradeV0(caffe::NetParameter* net, const std::string& name) {
  bool needed = false;
  for (const auto& layer : net->layers()) needed = needed || layer.has_layer();
  if (!needed) return true;
  LOG_INFO("Attempting to upgrade input file specified using deprecated V0LayerParameter: {}", name);
  caffe::NetParameter out = withoutPadding(*net);
  bool whole = true;
  for (auto& layer : *out.mutable_layers()) {
    if (!layer.has_layer()) continue;
    V1 fresh;
    *fresh.mutable_bottom() = layer.bottom();
    *fresh.mutable_top() = layer.top();
    whole = Carrier(layer.layer(), &fresh).carry() && whole;
    layer.Swap(&fresh);
  }
  net->Swap(&out);
  if (whole)
    LOG_INFO("Successfully upgraded file specified using deprecated V0LayerParameter");
  else
    LOG_WARNING("some V0 fields of {} could not be carried over, see above", name);
  return whole;
}

}  // namespace crema::model
