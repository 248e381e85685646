// crema export -model NET -weights W -output net.onnx: the net of phase TEST with its weights as an ONNX model, IR
// version 8, opset 17. Only the batch size is variable in the model; another height or width needs another export.
#include <cstdio>

#include "base/error.h"
#include "base/file.h"
#include "cli/described_net.h"
#include "exchange/convert.h"
#include "exchange/description.h"
#include "model/filter.h"
#include "model/upgrade.h"

namespace crema::cli {
namespace {

struct ExportFlags {
  NetFlags net;
  std::string weights, output;
};

std::string text(const ::onnx::ValueInfoProto& port) {
  std::string dims;
  for (const auto& dim : port.type().tensor_type().shape().dim())
    dims += (dims.empty() ? "" : "x") + (dim.has_dim_value()   ? std::to_string(dim.dim_value())
                                         : dim.has_dim_param() ? dim.dim_param()
                                                               : "?");
  return fmt::format("{} {}", port.name(), dims.empty() ? "scalar" : dims);
}

template <class Ports>
std::string text(const Ports& ports) {
  std::string all;
  for (const auto& port : ports) all += (all.empty() ? "" : ", ") + text(port);
  return all.empty() ? "none" : all;
}

int exportNet(const ExportFlags& f) {
  if (f.output.empty()) invalid("-output is missing: name the .onnx file to write");
  kernels::Context kernels(kernels::bestIsa(), 0);
  net::NetOptions o;
  o.kernels = &kernels;
  o.data.source = layers::FromNowhere{};
  o.data.folder = parentDirectory(f.net.model);
  const auto built = readFlaggedNet(f.net, o);
  net::Net& net = *built;
  if (!f.weights.empty()) {
    net::copyTrainedFiles(net, f.weights);
    net::warnOfUntrained(net, f.weights);
  } else if (!net.trainable().empty()) {
    invalid("net '{}' from {} has layers to train, '{}' the first; give their values: -weights FILE.caffemodel",
            net.name(), f.net.model, net.trainable()[0]);
  }
  exchange::OnnxExport made =
      inside([&] { return "in net " + f.net.model; }, [&] { return exchange::exportOnnx(net); });
  const caffe::NetParameter read = model::readNet(f.net.model);
  exchange::addDescription(made.model, model::filterNet(read, stateOf(f.net, read)), net);
  writeFileAtomically(f.output, made.model.SerializeAsString());
  for (const std::string& note : made.notes) std::printf("%s\n", note.c_str());
  std::printf("%s: %d nodes, inputs %s, outputs %s\n", f.output.c_str(), made.model.graph().node_size(),
              text(made.model.graph().input()).c_str(), text(made.model.graph().output()).c_str());
  return 0;
}

}  // namespace

void addExport(CLI::App& program, Run& chosen) {
  addCommand(
      program, "export", "a net and its weights as an ONNX model",
      [](CLI::App& app) -> Run {
        auto f = std::make_shared<ExportFlags>();
        addNetFlags(app, f->net, false);
        app.add_option("--weights", f->weights, "the .caffemodel[.h5] files, separated by commas");
        app.add_option("--output,--onnx", f->output, "the .onnx file to write");
        return [f] { return exportNet(*f); };
      },
      chosen);
}

}  // namespace crema::cli
