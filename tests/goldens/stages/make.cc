// make.cc NET SOLVER: which layers BVLC Caffe's Net::FilterNet keeps, a line for the solver's train_state, one for its
// test_state, and one for each other set of stages below. A layer is name(bottoms)*rate, rate the lr_mult of its first
// parameter. Fields that only CaffeOnSpark knows are passed over.
#include <fcntl.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/text_format.h>

#include <caffe/caffe.hpp>
#include <iostream>

template <class M>
M read(const char* path) {
  M m;
  google::protobuf::io::FileInputStream file(open(path, O_RDONLY));
  google::protobuf::TextFormat::Parser parser;
  parser.AllowUnknownField(true);
  CHECK(parser.Parse(&file, &m)) << path;
  return m;
}

void line(caffe::NetParameter net, const caffe::NetState& state) {
  net.mutable_state()->MergeFrom(state);
  caffe::NetParameter kept;
  caffe::Net<float>::FilterNet(net, &kept);
  std::cout << caffe::Phase_Name(state.phase());
  for (const auto& stage : state.stage()) std::cout << " " << stage;
  std::cout << ":";
  for (const auto& layer : kept.layer()) {
    std::cout << " " << layer.name() << "(";
    for (int i = 0; i < layer.bottom_size(); ++i) std::cout << (i ? "," : "") << layer.bottom(i);
    std::cout << ")";
    if (layer.param_size()) std::cout << "*" << layer.param(0).lr_mult();
  }
  std::cout << "\n";
}

int main(int, char** argv) {
  const auto net = read<caffe::NetParameter>(argv[1]);
  const auto solver = read<caffe::SolverParameter>(argv[2]);
  caffe::NetState state = solver.train_state();
  state.set_phase(caffe::TRAIN);
  line(net, state);
  state = solver.test_state(0);
  state.set_phase(caffe::TEST);
  line(net, state);
  for (const std::vector<std::string>& stages : std::vector<std::vector<std::string>>{
           {"unfactored", "1-layer"}, {"unfactored", "2-layer"}, {"factored"}, {"trainval", "2-layer", "factored"}, {}})
    for (const auto phase : {caffe::TRAIN, caffe::TEST}) {
      state.Clear();
      state.set_phase(phase);
      for (const auto& stage : stages) state.add_stage(stage);
      line(net, state);
    }
}
