// Where something is written before it gets its own name: PATH.tmp-HOST-XXXXXXXX, a file, or PATH.part-HOST-XXXXXXXX, a
// folder. As long as its writer lives it is locked (flock); what is not locked was left behind by one that was killed.
// Not the pid: containers and hosts that share a folder number their processes alike.
#pragma once
#include <string>

namespace crema {

std::string temporaryName(const std::string& path, const char* kind);  // "tmp", "part"; another one every time

// Locks what fd has open under that name. false: somebody cleared it away before the lock was there; make another. A
// file system without locks gives true, and nothing there is ever cleared away.
bool holdTemporary(int fd, const std::string& name);

// Removes what was left behind beside `path` under names that begin with it, and says so: what nobody holds, of this
// host, or of another one (whose locks a network file system may not show) when it has not changed for an hour.
void clearLeftovers(const std::string& path);

// A folder that is made to be filled, and then renamed.
class PartFolder {
 public:
  explicit PartFolder(const std::string& path);  // clears leftovers first; kIo when it cannot be made
  ~PartFolder();                                 // removes it, unless it has got its name
  PartFolder(const PartFolder&) = delete;
  const std::string& name() const { return name_; }
  void finish(const char* what);  // renames it to path; kIo names `what`

 private:
  std::string path_, name_;
  int fd_ = -1;
};

}  // namespace crema
