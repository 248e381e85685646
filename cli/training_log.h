// Reads the log of `caffe train`, written by Caffe or Crema, as tables.
//
// A line counts from the first that names an iteration on, and only with glog's prefix (Immdd hh:mm:ss.uuuuuu, or
// Iyyyymmdd as newer glogs write). Seconds begin at the first line with "Solving". A row is an iteration's outputs, in
// their order in the log; with several test nets each gets a row of its own. The first row comes before the first "lr =
// " line and takes the rate of the second.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace crema::cli {

struct LogRow {
  double iteration = 0, seconds = 0, rate = 0;  // rate: NaN when the log has none
  std::vector<std::pair<std::string, double>> outputs;
};

struct TrainingLog {
  std::vector<LogRow> train, test;
};

TrainingLog readTrainingLog(const std::string& path);  // kData when it has no line "Solving"
// NumIters, Seconds, LearningRate and the outputs of the first row, as tools/extra/parse_log.py of Caffe writes them.
std::string toCsv(const std::vector<LogRow>& rows, const std::string& delimiter);

}  // namespace crema::cli
