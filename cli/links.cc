// crema links FOLDER: makes those links, and small scripts with the names of Caffe's Python tools.
#include "cli/links.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "cli/command.h"

namespace crema::cli {
namespace {

struct Script {
  const char *name, *command;
};
constexpr Script kScripts[] = {{"draw_net.py", "draw"}, {"parse_log.py", "parse_log"}, {"summarize.py", "summary"}};

const std::vector<std::string>& tools() {
  static const std::vector<std::string> all = {
      "convert_imageset",       "compute_image_mean",       "extract_features",
      "convert_mnist_data",     "convert_cifar_data",       "device_query",
      "upgrade_net_proto_text", "upgrade_net_proto_binary", "upgrade_solver_proto_text"};
  return all;
}

// Replaces an existing link; any other existing file is left alone. Inside the executable's own folder links are
// relative, so that the folder can be moved.
void link(const std::string& executable, const std::string& folder, const std::string& name) {
  namespace fs = std::filesystem;
  const std::string path = joinPath(folder, name);
  std::error_code error;
  if (fs::is_symlink(path, error)) {
    fs::remove(path, error);
  } else if (fs::exists(path, error)) {
    ioError("there is a file at {} already; remove it or choose another folder", path);
  }
  const bool beside = fs::equivalent(parentDirectory(executable), folder, error);
  fs::create_symlink(beside ? fs::path(executable).filename().string() : executable, path, error);
  if (error) ioError("cannot make the link {}: {}", path, systemError(error.value()));
}

// People start Caffe's Python scripts by name and with `python` before it. This text is a program of both the shell,
// which never reads its second line, and Python, to which its first line is a string.
std::string scriptText(const std::string& executable, const std::string& folder, const std::string& command) {
  std::error_code error;
  const bool beside = std::filesystem::equivalent(parentDirectory(executable), folder, error);
  const std::string name = std::filesystem::path(executable).filename().string();
  const std::string shell = beside ? "\"$(dirname \"$0\")/" + name + "\"" : "\"" + executable + "\"";
  const std::string python =
      beside ? "os.path.join(os.path.dirname(os.path.abspath(__file__)), \"" + name + "\")" : "\"" + executable + "\"";
  return fmt::format(
      "#!/bin/sh\n"
      "''''exec {} {} \"$@\" # made by `crema links` '''\n"
      "import os, sys\n"
      "program = {}\n"
      "os.execv(program, [program, \"{}\"] + sys.argv[1:])\n",
      shell, command, python, command);
}

void script(const std::string& executable, const std::string& folder, const Script& s) {
  namespace fs = std::filesystem;
  const std::string path = joinPath(folder, s.name), text = scriptText(executable, folder, s.command);
  std::error_code error;
  if (fs::exists(path, error) && readFile(path).find("made by `crema links`") == std::string::npos)
    ioError("there is a file at {} already; remove it or choose another folder", path);
  writeFileAtomically(path, text);
  fs::permissions(path, fs::perms(0755), error);
  if (error) ioError("cannot make {} a program: {}", path, systemError(error.value()));
}

int makeLinks(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  const std::string executable = fs::read_symlink("/proc/self/exe", error).string();
  if (error) ioError("cannot find out where this executable is: {}", systemError(error.value()));
  fs::create_directories(folder, error);
  if (error) ioError("cannot make the folder {}: {}", folder, systemError(error.value()));
  std::vector<std::string> names = tools();
  names.push_back("caffe");
  for (const std::string& name : names) link(executable, folder, name), link(executable, folder, name + ".bin");
  for (const Script& s : kScripts) script(executable, folder, s);
  return 0;
}

}  // namespace

std::string commandOfName(const std::string& executable) {
  std::string name = executable.substr(executable.rfind('/') + 1);
  if (name.ends_with(".bin")) name.resize(name.size() - 4);
  return std::find(tools().begin(), tools().end(), name) == tools().end() ? "" : name;
}

void addLinks(CLI::App& program, Run& chosen) {
  addCommand(
      program, "links", "link Caffe's program names to this executable",
      [](CLI::App& app) -> Run {
        auto folder = std::make_shared<std::string>();
        app.add_option("folder", *folder, "where; made if need be")->required();
        return [folder] { return makeLinks(*folder); };
      },
      chosen);
}

}  // namespace crema::cli
