#include "host/rows.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "data/lmdb_pages.h"
#include "data/source.h"
#include "host/job_io.h"
#include "host/pulse.h"
#include "host/stdin_reader.h"

namespace crema::host {
namespace {

constexpr size_t kSendBytes = size_t{1} << 20;

// Pixels from channel, height, width (Datum) to height, width, channel.
std::string interleaved(const caffe::Datum& d) {
  const auto channels = static_cast<size_t>(d.channels());
  if (channels <= 1 || d.data().size() % channels) return d.data();
  const size_t plane = d.data().size() / channels;
  std::string out(d.data().size(), '\0');
  for (size_t c = 0; c < channels; ++c)
    for (size_t i = 0; i < plane; ++i) out[i * channels + c] = d.data()[c * plane + i];
  return out;
}

void put(const data::Record& record, const data::RecordSource& source, wire::Event::Record* out) {
  caffe::Datum d;
  if (!d.ParseFromArray(record.value.data(), static_cast<int>(record.value.size())))
    badData("record '{}' of {} is no Caffe Datum ({} bytes)", printable(record.key), source.describe(),
            record.value.size());
  if (d.float_data_size())
    badData("record '{}' of {} holds floats; rows of images hold bytes: train on the database itself",
            printable(record.key), source.describe());
  out->set_id(std::string(record.key));
  out->set_label(d.label());
  out->set_channels(d.channels()), out->set_height(d.height()), out->set_width(d.width());
  out->set_encoded(d.encoded());
  out->set_data(d.encoded() ? d.data() : interleaved(d));
}

// read: counts them.
void sendRows(const wire::Job& job, const worker::HostRows& host, const Interrupt& interrupt,
              std::atomic<int64_t>& read) {
  const auto source =
      host.testRecords ? host.testRecords : data::openSource(caffe::DataParameter::LMDB, job.test_source());
  const int64_t last = job.last() < 0 ? source->size() : std::min(job.last(), source->size());
  wire::Event event;
  size_t bytes = 0;
  for (int64_t i = job.first(); i < last; ++i) {
    put(source->read(i), *source, event.mutable_records()->add_record());
    ++read;
    bytes += event.records().record(event.records().record_size() - 1).data().size();
    if (bytes < kSendBytes && i + 1 < last) continue;
    interrupt.check();
    toHost(event);
    event.Clear();
    bytes = 0;
  }
}

// Sends the index of the Job's file, which the host puts into the Jobs of the processes that read parts of it.
void sendIndex(const wire::Job& job, const worker::HostRows& host, const Interrupt&, std::atomic<int64_t>&) {
  if (!host.testFile) invalid("the Job names no file to index");
  const data::LmdbIndex index = data::lmdbIndex(*host.testFile, job.test_file().description());
  wire::Event event;
  auto* out = event.mutable_index();
  out->set_page_size(index.pageSize), out->set_pages(index.pages);
  out->mutable_leaf()->Assign(index.leaf.begin(), index.leaf.end());
  for (size_t i = 0; i < index.leaf.size(); ++i)
    out->add_count(static_cast<uint32_t>(index.first[i + 1] - index.first[i]));
  toHost(event);
}

int serve(void (*send)(const wire::Job&, const worker::HostRows&, const Interrupt&, std::atomic<int64_t>& read)) {
  setLogLevel(LogLevel::kWarning);
  const wire::Job job = readJob(STDIN_FILENO);
  static Interrupt& interrupt = *new Interrupt;  // never freed: the stdin watcher may outlive this call
  static worker::HostRows& host = *new worker::HostRows(job, true, toHost, &interrupt);  // nor this
  exitWhenStdinEnds(interrupt, &host);
  reportingFailure(toHost, [&] {
    std::atomic<int64_t> read{0};
    const HostPulse pulse(job, [&] { return read + host.activity.arrived; });
    send(job, host, interrupt, read);
  });
  exitBesideStdin();
}

}  // namespace

int serveRows() { return serve(sendRows); }

int serveIndex() { return serve(sendIndex); }

}  // namespace crema::host
