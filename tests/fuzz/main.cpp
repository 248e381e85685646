// crema_fuzz FORMAT|all COUNT [SEED [FIRST]]: reads COUNT damaged inputs (shared out among the formats). The process
// ends with 1 at an input that crashes, takes more than ten seconds or throws anything but Error, and says which; with
// COUNT 1 and FIRST that one input is read again, and kept as crema_fuzz.input. Built with sanitizers (cmake --preset
// dev) it finds far more.
#include <google/protobuf/stubs/logging.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/log.h"
#include "fuzz/formats.h"
#include "fuzz/mutate.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
extern "C" const char* __ubsan_default_options() { return "abort_on_error=1"; }
extern "C" const char* __asan_default_options() {
  return "max_allocation_size_mb=2000:abort_on_error=1:handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0";
}
#endif

namespace {

char whatRuns[200];

void told() { [[maybe_unused]] const auto n = ::write(STDERR_FILENO, whatRuns, std::strlen(whatRuns)); }

void ended(int signal) {
  told();
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

constexpr unsigned kSeconds = 10;

bool one(const crema::fuzz::Format& f, crema::fuzz::Mutator& mutator, uint64_t seed, uint64_t number) {
  std::snprintf(whatRuns, sizeof whatRuns, "\ncrema_fuzz: at this input: crema_fuzz %s 1 %llu %llu\n", f.name.c_str(),
                static_cast<unsigned long long>(seed), static_cast<unsigned long long>(number));
  const std::string bytes = mutator.input(number);
  ::alarm(kSeconds);
  try {
    f.read(bytes);
    ::alarm(0);
    return true;
  } catch (const crema::Error& e) {
    ::alarm(0);
    if (e.kind() == crema::ErrorKind::kInternal) std::fprintf(stderr, "%s\n", e.what()), told(), std::exit(1);
    return false;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    told();
    std::exit(1);
  }
}

// Else damage would be sought in what is refused anyway.
void readUndamaged(const crema::fuzz::Format& f) {
  for (size_t i = 0; i < f.seeds.size(); ++i) {
    try {
      f.read(f.seeds[i]);
    } catch (const std::exception& e) {
      if (!f.ends.empty() && std::strstr(e.what(), f.ends.c_str())) continue;
      std::fprintf(stderr, "crema_fuzz: %s: example %zu is refused without any damage: %s\n", f.name.c_str(), i,
                   e.what());
      std::exit(1);
    }
  }
}

void run(const crema::fuzz::Format& f, uint64_t count, uint64_t seed, uint64_t first) {
  crema::fuzz::Mutator mutator(f.seeds, f.words, seed);
  const auto start = std::chrono::steady_clock::now();
  uint64_t accepted = 0;
  readUndamaged(f);
  for (uint64_t number = first; number < first + count; ++number) accepted += one(f, mutator, seed, number);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("%-12s %8llu inputs, %7llu of them read to the end, %.0f s\n", f.name.c_str(),
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(accepted), seconds);
  std::fflush(stdout);  // a long run is watched
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return std::fprintf(stderr, "crema_fuzz FORMAT|all COUNT [SEED [FIRST]]\n"), 2;
  const std::string wanted = argv[1];
  const uint64_t count = std::strtoull(argv[2], nullptr, 10), seed = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1,
                 first = argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 0;
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGALRM}) ::signal(signal, ended);
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_set_death_callback(told);
#endif
  crema::setLogLevel(crema::LogLevel::kError);
  google::protobuf::SetLogHandler(nullptr);
  std::string folder = (std::filesystem::temp_directory_path() / "crema_fuzz.XXXXXX").string();
  if (!::mkdtemp(folder.data())) return std::perror("crema_fuzz"), 1;
  const auto all = crema::fuzz::formats(folder);
  bool found = false;
  for (const auto& f : all) {
    if (wanted != "all" && wanted != f.name) continue;
    found = true;
    const uint64_t share = wanted == "all" ? count / all.size() : count;
    if (argc > 4 && count == 1)
      std::ofstream("crema_fuzz.input", std::ios::binary) << crema::fuzz::Mutator(f.seeds, f.words, seed).input(first);
    run(f, std::max<uint64_t>(1, share / static_cast<uint64_t>(f.cost)), seed, first);
  }
  std::filesystem::remove_all(folder);
  if (!found) std::fprintf(stderr, "there is no format '%s'\n", wanted.c_str());
  return found ? 0 : 2;
}
