// CIFAR-10's binary batches: records of one label byte and 3 x 32 x 32 bytes, planes red, green, blue.
#pragma once
#include <cstdint>
#include <string>

namespace crema::data {

struct CifarCounts {
  int64_t train = 0, test = 0;
};

// As Caffe's convert_cifar_data: data_batch_1.bin to data_batch_5.bin and test_batch.bin of `input` become
// cifar10_train_BACKEND and cifar10_test_BACKEND in `output`, keys %05d. kData when a file is none of these.
CifarCounts convertCifar(const std::string& input, const std::string& output, const std::string& backend);

}  // namespace crema::data
