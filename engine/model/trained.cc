#include "model/trained.h"

#include <climits>
#include <filesystem>
#include <string_view>
#include <vector>

#include "base/child.h"
#include "base/error.h"
#include "base/file.h"
#include "base/mapped_file.h"
#include "base/mutex.h"
#include "model/hdf5_file.h"
#include "model/hdf5_model.h"
#include "model/proto_io.h"
#include "model/stored_model.h"
#include "model/upgrade.h"

namespace crema::model {
namespace {

bool endsInH5(const std::string& path) { return path.size() > 3 && path.compare(path.size() - 3, 3, ".h5") == 0; }

template <class Message, class Read>
Message readApart(const std::string& path, Read&& read) {
  const std::string bytes = readFile(path);
  // Locked during the fork, so that the child's libhdf5 is not in the middle of a call.
  const MutexLock lock(hdf5Mutex());
  const ChildLimits limits{60 + 1e-6 * static_cast<double>(bytes.size()),
                           (int64_t{4} << 30) + 4 * static_cast<int64_t>(bytes.size())};
  const ChildResult result = inChild(limits, [&] {
    const Message message = read(bytes, path);
    if (message.ByteSizeLong() > INT_MAX)
      badData("{} holds more than {} bytes of values; no net is that large", path, INT_MAX);
    return message.SerializeAsString();
  });
  if (!result.died.empty())
    badData("{} is damaged: libhdf5 {} while reading it (in a process of its own); take it anew from where it was made",
            path, result.died);
  Message message;
  parseBinaryInto(result.bytes, path, &message);
  return message;
}

template <class Body>
auto asBinary(const std::string& path, Body&& body) {
  try {
    return body();
  } catch (Error& e) {
    if (endsInH5(path)) e.addFrame(fmt::format("{} was read as binaryproto: it does not begin as an HDF5 file", path));
    throw;
  }
}

}  // namespace

void Trained::copyValues(int layer, int blob, float* to) const { file->read(valuesOf(layer, blob), to); }

void useTrained(const std::string& path, const std::function<void(const Trained&)>& use) {
  std::error_code unknown;
  if (isHdf5(path) || !std::filesystem::is_regular_file(path, unknown)) return use(readTrained(path));
  const MappedFile file(path);
  auto stored = storedModel(file.bytes());
  if (!stored) return use(readTrained(path));
  upgradeNet(&stored->net, path);
  // Of the first format's layers some become one.
  const auto layers = static_cast<size_t>(stored->net.layer_size());
  if (layers == 0 || layers != stored->values.size()) return use(readTrained(path));
  Trained trained{std::move(stored->net)};
  trained.file = &file, trained.values = std::move(stored->values);
  use(trained);
}

Trained readTrained(const std::string& path) {
  if (isHdf5(path)) return {readApart<caffe::NetParameter>(path, modelFromHdf5), true};
  return asBinary(path, [&] { return Trained(readNetBinary(path)); });
}

caffe::SolverState readState(const std::string& path) {
  if (isHdf5(path)) return readApart<caffe::SolverState>(path, stateFromHdf5);
  const auto state = asBinary(path, [&] { return readBinary<caffe::SolverState>(path); });
  if (state.ByteSizeLong() == 0) badData("{} is empty; take it anew from where it was made", path);
  return state;
}

std::string nameFor(const std::string& path, SnapshotFormat format) {
  if ((format == caffe::SolverParameter::HDF5) == endsInH5(path)) return path;
  return endsInH5(path) ? path.substr(0, path.size() - 3) : path + ".h5";
}

void writeModel(const std::string& path, const caffe::NetParameter& net, SnapshotFormat format) {
  if (format != caffe::SolverParameter::HDF5) return writeBinary(path, net);
  MutexLock lock(hdf5Mutex());
  const std::string bytes = hdf5FromModel(net, path);
  lock.unlock();
  writeFileAtomically(path, bytes);
}

void writeState(const std::string& path, const caffe::SolverState& state, SnapshotFormat format) {
  if (format != caffe::SolverParameter::HDF5) return writeBinary(path, state);
  MutexLock lock(hdf5Mutex());
  const std::string bytes = hdf5FromState(state, path);
  lock.unlock();
  writeFileAtomically(path, bytes);
}

}  // namespace crema::model
