// crema upgrade_net_proto_text, upgrade_net_proto_binary, upgrade_solver_proto_text: old descriptions in the newest
// form. 0: written; 1: written, but not all could be carried over (the log says what), or wrong usage; 2: the input
// cannot be read.
#include "model/upgrade.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/command.h"
#include "model/proto_io.h"

namespace crema::cli {
namespace {

// Reads the input as a message of this kind; false, with the reason in the log, when it is none.
bool read(const std::string& path, bool text, const char* kind, google::protobuf::Message* to) {
  try {
    text ? model::readTextInto(path, to) : model::readBinaryInto(path, to);
    return true;
  } catch (const Error& e) {
    LOG_ERROR("Failed to parse input {} file as {}: {}: {}", text ? "text" : "binary", kind, path, e.what());
    return false;
  }
}

void write(const std::string& path, bool text, const char* kind, const google::protobuf::Message& message) {
  text ? writeFileAtomically(path, model::toText(message)) : model::writeBinary(path, message);
  LOG_INFO("Wrote upgraded {} {} proto to {}", kind, text ? "text" : "binary", path);
}

// whole: whether everything was carried over.
void report(bool changed, bool whole, const std::string& path) {
  if (!whole)
    LOG_ERROR("Encountered error(s) while upgrading prototxt; see details above.");
  else if (!changed)
    LOG_ERROR("File already in latest proto format: {}", path);
}

int upgradeNetFile(const std::string& from, const std::string& to, bool text) {
  caffe::NetParameter net;
  if (!read(from, text, "NetParameter", &net)) return 2;
  const std::string before = net.SerializeAsString();
  const bool whole = model::upgradeNet(&net, from);
  report(net.SerializeAsString() != before, whole, from);
  write(to, text, "NetParameter", net);
  return whole ? 0 : 1;
}

int upgradeSolverFile(const std::string& from, const std::string& to) {
  caffe::SolverParameter solver;
  if (!read(from, true, "SolverParameter", &solver)) return 2;
  const bool old = solver.has_solver_type(), both = old && solver.has_type();
  if (both)
    LOG_ERROR(
        "Failed to upgrade: old solver_type field (enum) and new type field (string) cannot be both specified in "
        "solver proto text.");
  else
    model::upgradeSolver(&solver, from);
  report(old, !both, from);
  write(to, true, "SolverParameter", solver);
  return both ? 1 : 0;
}

void addOne(CLI::App& program, Run& chosen, const char* name, const char* summary, const char* usage,
            int (*run)(const std::string& from, const std::string& to)) {
  addCommand(
      program, name, summary,
      [=](CLI::App& app) -> Run {
        auto files = std::make_shared<std::vector<std::string>>();
        app.add_option("files", *files, "the old file; the file to write");
        return [=] {
          if (files->size() == 2) return run(files->at(0), files->at(1));
          LOG_ERROR("Usage: {} {}", name, usage);
          return 1;
        };
      },
      chosen);
}

}  // namespace

void addUpgrade(CLI::App& program, Run& chosen) {
  addOne(program, chosen, "upgrade_net_proto_text", "a net prototxt of an old form in the newest: IN OUT",
         "v0_net_proto_file_in net_proto_file_out",
         [](const std::string& from, const std::string& to) { return upgradeNetFile(from, to, true); });
  addOne(program, chosen, "upgrade_net_proto_binary", "a .caffemodel of an old form in the newest: IN OUT",
         "v0_net_proto_file_in net_proto_file_out",
         [](const std::string& from, const std::string& to) { return upgradeNetFile(from, to, false); });
  addOne(program, chosen, "upgrade_solver_proto_text", "a solver prototxt of an old form in the newest: IN OUT",
         "old_solver_proto_file_in solver_proto_file_out", upgradeSolverFile);
}

}  // namespace crema::cli
