// make CASES: for each case the train net, then the test net, that BVLC Caffe's solver makes of net.prototxt: phase,
// names of the layers it kept, loss.
#include <google/protobuf/text_format.h>

#include <caffe/caffe.hpp>
#include <caffe/solver_factory.hpp>
#include <fstream>
#include <iostream>
#include <sstream>

void line(caffe::Net<float>& net) {
  float loss = 0;
  net.Forward(&loss);
  std::cout << caffe::Phase_Name(net.phase());
  for (const auto& name : net.layer_names()) std::cout << " " << name;
  std::cout << " " << loss << "\n";
}

int main(int, char** argv) {
  std::ifstream file("net.prototxt"), cases(argv[1]);
  std::stringstream net;
  net << file.rdbuf();
  for (std::string text; std::getline(cases, text);) {
    if (text[0] == '#') continue;
    const size_t bar = text.find('|');
    caffe::SolverParameter p;
    CHECK(google::protobuf::TextFormat::ParseFromString(
        "base_lr: 0.1 lr_policy: 'fixed' max_iter: 1 test_iter: 1 test_interval: 1 solver_mode: CPU net_param {" +
            text.substr(0, bar) + net.str() + "} " + text.substr(bar + 1),
        &p));
    std::unique_ptr<caffe::Solver<float>> solver(caffe::SolverRegistry<float>::CreateSolver(p));
    line(*solver->net());
    line(*solver->test_nets()[0]);
  }
}
