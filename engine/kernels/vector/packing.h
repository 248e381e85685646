// Weights packed into the rows of tiles, and their gradient unpacked from them: transposes in blocks, split over
// threads, as a batch of one image spends as much time here as in its products.
namespace crema::kernels::KNS {

// Runs small loops in the calling thread, as waking another costs more than it saves.
template <class Body>
void runUnless(bool small, Context& context, int tasks, const Body& body) {
  if (!small) return context.pool().run(tasks, body);
  for (int t = 0; t < tasks; ++t) body(t, 0);
}

// s [rows][K], rows ld apart -> d [place[k]][rows]; place[k] < 0: left out.
inline void packTransposed(const float* s, ptrdiff_t ld, int rows, int K, const int* place, float* d) {
  const int whole = K & ~7;
  for (int m = 0; m < rows; m += 8) {
    const int n = std::min(8, rows - m);
    const Mask first = firstLanes(n);
    for (int k = 0; k < whole; k += 8) {
      alignas(32) float block[64];
      transposeRows(s + m * ld + k, ld, n, block, 8);
      for (int j = 0; j < 8; ++j)
        if (place[k + j] >= 0)
          store(first, d + static_cast<ptrdiff_t>(place[k + j]) * rows + m, load(first, block + 8 * j));
    }
  }
  for (int k = whole; k < K; ++k) {
    if (place[k] < 0) continue;
    float* to = d + static_cast<ptrdiff_t>(place[k]) * rows;
    for (int m = 0; m < rows; ++m) to[m] = s[m * ld + k];
  }
}

// body(group, block, first row of the block, its rows): the blocks of M rows of every group.
template <class Body>
void eachRowBlock(Context& context, bool small, int groups, int M, const Body& body) {
  if (M == 0) return;
  const RowBlocks blocks(M);
  runUnless(small, context, groups * blocks.count, [&](int t, int) {
    const int b = t % blocks.count;
    body(t / blocks.count, blocks.start(b), blocks.size(b));
  });
}

// packRows of the weights of a convolution; k goes over kernel rows, input channels, kernel columns.
inline void packForwardWeights(Context& context, const ConvShape& s, const float* w, float* A) {
  const int icg = s.ic / s.groups, ocg = s.oc / s.groups, taps = s.kh * s.kw, K = icg * taps;
  std::vector<int> place(static_cast<size_t>(K));
  for (int i = 0, k = 0; i < icg; ++i)
    for (int a = 0; a < s.kh; ++a)
      for (int b = 0; b < s.kw; ++b) place[static_cast<size_t>(k++)] = (a * icg + i) * s.kw + b;
  eachRowBlock(context, int64_t{s.oc} * K < (1 << 15), s.groups, ocg, [&](int g, int m0, int rows) {
    const size_t first = (static_cast<size_t>(g) * ocg + m0) * K;
    packTransposed(w + first, K, rows, K, place.data(), A + first);
  });
}

// Unpacks [group][panel][row][kPanel] into filters: weight[row] is its index in a filter, -1 one to leave out.
// A block of rows stays in the L1 cache while all filters are visited.
inline void scatterRows(const float* from, const std::vector<int>& weight, int count, size_t filter, bool accumulate,
                        float* to) {
  constexpr size_t kBlock = 64;
  for (size_t row0 = 0; row0 < weight.size(); row0 += kBlock) {
    const size_t end = std::min(weight.size(), row0 + kBlock);
    for (int i = 0; i < count; ++i) {
      float* d = to + static_cast<size_t>(i) * filter;
      const float* s = from + i;
      for (size_t row = row0; row < end; ++row) {
        if (weight[row] < 0) continue;
        d[weight[row]] = accumulate ? d[weight[row]] + s[row * kPanel] : s[row * kPanel];
      }
    }
  }
}

}  // namespace crema::kernels::KNS
