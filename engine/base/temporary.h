// Where something is written before it gets its own name: PATH.crema-tmp-HOST-XXXXXXXXXXXXXXXX, a file or a folder. As
// long as its writer lives it is locked (flock); what is not locked was left behind by one that was killed. A pid in
// the name would not tell who it is: containers and hosts that share a folder have equal pids. The name is one that
// nobody chooses by hand, as leftovers are removed by name.
#pragma once
#include <functional>
#include <string>
#include <string_view>

namespace crema {

[[nodiscard]] std::string temporaryName(const std::string& path);  // another one every time

// Locks what fd has open under that name. false: another process removed it before it was locked; make another. A file
// system without locks gives true, and nothing there is ever removed.
[[nodiscard]] bool holdTemporary(int fd, const std::string& name);

// Removes and logs what killed writers of `path` left behind: of this host what is not locked; of another host (whose
// locks a network file system may not show) files that have not changed for an hour, and no folders, as their last
// change is not known. ours: which other names that begin with `path` count as well, by the rest of the name; none by
// default.
void clearLeftovers(const std::string& path, const std::function<bool(std::string_view rest)>& ours = nullptr);

// From here on SIGINT and SIGTERM first remove unfinished folders and then end the program by the signal's default
// action, so that a shell's loop ends too. (A signal that is ignored stays so.) Call it before other threads are
// started.
void clearOnSignals();

// A folder that is made to be filled, and then renamed.
class [[nodiscard]] PartFolder {
 public:
  // Clears leftovers first. kIo when there is something at `path` other than an empty folder, or it cannot be made.
  explicit PartFolder(const std::string& path);
  ~PartFolder();  // removes it unless finish() has renamed it
  PartFolder(const PartFolder&) = delete;
  const std::string& name() const { return name_; }
  void finish(const char* what);  // renames it to path; kIo names `what` and where it is kept when that is refused

 private:
  std::string path_, name_;
  int fd_ = -1;
};

}  // namespace crema
