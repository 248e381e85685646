#include "cli/training_log.h"

#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <regex>
#include <sstream>

#include "base/error.h"
#include "base/file.h"

namespace crema::cli {
namespace {

using Match = std::cmatch;

// Parses glog's times to microseconds since a fixed day. Glog's prefix has no year: one is added where a log goes from
// December to January.
class Clock {
 public:
  std::optional<double> seconds(const std::string& line) {
    static const std::regex prefix(R"(^[IWEF](\d{4})?(\d{2})(\d{2}) (\d{2}):(\d{2}):(\d{2})\.(\d{1,6}))");
    std::smatch m;
    if (!std::regex_search(line, m, prefix)) return std::nullopt;
    const auto number = [&](int i) { return std::stoi(m[static_cast<size_t>(i)].str()); };
    const int month = number(2);
    if (month < month_) ++year_;
    month_ = month;
    using namespace std::chrono;
    const auto day = sys_days(year(m[1].matched ? number(1) : year_) / month / number(3));
    return static_cast<double>(day.time_since_epoch().count()) * 86400 + number(4) * 3600 + number(5) * 60 + number(6) +
           std::stod("0." + m[7].str());
  }

 private:
  int month_ = 0, year_ = 2024;  // a leap year, so that 29 February is valid
};

class Table {
 public:
  explicit Table(const char* kind) : output_(std::string(kind) + R"( net output #(\d+): (\S+) = (\S+))") {}
  void read(const std::string& line, double iteration, double seconds, double rate) {
    std::smatch m;
    if (!std::regex_search(line, m, output_)) return;
    const std::string name = m[2];
    const bool again = !rows_.empty() && has(rows_.back(), name);
    if (rows_.empty() || rows_.back().iteration != iteration || again) rows_.push_back({iteration, seconds, rate, {}});
    rows_.back().outputs.emplace_back(name, std::strtod(m[3].str().c_str(), nullptr));
  }
  std::vector<LogRow> finish() {
    if (rows_.size() > 1 && std::isnan(rows_[0].rate)) rows_[0].rate = rows_[1].rate;
    return std::move(rows_);
  }

 private:
  static bool has(const LogRow& row, const std::string& name) {
    for (const auto& [known, value] : row.outputs)
      if (known == name) return true;
    return false;
  }
  std::regex output_;
  std::vector<LogRow> rows_;
};

// As Python writes a float: 100.0, 0.01, 1e-05, nan.
std::string number(double v) {
  const std::string text = fmt::format("{}", v);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

// A cell of CSV, quoted when it holds the delimiter.
std::string cell(const std::string& text, const std::string& delimiter) {
  return text.find(delimiter) == std::string::npos ? text : "\"" + text + "\"";
}

}  // namespace

TrainingLog readTrainingLog(const std::string& path) {
  static const std::regex iterations(R"(Iteration (\d+))"), rates(R"(lr = ([-+]?[0-9]*\.?[0-9]+([eE]?[-+]?[0-9]+)?))");
  std::istringstream in(readFile(path));
  Clock clock;
  Table train("Train"), test("Test");
  std::optional<double> start;
  double iteration = -1, rate = std::numeric_limits<double>::quiet_NaN();
  for (std::string line; std::getline(in, line);) {
    const auto seconds = clock.seconds(line);
    if (!start && seconds && line.find("Solving") != std::string::npos) start = seconds;
    std::smatch m;
    if (std::regex_search(line, m, iterations)) iteration = std::stod(m[1]);
    if (!start || !seconds || iteration < 0) continue;
    if (std::regex_search(line, m, rates)) rate = std::stod(m[1]);
    const double since = std::round((*seconds - *start) * 1e6) / 1e6;
    train.read(line, iteration, since, rate);
    test.read(line, iteration, since, rate);
  }
  if (!start) badData("{} has no line \"Solving\" with a time before it: it is not the log of a training run", path);
  return {train.finish(), test.finish()};
}

std::string toCsv(const std::vector<LogRow>& rows, const std::string& delimiter) {
  std::string text = fmt::format("NumIters{0}Seconds{0}LearningRate", delimiter);
  if (rows.empty()) return text + "\r\n";
  for (const auto& [name, value] : rows[0].outputs) text += delimiter + cell(name, delimiter);
  text += "\r\n";
  for (const LogRow& r : rows) {
    text += number(r.iteration) + delimiter + number(r.seconds) + delimiter + number(r.rate);
    for (const auto& [name, none] : rows[0].outputs) {
      text += delimiter;
      for (const auto& [mine, value] : r.outputs)
        if (mine == name) text += number(value);
    }
    text += "\r\n";
  }
  return text;
}

}  // namespace crema::cli
