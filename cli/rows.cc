// crema rows: the records [first, last) of a database, for a host program that wants them itself.
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/job_io.h"
#include "data/source.h"

namespace crema::cli {
namespace {

constexpr size_t kSendBytes = size_t{1} << 20;

// Pixels side by side, as hosts have them.
std::string interleaved(const caffe::Datum& d) {
  const auto channels = static_cast<size_t>(d.channels());
  if (channels <= 1 || d.data().size() % channels) return d.data();
  const size_t plane = d.data().size() / channels;
  std::string out(d.data().size(), '\0');
  for (size_t c = 0; c < channels; ++c)
    for (size_t i = 0; i < plane; ++i) out[i * channels + c] = d.data()[c * plane + i];
  return out;
}

void put(const Record& record, const RecordSource& source, wire::Event::Record* out) {
  caffe::Datum d;
  if (!d.ParseFromArray(record.value.data(), static_cast<int>(record.value.size())))
    badData("record '{}' of {} is no Caffe Datum ({} bytes)", record.key, source.describe(), record.value.size());
  if (d.float_data_size())
    badData("record '{}' of {} holds floats; rows of images hold bytes: train on the database itself", record.key,
            source.describe());
  out->set_id(std::string(record.key));
  out->set_label(d.label());
  out->set_channels(d.channels()), out->set_height(d.height()), out->set_width(d.width());
  out->set_encoded(d.encoded());
  out->set_data(d.encoded() ? d.data() : interleaved(d));
}

void sendRows(const wire::Job& job, const Interrupt& interrupt) {
  const auto source = openSource(caffe::DataParameter::LMDB, job.test_source());
  const int64_t last = job.last() < 0 ? source->size() : std::min(job.last(), source->size());
  wire::Event event;
  size_t bytes = 0;
  for (int64_t i = job.first(); i < last; ++i) {
    put(source->read(i), *source, event.mutable_records()->add_record());
    bytes += event.records().record(event.records().record_size() - 1).data().size();
    if (bytes < kSendBytes && i + 1 < last) continue;
    interrupt.check();
    writeDelimited(STDOUT_FILENO, event);
    event.Clear();
    bytes = 0;
  }
}

int rows() {
  setLogLevel(LogLevel::kWarning);
  const wire::Job job = readJob(STDIN_FILENO);
  static Interrupt& interrupt = *new Interrupt;  // never freed: the stdin watcher may outlive this call
  exitWhenStdinEnds(interrupt);
  try {
    sendRows(job, interrupt);
  } catch (const Error& e) {
    wire::Event failed;
    failed.mutable_failed()->set_story(e.what());
    failed.mutable_failed()->set_kind(name(e.kind()));
    writeDelimited(STDOUT_FILENO, failed);
    throw;
  }
  ::_exit(0);
}

}  // namespace

void addRows(CLI::App& program, Run& chosen) {
  addCommand(
      program, "rows", "records of a database as rows; started by a host program",
      [](CLI::App& app) -> Run {
        auto job = std::make_shared<std::string>("-");
        app.add_option("--job", *job, "- : read one delimited Job (proto/wire.proto) from stdin")
            ->capture_default_str();
        return [job] { return rows(); };
      },
      chosen);
}

}  // namespace crema::cli
