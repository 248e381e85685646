// Messages in files: prototxt (text) and binaryproto, with errors that name the position.
//
// Text: the first mistake as `FILE:line:column: what`, counted from 1, and how many more there are; an unknown field is
// a mistake. Binary: unknown fields are skipped; up to 2147483647 bytes. Writing is whole or not at all (base/file.h).
#pragma once
#include <google/protobuf/message.h>

#include <string>
#include <string_view>

namespace crema::model {

void parseTextInto(std::string_view text, const std::string& name, google::protobuf::Message* message);     // kInvalid
void parseBinaryInto(std::string_view bytes, const std::string& name, google::protobuf::Message* message);  // kData
std::string toText(const google::protobuf::Message& message);
void writeBinary(const std::string& path, const google::protobuf::Message& message);  // kIo
void readTextInto(const std::string& path, google::protobuf::Message* message);
void readBinaryInto(const std::string& path, google::protobuf::Message* message);

template <class M>
M parseText(std::string_view text, const std::string& name) {
  M m;
  parseTextInto(text, name, &m);
  return m;
}
template <class M>
M readText(const std::string& path) {
  M m;
  readTextInto(path, &m);
  return m;
}
template <class M>
M readBinary(const std::string& path) {
  M m;
  readBinaryInto(path, &m);
  return m;
}

}  // namespace crema::model
