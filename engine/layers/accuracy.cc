// Accuracy: the share of labels among the top_k scores. A class counts as ahead when its score is >= the true class's,
// so ties count against: correct iff fewer than top_k other classes are ahead. No gradient. Options (accuracy_param):
// top_k (1), axis (1), ignore_label. A second top: accuracy per class, 0 for classes without labels.
#include "layers/builtin.h"
#include "layers/labels.h"

namespace crema::layers {
namespace {

class Accuracy : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {2, 2, 1, 2}; }
  const char* withoutGradient(int bottom) const override { return bottom == 0 ? "scores" : "labels"; }

 protected:
  void configure(const Blobs& bottom, const Blobs&) override {
    axis_ = bottom[0]->shape().canonicalAxis(param_.accuracy_param().axis());
  }
  void reshape(const Blobs& bottom, const Blobs& top) override {
    grid_ = LabelGrid(bottom[0]->shape(), axis_, bottom[1]->shape());
    if (static_cast<int>(param_.accuracy_param().top_k()) > grid_.classes)
      invalid("top_k {} exceeds the {} classes", param_.accuracy_param().top_k(), grid_.classes);
    top[0]->reshape(Shape{});
    if (top.size() > 1) top[1]->reshape(Shape{grid_.classes});
  }
  void compute(const Blobs& bottom, const Blobs& top) override {
    withType(context().dtype, [&]<class T>() { count<T>(*bottom[0], *bottom[1], top); });
  }
  void gradient(const Blobs&, const std::vector<bool>&, const Blobs&) override {}

 private:
  template <class T>
  void count(const Blob& scores, const Blob& labels, const Blobs& top) {
    const auto& p = param_.accuracy_param();
    const T* x = scores.data<T>();
    std::vector<int> seen(static_cast<size_t>(grid_.classes)), right(static_cast<size_t>(grid_.classes));
    int correct = 0, valid = 0;
    grid_.forEach<T>(labels, p, [&](int64_t first, int label) {
      const T mine = x[first + static_cast<int64_t>(label) * grid_.inner];
      int ahead = -1;  // the true class itself is >= itself
      for (int c = 0; c < grid_.classes; ++c) ahead += x[first + static_cast<int64_t>(c) * grid_.inner] >= mine;
      const bool hit = ahead >= 0 && ahead < static_cast<int>(p.top_k());
      correct += hit, ++valid, ++seen[static_cast<size_t>(label)], right[static_cast<size_t>(label)] += hit;
    });
    top[0]->mutableData<T>()[0] = valid ? static_cast<T>(correct) / static_cast<T>(valid) : T(0);
    for (int c = 0; top.size() > 1 && c < grid_.classes; ++c)
      top[1]->mutableData<T>()[c] = seen[static_cast<size_t>(c)] ? static_cast<T>(right[static_cast<size_t>(c)]) /
                                                                       static_cast<T>(seen[static_cast<size_t>(c)])
                                                                 : T(0);
  }

  int axis_ = 1;
  LabelGrid grid_;
};

}  // namespace

void addAccuracy(LayerRegistry& r) { r.add<Accuracy>("Accuracy", "share of correct classifications"); }

}  // namespace crema::layers
