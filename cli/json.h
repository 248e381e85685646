// One JSON document, written from front to back; commands with -json print nothing else on stdout.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace crema::cli {

class Json {
 public:
  Json() { open('{'); }
  // `name` is a field's in an object, "" in an array.
  void object(std::string_view name = "") { key(name), open('{'); }
  void array(std::string_view name = "") { key(name), open('['); }
  void end();  // closes the innermost object or array
  void text(std::string_view name, std::string_view value);
  // The shortest text that reads back as the same value; null for NaN and infinity.
  void number(std::string_view name, double value);
  void number(std::string_view name, float value);
  void integer(std::string_view name, int64_t value);
  void null(std::string_view name);
  void print();  // closes all that is open and writes the document and a newline to stdout

 private:
  void open(char bracket);
  void key(std::string_view name);
  void quote(std::string_view text);

  std::string out_, closing_;
  bool first_ = true;
};

}  // namespace crema::cli
