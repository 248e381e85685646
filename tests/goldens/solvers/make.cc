// make CASES OUT: every case through BVLC Caffe's solver, the inputs set anew before each iteration. OUT: float32
// values, per case the loss of each of the 20 iterations, then all learnable parameters after iteration 5 and after
// iteration 20.
#include <google/protobuf/text_format.h>
#include <caffe/caffe.hpp>
#include <caffe/solver_factory.hpp>

#include <memory>

#include "../../support/golden_values.h"

namespace {

void parameters(caffe::Net<float>& net, std::vector<float>& out) {
  for (auto* p : net.learnable_params()) out.insert(out.end(), p->cpu_data(), p->cpu_data() + p->count());
}

std::vector<float> run(const std::string& net, const std::string& text) {
  caffe::SolverParameter p;
  if (!google::protobuf::TextFormat::ParseFromString(text, &p)) throw std::runtime_error("cannot parse " + text);
  p.set_net(net + ".prototxt");
  p.set_solver_mode(caffe::SolverParameter::CPU);
  p.set_snapshot_after_train(false);
  p.set_snapshot_prefix("/tmp/unused");
  std::unique_ptr<caffe::Solver<float>> solver(caffe::SolverRegistry<float>::CreateSolver(p));
  auto& n = *solver->net();
  for (size_t i = 0; i < n.learnable_params().size(); ++i)
    for (int k = 0; k < n.learnable_params()[i]->count(); ++k)
      n.learnable_params()[i]->mutable_cpu_data()[k] = golden::value("s", 100 + static_cast<int>(i), k);
  std::vector<float> losses, out;
  for (int iteration = 0; iteration < 20; ++iteration) {
    for (const char* name : {"x", "label"}) {
      auto& b = *n.blob_by_name(name);
      for (int k = 0; k < b.count(); ++k)
        b.mutable_cpu_data()[k] = golden::value(name[0] == 'x' ? "s" : "l3", iteration, k);
    }
    solver->Step(1);
    losses.push_back(n.blob_by_name("loss")->cpu_data()[0]);
    if (iteration == 4 || iteration == 19) parameters(n, out);
  }
  losses.insert(losses.end(), out.begin(), out.end());
  return losses;
}

}  // namespace

int main(int, char** argv) {
  std::ifstream in(argv[1]);
  std::ofstream out(argv[2], std::ios::binary);
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    const auto column = golden::split(line, '|');
    const auto values = run(column[1], column[2]);
    out.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(4 * values.size()));
  }
  return out ? 0 : 1;
}
