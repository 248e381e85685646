// How large the blocks are that the micro kernels compute at once.
namespace crema::kernels::KNS {

constexpr int kWidth = 2;            // vectors per row of a tile
constexpr int kPanel = kWidth * VL;  // positions per panel
constexpr int kLine = 16;            // floats of a cache line

}  // namespace crema::kernels::KNS
