// The micro kernel with all that it reads in the first cache: the most that this code computes on this machine. In
// registers alone it would be 1 % more.
namespace crema::kernels::KNS {

inline void fullSpeed(Context& context, int64_t multiplyAdds) {
  constexpr int64_t kOfTile = int64_t{kRows} * kPanel * kDepth, kTiles = 64;  // a task: tens of microseconds
  const int64_t tiles = (multiplyAdds + kOfTile - 1) / kOfTile;
  context.pool().run(static_cast<int>((tiles + kTiles - 1) / kTiles), [&](int t, int lane) {
    auto& scratch = context.scratch().lane[static_cast<size_t>(lane)];
    float *panel = scratch.panel.get(kDepth * kPanel), *A = scratch.tile.get(kDepth * kRows);
    float* c = scratch.transposed.get(kRows * kPanel);  // not of this function, or nothing would be computed
    std::memset(panel, 0, sizeof(float) * kDepth * kPanel), std::memset(A, 0, sizeof(float) * kDepth * kRows);
    std::memset(c, 0, sizeof(float) * kRows * kPanel);
    const float* source[2] = {panel, nullptr};
    for (int64_t i = t * kTiles; i < std::min(tiles, (t + 1) * kTiles); ++i)
      gemmTileFor(kPacked, kRows)(kDepth, A, source, nullptr, c, kPanel, true, nullptr, A, nullptr, nullptr);
  });
}

}  // namespace crema::kernels::KNS
