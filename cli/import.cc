// crema import MODEL.onnx [-model NET.prototxt -weights NET.caffemodel]: an ONNX model as a Caffe net and its weights.
// By default the two files are named after the model, in its folder; -output changes that prefix. Existing files are
// not overwritten: for a model exported by Crema they would be the original net.
#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "base/file.h"
#include "cli/command.h"
#include "exchange/external.h"
#include "exchange/import.h"
#include "model/proto_io.h"

namespace crema::cli {
namespace {

struct ImportFlags {
  std::string onnx, output, model, weights;
  std::vector<std::string> shapes;
  bool force = false;
};

// INPUT:1,3,224,224
exchange::InputShapes shapesOf(const std::vector<std::string>& texts) {
  exchange::InputShapes all;
  for (const std::string& text : texts) {
    const size_t colon = text.rfind(':');
    std::vector<int64_t> dims;
    std::string number;
    for (const char c : text.substr(colon == std::string::npos ? 0 : colon + 1) + ",") {
      if (c >= '0' && c <= '9' && number.size() < 9)
        number += c;
      else if (c == ',' && !number.empty())
        dims.push_back(std::stoll(number)), number.clear();
      else
        colon == std::string::npos
            ? invalid("-input_shape {}: write INPUT:1,3,224,224", text)
            : invalid("-input_shape {}: '{}' is no shape; write 1,3,224,224", text, text.substr(colon + 1));
    }
    if (colon == std::string::npos) invalid("-input_shape {}: which input? Write INPUT:1,3,224,224", text);
    if (std::count(dims.begin(), dims.end(), 0)) invalid("-input_shape {}: no axis has a length of 0", text);
    all[text.substr(0, colon)] = dims;
  }
  return all;
}

int importNet(ImportFlags f) {
  if (f.onnx.empty()) invalid("which model? Name the .onnx file");
  if (f.output.empty()) f.output = f.onnx.ends_with(".onnx") ? f.onnx.substr(0, f.onnx.size() - 5) : f.onnx;
  if (f.model.empty()) f.model = f.output + ".prototxt";
  if (f.weights.empty()) f.weights = f.output + ".caffemodel";
  for (const std::string& path : {f.model, f.weights})
    if (fileExists(path) && !f.force)
      invalid("{} is there already; name another beginning with -output, or replace it with -force", path);
  auto onnx = model::readBinary<::onnx::ModelProto>(f.onnx);
  exchange::readExternal(onnx.mutable_graph(), parentDirectory(f.onnx));
  exchange::OnnxImport made =
      inside([&] { return "in model " + f.onnx; }, [&] { return exchange::importOnnx(onnx, shapesOf(f.shapes)); });
  model::writeBinary(f.weights, made.net);
  int64_t values = 0;
  for (auto& layer : *made.net.mutable_layer()) {
    for (const auto& blob : layer.blobs()) values += blob.data_size();
    layer.clear_blobs();
  }
  writeFileAtomically(f.model, model::toText(made.net));
  for (const std::string& note : made.notes) std::printf("%s\n", note.c_str());
  std::printf("%s: %d layers; %s: %lld values\n", f.model.c_str(), made.net.layer_size(), f.weights.c_str(),
              static_cast<long long>(values));
  return 0;
}

}  // namespace

void addImport(CLI::App& program, Run& chosen) {
  addCommand(
      program, "import", "an ONNX model as a net prototxt and a .caffemodel",
      [](CLI::App& app) -> Run {
        auto f = std::make_shared<ImportFlags>();
        app.add_option("onnx,--onnx", f->onnx, "the .onnx file");
        app.add_option("--output", f->output, "how both files begin; .prototxt and .caffemodel are added");
        app.add_option("--model", f->model, "the prototxt to write");
        app.add_option("--weights", f->weights, "the .caffemodel to write");
        app.add_flag("--force", f->force, "replace the files where they are there already");
        app.add_option("--input_shape", f->shapes, "INPUT:1,3,224,224 for an input whose shape the model leaves open");
        return [f] { return importNet(*f); };
      },
      chosen);
}

}  // namespace crema::cli
