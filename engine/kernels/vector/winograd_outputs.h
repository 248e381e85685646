// The outputs of minimal filtering (winograd.h): what the products of a panel of tiles come to is finished in registers, put
// together to rows, and written where it belongs.
namespace crema::kernels::KNS {

class WinogradOutputs {
 public:
  WinogradOutputs(const ConvShape& s, const float* bias, float* y, const Epilogue<float>& then)
      : s_(s), bias_(bias), y_(y), then_(then), oh_(s.oh()), ow_(s.ow()) {
    for (const Step<float>& step : then) adds_ = adds_ || step.kind == Step<float>::kAdd;
  }
  V bias(int channel) const { return set1(bias_ ? bias_[channel] : 0); }

  // Where numbers [from, from + count) of row i of the outputs of a panel lie in a channel's plane, from that of the unit's
  // first image on.
  struct Place {
    int i, from, count;
    ptrdiff_t at;
  };
  struct Places {
    int count = 0;
    Place place[2 * kPanel];
  };
  Places placesOf(const PanelPlan& p) const {
    const int tileRows = (oh_ + 1) / 2;
    Places places;
    for (int j = 0; j < p.runs; ++j) {
      const Run& run = p.run[j];
      const auto row = run.to / kTileRow, image = row / tileRows, r = 2 * (row % tileRows), c = 2 * (run.to % kTileRow);
      for (int i = 0; i < 2 && r + i < oh_; ++i)
        places.place[places.count++] = {i, 2 * run.from, static_cast<int>(std::min<ptrdiff_t>(2 * run.length, ow_ - c)),
                                        image * s_.oc * oh_ * ow_ + (r + i) * ow_ + c};
    }
    return places;
  }

  // Two rows of outputs of a channel, kPanel tiles side by side, from those of each tile, outputs [2 row + column].
  using Lines = float[2][2 * kPanel];
  INL void lines(V (*outputs)[kWidth], int channel, Lines& line) const {
    if (!adds_)
      for (const Step<float>& step : then_) stepRow<4 * kWidth>(step, channel, nullptr, outputs[0]);
    for (int i = 0; i < 2; ++i)
      for (int v = 0; v < kWidth; ++v) {
        store(line[i] + 2 * v * VL, zipLow(outputs[2 * i][v], outputs[2 * i + 1][v]));
        store(line[i] + (2 * v + 1) * VL, zipHigh(outputs[2 * i][v], outputs[2 * i + 1][v]));
      }
  }

  // Writes the lines of `channels` channels from `channel` on of a unit whose first image is n0. All are computed first: a
  // vector over numbers that were just stored in other pieces waits until they have reached the cache.
  void write(const Places& places, int channel, int channels, int n0, Lines* line) const {
    for (int m = 0; m < channels; ++m) {
      const size_t to = (static_cast<size_t>(n0) * s_.oc + channel + m) * oh_ * ow_;
      if (adds_) addTo(places, channel + m, to, line[m]);
      for (int j = 0; j < places.count; ++j) {
        const Place& p = places.place[j];
        copyRow(line[m][p.i] + p.from, p.count, y_ + to + p.at);
      }
    }
  }

 private:
  // The steps on lines where one of them adds; to: where the channel of the unit's first image lies in the output.
  void addTo(const Places& places, int channel, size_t to, Lines& line) const {
    alignas(64) Lines others = {};
    for (const Step<float>& step : then_) {
      if (step.kind == Step<float>::kAdd)
        for (int j = 0; j < places.count; ++j) {
          const Place& p = places.place[j];
          copyRow(step.other + to + p.at, p.count, others[p.i] + p.from);
        }
      for (int i = 0; i < 2; ++i) {
        V values[2 * kWidth];
        for (int v = 0; v < 2 * kWidth; ++v) values[v] = load(line[i] + v * VL);
        stepRow<2 * kWidth>(step, channel, others[i], values);
        for (int v = 0; v < 2 * kWidth; ++v) store(line[i] + v * VL, values[v]);
      }
    }
  }

  const ConvShape& s_;
  const float* bias_;
  float* y_;
  const Epilogue<float>& then_;
  int oh_, ow_;
  bool adds_ = false;
};

}  // namespace crema::kernels::KNS
