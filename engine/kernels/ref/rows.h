// Element by element.
#pragma once
#include "kernels/kernels.h"

namespace crema::kernels::ref {

template <class T>
void reluForward(int64_t count, T negativeSlope, const T* x, T* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] > 0 ? x[i] : negativeSlope * x[i];
}

template <class T>
void reluBackward(int64_t count, T negativeSlope, const T* x, const T* dy, T* dx) {
  for (int64_t i = 0; i < count; ++i) dx[i] = x[i] > 0 ? dy[i] : negativeSlope * dy[i];
}

template <class T>
void multiply(int64_t count, const T* a, const T* b, T* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = a[i] * b[i];
}

template <class T>
void add(int64_t count, const T* a, const T* b, T* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = a[i] + b[i];
}

template <class T>
void addRelu(int64_t count, T slope, const T* a, const T* b, T* y) {
  add(count, a, b, y), reluForward(count, slope, y, y);
}

template <class T>
void addReluBackward(int64_t count, T slope, const T* y, const T* dy0, const T* dy1, T* dx0, T* dx1) {
  for (int64_t i = 0; i < count; ++i) {
    const T dy = dy1 ? dy0[i] + dy1[i] : dy0[i], dx = y[i] > 0 ? dy : slope * dy;
    dx0[i] = dx;
    if (dx1) dx1[i] = dx;
  }
}

}  // namespace crema::kernels::ref
