// What positions() reads: its call, and the panels of positions in packed form.
namespace crema::kernels::KNS {

constexpr int kPanels = 8, kDepth = 128, kPieces = 2, kRowBlocks = 42 / kRows;

struct PositionsCall {
  int M, K;
  const float* A;  // packRows(M, K)
  const int* off;  // [K]
  ptrdiff_t outM;  // distance of adjacent m in the output
  const std::vector<PanelPlan>& plan;
  const float* source;
  float* out;
  const float* bias;                      // [M] or null: the initial value of the chains
  bool isCopy = false;                    // the source was written just now
  bool mayReadInPlace;                    // few rows: reading B straight from the planes beats packing it (0134)
  const Epilogue<float>* then = nullptr;  // steps on the outputs
  int channel = 0;                        // of these: the number of row 0,
  ptrdiff_t outStart = 0;                 // and where `out` lies in the blob
  const Step<float>* adds = nullptr;      // the last of them that adds another blob
  bool streams = false;                   // one piece of k, and the blob is too large to be in a cache when it is read
};

// One panel's part of a piece of k: which k, and where it reads them.
struct Piece {
  int k0 = 0, depth = 0, mode = kPacked;
  const float* source[2 * kWidth];
};

inline Piece spanOf(const PanelPlan& p, int k, const float* packed) {
  Piece piece;
  piece.k0 = std::max(k, p.kFrom), piece.depth = std::min(k + kDepth, p.kTo) - piece.k0;
  std::fill_n(piece.source, 2 * kWidth, packed);
  return piece;
}

inline Piece pieceOf(const PositionsCall& c, const PanelPlan& p, int k, float* packed) {
  Piece piece = spanOf(p, k, packed);
  if (piece.depth <= 0) return piece;
  if (c.mayReadInPlace && p.rowsFit) {
    piece.mode = kFromRows, piece.source[0] = c.source + p.half[0], piece.source[1] = c.source + p.half[2];
  } else if (c.mayReadInPlace && p.halvesFit) {
    piece.mode = kFromHalves;
    for (int h = 0; h < 2 * kWidth; ++h) piece.source[h] = c.source + p.half[h];
  } else {
    packPanel(p, c.source, c.off, piece.k0, piece.k0 + piece.depth, packed);
  }
  return piece;
}

// Lines of memory that a tile asks for, one with each k: so many at once would wait for each other, and the products for
// them (decision 0137).
struct LineList {
  static constexpr int kMost = 2 * kDepth;
  const float* line[kMost];
  int count = 0;

  // `lines` from `at` on, and so many of each of the rows behind it; what finds no room is left out.
  INL void add(const float* at, int rows, ptrdiff_t rowStep, int lines) {
    if (count + rows * lines > kMost) return;
    const float** to = line + count;
    count += rows * lines;
    for (int m = 0; m < rows; ++m, at += rowStep)
      for (int i = 0; i < lines; ++i) *to++ = at + i * kLine;
  }
  // For a tile of `depth` packed k; `filler` is in a cache. Otherwise all are asked for at once.
  INL TileMode modeFor(int mode, int depth, const float* filler) {
    const bool spread = mode == kPacked && count > 0;
    for (int i = spread ? depth : 0; i < count; ++i) __builtin_prefetch(line[i]);
    for (; spread && count < depth; ++count) line[count] = filler;
    return spread ? kAsking : static_cast<TileMode>(mode);
  }
};

// Asks, a little with each tile, for what is packed next, where each k lies in a plane of its own: so far apart as no
// processor foresees.
class Ahead {
 public:
  Ahead() = default;
  Ahead(const PositionsCall& c, const PanelPlan* plan, size_t panels, int k, int tiles)
      : call_(&c), plan_(plan), panels_(panels), k_(k), end_(std::min(c.K, k + kPieces * kDepth)) {
    if (c.isCopy || c.mayReadInPlace || c.K < 2 || c.off[1] - c.off[0] < kPanel) end_ = k;
    perTile_ = (end_ - k) / std::max(1, tiles) + 1;
  }
  INL void some(LineList& list) {
    const int lines = static_cast<int>(panels_) * kPanel / kLine,
              room = (LineList::kMost - list.count) / std::max(1, lines);
    const float** to = list.line + list.count;
    const int last = std::min(end_, k_ + std::min(perTile_, room));
    list.count += std::max(0, last - k_) * lines;
    for (; k_ < last; ++k_) {
      const float* from = call_->source + call_->off[k_];
      for (size_t n = 0; n < panels_; ++n)
        for (int v = 0; v < kWidth; v += kLine / VL) *to++ = from + plan_[n].half[2 * v];
    }
  }

 private:
  const PositionsCall* call_ = nullptr;
  const PanelPlan* plan_ = nullptr;
  size_t panels_ = 0;
  int k_ = 0, end_ = 0, perTile_ = 0;
};

// Some panels and pieces of a call in packed form.
struct PackedPanels {
  float* memory;
  size_t pieceSize, panelSize;  // panels do not begin at the same place of a cache's ways
  Piece piece[kPanels][kPieces];

  PackedPanels(LaneScratch& scratch, int K)
      : pieceSize(static_cast<size_t>(std::min(K, kDepth)) * kPanel),
        panelSize(pieceSize * static_cast<size_t>(std::clamp((K + kDepth - 1) / kDepth, 1, kPieces)) + 80) {
    memory = scratch.panel.get(kPanels * panelSize);
  }
  float* at(size_t panel, int j) const { return memory + panel * panelSize + static_cast<size_t>(j) * pieceSize; }

  // Panels that lie side by side in the planes are packed together, as a plane's line is then read whole: returns how many,
  // from `plan` on, do.
  static size_t sideBySide(const PanelPlan* plan, size_t panels) {
    size_t n = 0;
    for (; n < panels; ++n) {
      const PanelPlan& p = plan[n];
      if (!p.rowsFit || p.half[2] != p.half[0] + VL ||
          p.half[0] != plan[0].half[0] + static_cast<ptrdiff_t>(n) * kPanel || p.kFrom != plan[0].kFrom ||
          p.kTo != plan[0].kTo)
        break;
    }
    return n;
  }
  void fill(const PositionsCall& c, const PanelPlan* plan, size_t panels, int k) {
    for (size_t i = 0; i < panels;) {
      const size_t together = c.mayReadInPlace ? 0 : sideBySide(plan + i, panels - i);
      for (int j = 0; j < kPieces && (j == 0 || k + j * kDepth < c.K); ++j) {
        if (together < 2) {
          piece[i][j] = pieceOf(c, plan[i], k + j * kDepth, at(i, j));
          continue;
        }
        for (size_t n = 0; n < together; ++n) piece[i + n][j] = spanOf(plan[i], k + j * kDepth, at(i + n, j));
        packTogether(c, plan[i], piece[i][j], together, i, j);
      }
      i += std::max<size_t>(1, together);
    }
  }
  void packTogether(const PositionsCall& c, const PanelPlan& p, const Piece& which, size_t together, size_t i, int j) {
    const float* source = c.source + p.half[0];
    for (int k = 0; k < which.depth; ++k) {
      const float* from = source + c.off[which.k0 + k];
      float* to = at(i, j) + static_cast<ptrdiff_t>(k) * kPanel;
      for (size_t n = 0; n < together; ++n, from += kPanel, to += panelSize)
        for (int v = 0; v < kPanel; v += VL) store(to + v, load(from + v));
    }
  }
};

}  // namespace crema::kernels::KNS
