// make NET WEIGHTS INPUT TOP...: NET in phase TEST with random weights, written to WEIGHTS; its first input, uniform in
// [-1, 1) and written to INPUT, goes through it once; every blob named behind goes to BLOB.npy (or, as TOP=FILE,
// there).
#include <caffe/caffe.hpp>

#include <fstream>

namespace {

// A float32 .npy in C order: magic, version 1.0, the header's length (16 bits, little endian), the header, the values.
void writeNpy(const std::string& path, const caffe::Blob<float>& blob) {
  std::string shape;
  for (const int d : blob.shape()) shape += std::to_string(d) + ", ";
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + shape + "), }";
  header.resize((10 + header.size() + 64) / 64 * 64 - 11, ' ');
  header += '\n';
  std::ofstream out(path, std::ios::binary);
  out.write("\x93NUMPY\x01\x00", 8);
  out.put(static_cast<char>(header.size() & 255)), out.put(static_cast<char>(header.size() >> 8));
  out << header;
  out.write(reinterpret_cast<const char*>(blob.cpu_data()), 4l * blob.count());
}

}  // namespace

int main(int count, char** argument) {
  caffe::Caffe::set_random_seed(12);
  caffe::Net<float> net(argument[1], caffe::TEST);
  caffe::NetParameter trained;
  net.ToProto(&trained);
  if (!net.params().empty()) caffe::WriteProtoToBinaryFile(trained, argument[2]);
  caffe::Caffe::set_random_seed(13);  // the same input for every net of one shape
  auto* input = net.input_blobs()[0];
  caffe::caffe_rng_uniform(input->count(), -1.f, 1.f, input->mutable_cpu_data());
  writeNpy(argument[3], *input);
  net.Forward();
  for (int i = 4; i < count; ++i) {
    const std::string what = argument[i], top = what.substr(0, what.find('='));
    writeNpy(top == what ? top + ".npy" : what.substr(top.size() + 1), *net.blob_by_name(top));
  }
}
