// InfogainLoss: cross entropy with a matrix H that weights each prediction for each label; p = softmax of bottom 0:
//   loss = -sum_n sum_c H[label_n][c] log(max(p_nc, 1e-20)) / N
//   dx_c = (p_c sum_k H[label][k] - H[label][c]) weight / N, 0 where the label is ignored
// H: bottom 2 (classes x classes values), or a BlobProto in the file infogain_loss_param.source (a relative path may
// also lie beside the net). The identity gives SoftmaxWithLoss.
// Options: infogain_loss_param.axis (1), source; loss_param.ignore_label; normalization FULL, VALID (default),
// BATCH_SIZE, NONE as in SoftmaxWithLoss (labels.h); the old `normalize` is refused, as in Caffe. A second top: p.
#include <cmath>

#include "base/file.h"
#include "layers/builtin.h"
#include "layers/loss_layer.h"
#include "model/proto_io.h"

namespace crema::layers {
namespace {

class InfogainLoss : public SoftmaxLossLayer {
 public:
  InfogainLoss(const caffe::LayerParameter& p, const LayerContext& c) : SoftmaxLossLayer(p, c), matrix_(c.dtype) {}
  Arity arity() const override { return {2, 3, 1, 2, false, true}; }
  const char* withoutGradient(int bottom) const override {
    return bottom == 2 ? "matrix" : LossLayer::withoutGradient(bottom);
  }

 protected:
  void configure(const Blobs& bottom, const Blobs& top) override {
    if (param_.loss_param().has_normalize())
      invalid("normalize is deprecated, use \"normalization\": VALID for true, BATCH_SIZE for false");
    useAxis(bottom, top, param_.infogain_loss_param().axis());
    if (bottom.size() > 2) return;
    if (!param_.infogain_loss_param().has_source())
      invalid("Infogain matrix source must be specified: give infogain_loss_param.source or a third bottom");
    if (context().data->opensSources()) readMatrix();
  }
  void reshape(const Blobs& bottom, const Blobs& top) override {
    SoftmaxLossLayer::reshape(bottom, top);
    if (bottom.size() > 2) checkMatrix(bottom[2]->shape(), "bottom 2");
    if (bottom.size() == 2 && read_) checkMatrix(matrix_.shape(), path());
  }
  void compute(const Blobs& bottom, const Blobs& top) override {
    if (bottom.size() == 2 && !read_) readMatrix(), checkMatrix(matrix_.shape(), path());
    withType(context().dtype, [&]<class T>() {
      softmax<T>(bottom, top);
      const T *p = prob_.data<T>(), *h = matrix(bottom).data<T>();
      double loss = 0;
      valid_ = 0;
      grid_.forEach<T>(*bottom[1], param_.loss_param(), [&](int64_t first, int label) {
        for (int c = 0; c < grid_.classes; ++c)
          loss -= h[int64_t{label} * grid_.classes + c] *
                  std::log(std::max(static_cast<double>(p[first + int64_t{c} * grid_.inner]), 1e-20));
        ++valid_;
      });
      top[0]->mutableData<T>()[0] = static_cast<T>(loss / divisor());
    });
  }
  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    if (!down[0]) return;
    bottom[0]->fillDiff(0);
    withType(context().dtype, [&]<class T>() {
      const T *p = prob_.data<T>(), *h = matrix(bottom).data<T>();
      T* dx = bottom[0]->mutableDiff<T>();
      const double scale = top[0]->diff<T>()[0] / divisor();
      grid_.forEach<T>(*bottom[1], param_.loss_param(), [&](int64_t first, int label) {
        const T* row = h + int64_t{label} * grid_.classes;
        double total = 0;
        for (int c = 0; c < grid_.classes; ++c) total += row[c];
        for (int c = 0; c < grid_.classes; ++c) {
          const int64_t i = first + int64_t{c} * grid_.inner;
          dx[i] = static_cast<T>((p[i] * total - row[c]) * scale);
        }
      });
    });
  }

 private:
  const Blob& matrix(const Blobs& bottom) const { return bottom.size() > 2 ? *bottom[2] : matrix_; }
  std::string path() const { return resolvePath(param_.infogain_loss_param().source(), context().data->folder); }
  void readMatrix() {
    const auto proto = model::readBinary<caffe::BlobProto>(path());
    inside([&] { return "in the infogain matrix " + path(); },
           [&] { matrix_.reshape(shapeOf(proto)), fromProto(proto, matrix_); });
    read_ = true;
  }
  void checkMatrix(const Shape& have, const std::string& where) const {
    if (int64_t{have.count()} != int64_t{grid_.classes} * grid_.classes)
      invalid("the infogain matrix in {} is {}; {} classes need {}x{}", where, have.brief(), grid_.classes,
              grid_.classes, grid_.classes);
  }

  bool read_ = false;
  Blob matrix_;
};

}  // namespace

void addInfogainLoss(LayerRegistry& r) {
  r.add<InfogainLoss>("InfogainLoss", "cross entropy with a matrix of what predictions are worth");
}

}  // namespace crema::layers
