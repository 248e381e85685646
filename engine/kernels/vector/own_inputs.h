// Inputs that are prepared (packed, transformed) panel by panel before they meet weights, where few threads share one unit of
// images: each prepares those that it needs, even if another does the same. To fetch a line that another core has written
// takes longer than to compute it (0162).
namespace crema::kernels::KNS {

constexpr int kFewThreads = 4;  // beyond, preparing alone takes as long as what each computes

class OwnInputs {
 public:
  // keeps: all panels of a thread, else its last one.
  OwnInputs(Context& context, size_t panelSize, int panels, bool keeps)
      : scratch_(context.scratch()),
        panelSize_(panelSize),
        places_(keeps ? static_cast<size_t>(panels) : 1),
        held_(static_cast<size_t>(context.pool().size()), std::vector<int>(places_, -1)) {}

  // Of that panel, for this thread; make(to) is called where it has not got it.
  template <class Make>
  const float* get(int lane, int panel, const Make& make) {
    const auto l = static_cast<size_t>(lane);
    const size_t place = static_cast<size_t>(panel) % places_;
    float* to = scratch_.lane[l].inputs.get(panelSize_ * places_) + panelSize_ * place;
    if (held_[l][place] != panel) make(to);
    held_[l][place] = panel;
    return to;
  }

 private:
  Context::Scratch& scratch_;
  size_t panelSize_, places_;
  std::vector<std::vector<int>> held_;  // of each thread: the panel in each place
};

}  // namespace crema::kernels::KNS
