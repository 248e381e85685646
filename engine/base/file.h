// Whole files, and files that appear whole or not at all.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace crema {

std::string readFile(const std::string& path);  // ioError names the path and why

// Through base/new_file.h: whole at `path` or not at all, even if this process is killed. On any error nothing is left,
// `path` is untouched, and ioError names the path, the cause (a full disk included) and the remedy. Symbolic links are
// followed, dangling ones too; devices, pipes and open descriptors (/dev/stdout) are written directly.
void writeFileAtomically(const std::string& path, std::string_view bytes, bool unnamed = true);
// The same for `size` bytes that produce() gives to its argument piece by piece, so that they are never all in memory.
using WriteSome = std::function<void(std::string_view piece)>;
void writeFileAtomically(const std::string& path, uint64_t size, const std::function<void(const WriteSome&)>& produce,
                         bool unnamed = true);

bool fileExists(const std::string& path);
bool isDirectory(const std::string& path);
void refuseFolder(const std::string& path);  // kIo where a file of this name is to be written, and a folder has it
std::string parentDirectory(const std::string& path);  // "." when there is none
std::string joinPath(const std::string& folder,
                     const std::string& name);  // name when it is absolute or folder is empty
// A path of a prototxt: as written when it exists, else in `folder` (the prototxt's) when it exists there, else as
// written.
std::string resolvePath(const std::string& path, const std::string& folder);
// What Hadoop's `file:` URI names on this machine (file:x, file:/x, file:///x, file://host/x), as Storage.localPath in
// Scala; anything else as it is.
std::string localPath(const std::string& uri);
// Throws ioError unless a file could be created in the folder of `path` (creates and removes one, as Caffe does at
// start).
void checkWritable(const std::string& path);
std::string remedyFor(int code);  // what to do about an errno of a file: "check the permissions"

}  // namespace crema
