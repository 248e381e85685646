#include "cli/help.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <set>

#include "base/nearest.h"
#include "cli/arguments.h"
#include "cli/links.h"

namespace crema::cli {
namespace {

constexpr const char* kTools = "Caffe's tools, by their names (see `links`)";
constexpr const char* kInner = "Started by other programs";

bool isInner(const std::string& command) {
  static const std::set<std::string> all = {"plan", "coordinator", "worker", "engine", "score", "rows", "index"};
  return all.count(command) > 0;
}

// Lists a positional argument that is also a flag as the flag only; flags have one dash, as in gflags.
class Formatter : public CLI::Formatter {
 public:
  std::string make_positionals(const CLI::App* app) const override {
    const auto all = positionalsOf(app);
    return all.empty() ? "" : make_group("Arguments", true, all);
  }
  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string line = "Usage: " + name + " [FLAGS]";
    for (const CLI::Option* option : positionalsOf(app)) line += " " + make_option_usage(option);
    if (!app->get_subcommands({}).empty()) line += " COMMAND [FLAGS]";
    return line + "\n";
  }
  std::string make_option_name(const CLI::Option* option, bool positional) const override {
    std::string name = CLI::Formatter::make_option_name(option, positional);
    for (size_t at; (at = name.find("--")) != std::string::npos;) name.erase(at, 1);
    return name;
  }

 private:
  static std::vector<const CLI::Option*> positionalsOf(const CLI::App* app) {
    return app->get_options([](const CLI::Option* o) { return o->get_positional() && !o->nonpositional(); });
  }
};

// "; did you mean X?", or "." when none is near.
std::string suggestion(const std::string& word, const std::vector<std::string>& known, const std::string& before) {
  const std::string meant = didYouMean(word, known, before);
  return meant.empty() ? "." : meant;
}

std::vector<std::string> names(const CLI::App& program) {
  std::vector<std::string> all;
  for (const CLI::App* command : program.get_subcommands([](const CLI::App*) { return true; }))
    all.push_back(command->get_name());
  return all;
}

const CLI::App* commandOf(const CLI::App& program, const std::vector<std::string>& args) {
  for (const CLI::App* command : program.get_subcommands([](const CLI::App*) { return true; }))
    if (!args.empty() && command->get_name() == args[0]) return command;
  return nullptr;
}

}  // namespace

void setUpHelp(CLI::App& program, const std::string& name) {
  program.name(name);
  program.footer(
      "`" + name + " help COMMAND` lists the flags of a command, `" + name +
      " version` says which this is. Flags have one dash or two,\n"
      "and those of glog are known: -log_dir, -logtostderr, -alsologtostderr, -stderrthreshold, -minloglevel, "
      "-log_prefix.");
  const auto formatter = std::make_shared<Formatter>();
  formatter->column_width(34);
  formatter->label("Subcommands", "Commands");
  program.formatter(formatter);
  for (CLI::App* command : program.get_subcommands([](CLI::App*) { return true; })) {
    command->formatter(formatter);
    command->group(!commandOfName(command->get_name()).empty() ? kTools : "Commands");
    if (isInner(command->get_name())) command->group(kInner);
  }
}

std::vector<std::string> helpAsFlags(std::vector<std::string> args) {
  if (args.empty()) return args;
  if (args[0] == "version") args[0] = "--version";
  if (args[0] != "help") return args;
  if (args.size() == 1) return {"--help"};
  return {args[1], "--help"};
}

std::string helpText(const CLI::App& program, const std::string& name, const std::vector<std::string>& args) {
  const CLI::App* command = commandOf(program, args);
  if (!command) return program.help();
  return command->help(commandOfName(name).empty() ? name : "");  // `name` is set for a tool called by its own name
}

std::string misspelt(const CLI::App& program, const std::vector<std::string>& args) {
  const CLI::App* command = commandOf(program, args);
  if (!command && !args.empty() && args[0][0] != '-') {
    std::string list;
    for (const std::string& known : names(program))
      if (!isInner(known)) list += (list.empty() ? "" : ", ") + known;
    return fmt::format("there is no command '{}'{} Commands: {}. `crema help` says more", args[0],
                       suggestion(args[0], names(program), ""), list);
  }
  if (!command) return "";
  for (size_t i = 1; i < args.size(); ++i) {
    const std::string flag = args[i].substr(0, args[i].find('='));
    if (flag.size() < 3 || !flag.starts_with("--") || command->get_option_no_throw(flag)) continue;
    std::vector<std::string> known = glogFlags();
    for (const CLI::Option* option : command->get_options())
      for (const std::string& name : option->get_lnames()) known.push_back(name);
    return fmt::format("`{}` has no flag {}{} `crema {} --help` lists what there is", args[0], flag.substr(1),
                       suggestion(flag.substr(2), known, "-"), args[0]);
  }
  return "";
}

std::string flagMeant(const CLI::App& program, const std::vector<std::string>& args) {
  const CLI::App* command = commandOf(program, args);
  if (!command || !command->get_options([](const auto* o) { return o->get_positional(); }).empty()) return "";
  for (const CLI::Option* option : command->get_options()) {
    const bool given = std::any_of(args.begin(), args.end(), [&](const std::string& arg) {
      return option->check_name(arg.substr(0, arg.find('=')));
    });
    if (!option->get_required() || given) continue;
    for (size_t i = 1; i < args.size(); ++i)
      if (args[i][0] != '-' && (!args[i - 1].starts_with("--") || args[i - 1].find('=') != std::string::npos))
        return fmt::format(" did you mean -{} {}?", option->get_lnames()[0], args[i]);
  }
  return "";
}

}  // namespace crema::cli
