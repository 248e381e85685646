// Where something is written before it gets its own name: PATH.crema-tmp-HOST-XXXXXXXXXXXXXXXX, a file or a folder. As
// long as its writer lives it is locked (flock); what is not locked was left behind by one that was killed. Not the
// pid: containers and hosts that share a folder number their processes alike. The name is one that nobody gives by
// hand, as what bears it is removed.
#pragma once
#include <functional>
#include <string>
#include <string_view>

namespace crema {

std::string temporaryName(const std::string& path);  // another one every time

// Locks what fd has open under that name. false: somebody cleared it away before the lock was there; make another. A
// file system without locks gives true, and nothing there is ever cleared away.
bool holdTemporary(int fd, const std::string& name);

// Removes what was left behind by writers of `path`, and says so: what nobody holds, of this host; and files of another
// one (whose locks a network file system may not show) when they have not changed for an hour. Folders of another host
// stay: nothing tells when they were written to. ours: of what begins with `path`, whose rest counts; none by default.
void clearLeftovers(const std::string& path, const std::function<bool(std::string_view rest)>& ours = nullptr);

// From here on SIGINT and SIGTERM take away what is half made, wherever the program is, and then end it as if nobody
// had waited for them: a shell's loop ends too. (A signal that is ignored stays so.) Before other threads are started.
void clearOnSignals();

// A folder that is made to be filled, and then renamed.
class PartFolder {
 public:
  // Clears leftovers first. kIo when there is something at `path` other than an empty folder, or it cannot be made.
  explicit PartFolder(const std::string& path);
  ~PartFolder();  // removes it, unless it has got its name
  PartFolder(const PartFolder&) = delete;
  const std::string& name() const { return name_; }
  void finish(const char* what);  // renames it to path; kIo names `what` and where it is kept when that is refused

 private:
  std::string path_, name_;
  int fd_ = -1;
};

}  // namespace crema
