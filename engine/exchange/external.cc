#include "exchange/external.h"

#include <charconv>
#include <filesystem>
#include <fstream>

#include "exchange/tensors.h"

namespace crema::exchange {
namespace {

namespace fs = std::filesystem;
using T = ::onnx::TensorProto;

constexpr uint64_t kRest = UINT64_MAX;

struct External {
  std::string file;
  uint64_t offset = 0, length = kRest;
};

External externalOf(const T& t) {
  External e;
  const auto number = [&](const auto& p) {
    uint64_t v = 0;
    const std::string& text = p.value();
    const auto end = std::from_chars(text.data(), text.data() + text.size(), v);
    if (end.ec != std::errc() || end.ptr != text.data() + text.size())
      badData("{} is damaged: the {} of its place in a file is '{}'", titleOf(t), p.key(), text);
    return v;
  };
  for (const auto& p : t.external_data()) {
    if (p.key() == "location") e.file = p.value();
    if (p.key() == "offset") e.offset = number(p);
    if (p.key() == "length") e.length = number(p);
  }
  if (e.file.empty() || e.file[0] == '/' || e.file.find("..") != std::string::npos)
    badData("{} has its values in '{}', which is no file beside the model", titleOf(t), e.file);
  return e;
}

}  // namespace

void readExternal(::onnx::GraphProto* graph, const std::string& folder) {
  for (T& t : *graph->mutable_initializer()) {
    if (t.data_location() != 1) continue;
    const External e = externalOf(t);
    const std::string path = folder + "/" + e.file;
    std::error_code ignored;
    if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored))
      badData("{}, where {} has its values, is no file; save the model anew, or name a file beside it", path,
              titleOf(t));
    std::ifstream in(path, std::ios::binary | std::ios::ate);
    if (!in) ioError("cannot open {}, which holds the values of {}; put it beside the model", path, titleOf(t));
    const auto size = static_cast<uint64_t>(in.tellg());
    const uint64_t length = static_cast<uint64_t>(countOf(dimsOf(t))) * widthOf(t);
    if (e.length != kRest && e.length != length)
      badData("{} is damaged: {} has {} bytes, and its place in {} has {}", titleOf(t), textOf(dimsOf(t)), length, path,
              e.length);
    if (e.offset > size || length > size - e.offset)
      badData("{} is cut: {} needs {} bytes from {} on, and it has {}", path, titleOf(t), length, e.offset, size);
    std::string bytes(length, 0);
    in.seekg(static_cast<std::streamoff>(e.offset));
    if (!in.read(bytes.data(), static_cast<std::streamsize>(length)))
      ioError("cannot read the values of {} from {}", titleOf(t), path);
    t.set_raw_data(std::move(bytes));
    t.clear_external_data(), t.clear_data_location();
  }
}

}  // namespace crema::exchange
