// make CASES OUT: every case through BVLC Caffe's Solver::Solve. OUT is text: `case NAME`; from its log, whose numbers
// have six digits, `loss ITERATION VALUE` for displays and `test NET ITERATION OUTPUT VALUE`; and at the end `array
// VALUE...` for each learnable parameter, running statistics among them.
#define GLOG_NO_ABBREVIATED_SEVERITIES
#include <google/protobuf/text_format.h>
#include <caffe/caffe.hpp>
#include <caffe/solver_factory.hpp>

#include <cstdio>
#include <iomanip>
#include <memory>

#include "../../support/golden_values.h"

namespace {

class Log : public google::LogSink {
 public:
  explicit Log(std::ostream& out) : out_(out) { google::AddLogSink(this); }
  ~Log() override { google::RemoveLogSink(this); }
  void send(google::LogSeverity, const char*, const char*, int, const google::LogMessageTime&, const char* message,
            size_t length) override {
    const std::string line(message, length);
    double value;
    char name[100];
    const size_t loss = line.find("), loss = ");
    if (std::sscanf(line.c_str(), "Iteration %d, Testing net (#%d)", &iteration_, &net_) == 2) return;
    if (std::sscanf(line.c_str(), " Test net output #%*d: %99s = %lf", name, &value) == 2)
      out_ << "test " << net_ << " " << iteration_ << " " << name << " " << value << "\n";
    if (std::sscanf(line.c_str(), "Test loss: %lf", &value) == 1)
      out_ << "test " << net_ << " " << iteration_ << " whole-loss " << value << "\n";
    if (loss != std::string::npos && line.rfind("Iteration ", 0) == 0)
      out_ << "loss " << std::atoi(line.c_str() + 10) << " " << line.substr(loss + 10) << "\n";
  }

 private:
  std::ostream& out_;
  int iteration_ = 0, net_ = 0;
};

void run(const std::string& text, std::ostream& out) {
  caffe::SolverParameter p;
  if (!google::protobuf::TextFormat::ParseFromString(text, &p)) throw std::runtime_error("cannot parse " + text);
  p.set_solver_mode(caffe::SolverParameter::CPU);
  p.set_snapshot_after_train(false);
  p.set_snapshot_prefix("unused");
  std::unique_ptr<caffe::Solver<float>> solver(caffe::SolverRegistry<float>::CreateSolver(p));
  auto& params = solver->net()->learnable_params();
  for (size_t i = 0; i < params.size(); ++i)
    for (int k = 0; k < params[i]->count(); ++k)
      params[i]->mutable_cpu_data()[k] = golden::value("p", 100 + static_cast<int>(i), k);
  {
    const Log log(out);
    solver->Solve();
  }
  for (auto* a : params) {
    out << "array" << std::setprecision(9);
    for (int k = 0; k < a->count(); ++k) out << " " << a->cpu_data()[k];
    out << std::setprecision(6) << "\n";
  }
}

}  // namespace

int main(int, char** argv) {
  FLAGS_minloglevel = 0, FLAGS_stderrthreshold = 3, FLAGS_logtostderr = false;
  std::ifstream in(argv[1]);
  std::ofstream out(argv[2]);
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    const auto column = golden::split(line, '|');
    out << "case " << column[0] << "\n";
    run(column[1], out);
  }
  return out ? 0 : 1;
}
