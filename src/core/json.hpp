/// core: JSON, as far as the library keeps its own records in it.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "longshore/core/checked.hpp"

namespace longshore {

/// As JSON has it, in quotation marks. Text is UTF-8.
std::string json_quoted(std::string_view text);

/// Reads JSON from its beginning to its end, value by value, for who knows what must come. All throw `Error(argument)`
/// that says at which character something else is. The text is the caller's.
class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}
  /// Calls `value` with every key; it reads the key's value, or skips it.
  void object(const std::function<void(const std::string& key)>& value);
  void array(const std::function<void()>& item);
  std::string text();
  Index integer();
  double number();  ///< finite
  void skip();
  /// Throws where something is left.
  void end();

 private:
  [[noreturn]] void fail(const char* expected) const;
  char next();  ///< that is no blank; 0 at the end
  bool accept(char c);
  void expect(char c, const char* words);
  std::string_view word();
  unsigned hexadecimal();
  void enter();
  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace longshore
