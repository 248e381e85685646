// Rows of numbers, moved by whole vectors with a mask at their end: they are short, and a call of memcpy would take as long as
// the copy.
namespace crema::kernels::KNS {

INL Mask firstLanes(int n) { return lanes(0, std::clamp(n, 0, VL)); }

INL void copyRow(const float* s, int count, float* d) {
  int i = 0;
  for (; i + VL <= count; i += VL) store(d + i, load(s + i));
  if (i < count) store(firstLanes(count - i), d + i, load(firstLanes(count - i), s + i));
}

// d [count] = a[0] b[0] a[1] b[1] ..; null: zeros for b.
INL void zipRow(const float* a, const float* b, int count, float* d) {
  for (int i = 0; 2 * i < count; i += VL) {
    const V even = load(firstLanes((count + 1) / 2 - i), a + i),
            odd = b ? load(firstLanes(count / 2 - i), b + i) : zero();
    store(firstLanes(count - 2 * i), d + 2 * i, zipLow(even, odd));
    store(firstLanes(count - 2 * i - VL), d + 2 * i + VL, zipHigh(even, odd));
  }
}

}  // namespace crema::kernels::KNS
