#include "model/proto_io.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <exception>
#include <regex>

#include "base/error.h"
#include "base/file.h"
#include "base/nearest.h"
#include "base/text.h"
#include "caffe.pb.h"

namespace crema::model {
namespace {

class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  explicit FirstError(const std::string& name) : name_(name) {}
  void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string& message) override {
    if (count_++ == 0)
      first_ = line < 0 ? fmt::format("{}: {}", name_, message)
                        : fmt::format("{}:{}:{}: {}", name_, line + 1, column + 1, message);
  }
  int count() const { return count_; }
  const std::string& first() const { return first_; }

 private:
  const std::string& name_;
  std::string first_;
  int count_ = 0;
};

// For `Message type "M" has no field named "F"`: the field of M that F was meant to be, or where it may belong.
std::string fieldMeant(const google::protobuf::DescriptorPool& pool, const std::string& error) {
  static const std::regex kNames("Message type \"([^\"]+)\" has no field named \"([^\"]+)\"");
  std::smatch names;
  std::vector<std::string> fields;
  if (std::regex_search(error, names, kNames))
    if (const auto* type = pool.FindMessageTypeByName(names[1]))
      for (int i = 0; i < type->field_count(); ++i) fields.push_back(type->field(i)->name());
  const std::string meant = fields.empty() ? "" : didYouMean(names[2], fields);
  if (!meant.empty()) return meant;
  return "; check the spelling, or whether the field belongs to another message or to a fork of Caffe";
}

// For `Unknown enumeration value of "V" for field "F"`: the values of the fields F, as the message does not say whose.
std::string valuesOf(const google::protobuf::FileDescriptor& file, const std::string& error) {
  static const std::regex kField("for field \"([^\"]+)\"");
  std::smatch name;
  std::vector<std::string> values;
  const auto note = [&](const google::protobuf::FieldDescriptor* field) {
    if (!field || field->cpp_type() != field->CPPTYPE_ENUM) return;
    for (int i = 0; i < field->enum_type()->value_count(); ++i) {
      const std::string& value = field->enum_type()->value(i)->name();
      if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
    }
  };
  if (std::regex_search(error, name, kField))
    for (int i = 0; i < file.message_type_count(); ++i)
      if (file.message_type(i)->name().rfind("V1", 0) != 0) note(file.message_type(i)->FindFieldByName(name[1]));
  return values.empty() ? "; use one of the field's named values" : "; use one of " + joined(values);
}

// The remedy for the parser's most frequent messages.
std::string remedyFor(const std::string& error, const google::protobuf::FileDescriptor& file) {
  if (error.find("has no field named") != std::string::npos) return fieldMeant(*file.pool(), error);
  if (error.find("Unknown enumeration value") != std::string::npos) return valuesOf(file, error);
  if (error.find("Expected integer, got: -") != std::string::npos) return "; this field takes no negative number";
  if (error.find("Expected") != std::string::npos || error.find("expected") != std::string::npos)
    return "; look for a missing brace, colon or quote at or before it";
  if (error.find("missing required fields") != std::string::npos) return "; add them";
  return "";
}

bool looksLikeText(std::string_view bytes) {
  return !bytes.empty() && std::all_of(bytes.begin(), bytes.begin() + std::min<size_t>(bytes.size(), 512), [](char c) {
    return (c >= ' ' && c <= '~') || c == '\n' || c == '\r' || c == '\t';
  });
}

// What a file is that was given in place of a prototxt, and where it belongs; "" when it is text or unknown.
std::string whatElse(std::string_view bytes, const std::string& path) {
  if (bytes.starts_with("\x89HDF")) return "an HDF5 file; weights go with -weights, a solver's state with -snapshot";
  if (bytes.starts_with("\x89PNG") || bytes.starts_with("\xff\xd8\xff")) return "a picture";
  const bool control = std::any_of(bytes.begin(), bytes.begin() + std::min<size_t>(bytes.size(), 4096),
                                   [](char c) { return c >= 0 && c < ' ' && !std::strchr("\n\r\t\f\v", c ? c : 1); });
  if (!control) return "";
  if (path.ends_with(".onnx")) return "an ONNX model; `crema import` makes a prototxt and a .caffemodel of one";
  caffe::NetParameter net;
  if (net.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) && net.layer_size() + net.layers_size() > 0)
    return "a trained model (.caffemodel); it goes with -weights, and the prototxt of its net with -model";
  caffe::SolverState state;
  if (state.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) && state.has_iter() &&
      state.history_size() > 0)
    return "the state of a solver (.solverstate); it goes with -snapshot, and the prototxt of its solver with -solver";
  caffe::BlobProto blob;
  if (blob.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) && blob.data_size() > 0)
    return "a blob (.binaryproto), such as a mean; it is named in mean_file, or with -mean";
  return "";  // the parser's own message has the position
}

// Bytes as protobuf writes them. It is not made for exceptions, so one of write() waits for its end.
struct Pieces : public google::protobuf::io::CopyingOutputStream {
  explicit Pieces(const WriteSome& to) : write(to) {}
  bool Write(const void* bytes, int count) override {
    try {
      write({static_cast<const char*>(bytes), static_cast<size_t>(count)});
      return true;
    } catch (...) {
      failed = std::current_exception();
      return false;
    }
  }
  const WriteSome& write;
  std::exception_ptr failed;
};

}  // namespace

void parseTextInto(std::string_view text, const std::string& name, google::protobuf::Message* message) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // the byte order mark of UTF-8
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
    invalid("{} is text in UTF-16; save it as UTF-8", name);
  if (const std::string other = whatElse(text, name); !other.empty()) invalid("{} is no prototxt but {}", name, other);
  google::protobuf::TextFormat::Parser parser;
  FirstError errors(name);
  parser.RecordErrorsTo(&errors);
  google::protobuf::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  if (parser.Parse(&stream, message)) return;
  std::string first = errors.count() ? errors.first() : name + ": cannot be read as text";
  while (first.ends_with('.')) first.pop_back();
  invalid("{}{}{}", first, remedyFor(first, *message->GetDescriptor()->file()),
          errors.count() > 1 ? fmt::format(" ({} more mistakes follow)", errors.count() - 1) : "");
}

void parseBinaryInto(std::string_view bytes, const std::string& name, google::protobuf::Message* message) {
  if (bytes.size() > INT_MAX)
    badData("{} has {} bytes; a protobuf message has at most {}", name, bytes.size(), INT_MAX);
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  google::protobuf::io::CodedInputStream in(&stream);
  in.SetTotalBytesLimit(INT_MAX);
  if (!message->ParseFromCodedStream(&in) || !in.ConsumedEntireMessage()) {
    if (looksLikeText(bytes))
      badData("{} is text, where a binary {} is wanted; is it a prototxt?", name,
              message->GetDescriptor()->full_name());
    badData("{} is damaged or no {} at all ({} bytes); take it anew from where it was made", name,
            message->GetDescriptor()->full_name(), bytes.size());
  }
}

std::string toText(const google::protobuf::Message& message) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(message, &text);
  return text;
}

void writeBinary(const std::string& path, const google::protobuf::Message& message) {
  const size_t size = message.ByteSizeLong();
  if (size > INT_MAX) ioError("cannot write {}: {} bytes, and a protobuf message has at most {}", path, size, INT_MAX);
  writeFileAtomically(path, size, [&](const WriteSome& write) {
    Pieces pieces(write);
    google::protobuf::io::CopyingOutputStreamAdaptor stream(&pieces, 1 << 20);
    const bool whole = message.SerializeToZeroCopyStream(&stream) && stream.Flush();
    if (pieces.failed) std::rethrow_exception(pieces.failed);
    if (!whole) internal("a {} is not whole", message.GetDescriptor()->full_name());
  });
}

void readTextInto(const std::string& path, google::protobuf::Message* message) {
  parseTextInto(readFile(path), path, message);
}
void readBinaryInto(const std::string& path, google::protobuf::Message* message) {
  parseBinaryInto(readFile(path), path, message);
}

}  // namespace crema::model
