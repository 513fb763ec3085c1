#include "core/json.hpp"

#include <charconv>
#include <cmath>

#include "longshore/core/error.hpp"

namespace longshore {

namespace {

constexpr int most_depth = 100;
constexpr std::string_view plain_escapes = "\"\\/bfnrt", plain_values = "\"\\/\b\f\n\r\t";

void add_utf8(std::string& out, unsigned code) {
  if (code < 0x80) {
    out += char(code);
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  out += char((0xFF00u >> (more + 1) & 0xFFu) | code >> 6 * more);
  for (int k = more; k-- > 0;) out += char(0x80u | (code >> 6 * k & 0x3Fu));
}

}  // namespace

std::string json_quoted(std::string_view text) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') out += '\\';
    if (byte >= 0x20)
      out += c;
    else
      (out += "\\u00") += digits[byte >> 4], out += digits[byte & 15];
  }
  return out + '"';
}

void JsonReader::fail(const char* expected) const {
  throw Error(ErrorKind::argument, std::string("expected ") + expected + " at character " + std::to_string(at_));
}

char JsonReader::next() {
  while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  return at_ < text_.size() ? text_[at_] : '\0';
}

bool JsonReader::accept(char c) {
  const bool is = next() == c && at_ < text_.size();
  at_ += is;
  return is;
}

void JsonReader::expect(char c, const char* words) {
  if (!accept(c)) fail(words);
}

void JsonReader::enter() {
  if (++depth_ > most_depth) fail("less nesting");
}

void JsonReader::object(const std::function<void(const std::string& key)>& value) {
  expect('{', "an object");
  enter();
  if (!accept('}')) {
    do {
      const auto key = text();
      expect(':', "':'");
      value(key);
    } while (accept(','));
    expect('}', "',' or '}'");
  }
  --depth_;
}

void JsonReader::array(const std::function<void()>& item) {
  expect('[', "a list");
  enter();
  if (!accept(']')) {
    do item();
    while (accept(','));
    expect(']', "',' or ']'");
  }
  --depth_;
}

unsigned JsonReader::hexadecimal() {
  unsigned code = 0;
  const auto* const begin = text_.data() + at_;
  if (text_.size() - at_ < 4 || std::from_chars(begin, begin + 4, code, 16).ptr != begin + 4)
    fail("four hexadecimal digits");
  at_ += 4;
  return code;
}

std::string JsonReader::text() {
  expect('"', "a text");
  std::string out;
  while (true) {
    if (at_ >= text_.size() || static_cast<unsigned char>(text_[at_]) < 0x20) fail("the end of a text");
    const char c = text_[at_++];
    if (c == '"') return out;
    if (c != '\\') {
      out += c;
      continue;
    }
    const char escape = at_ < text_.size() ? text_[at_++] : '\0';
    if (escape == 'u') {
      unsigned code = hexadecimal();
      if (code >= 0xD800 && code < 0xDC00 && text_.substr(at_, 2) == "\\u") {
        at_ += 2;
        const unsigned low = hexadecimal();
        code = low >= 0xDC00 && low < 0xE000 ? 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00) : 0xD800;
      }
      if (code >= 0xD800 && code < 0xE000) fail("both halves of a character");
      add_utf8(out, code);
      continue;
    }
    const auto known = escape == '\0' ? std::string_view::npos : plain_escapes.find(escape);
    if (known == std::string_view::npos) fail("an escape");
    out += plain_values[known];
  }
}

std::string_view JsonReader::word() {
  next();
  const std::size_t end = text_.find_first_of(" \t\r\n,:]}[{\"", at_);
  return text_.substr(at_, end - at_);
}

Index JsonReader::integer() {
  const auto from = word();
  Index value = 0;
  const auto [end, error] = std::from_chars(from.data(), from.data() + from.size(), value);
  if (from.empty() || error != std::errc() || end != from.data() + from.size()) fail("a 64-bit integer");
  at_ += from.size();
  return value;
}

double JsonReader::number() {
  const auto from = word();
  double value = 0;
  const auto [end, error] = std::from_chars(from.data(), from.data() + from.size(), value);
  if (from.empty() || error != std::errc() || end != from.data() + from.size() || !std::isfinite(value))
    fail("a finite number");
  at_ += from.size();
  return value;
}

void JsonReader::skip() {
  switch (next()) {
    case '{': return object([this](const std::string&) { skip(); });
    case '[': return array([this] { skip(); });
    case '"': return static_cast<void>(text());
    default: break;
  }
  const auto value = word();
  if (value == "true" || value == "false" || value == "null")
    at_ += value.size();
  else
    number();
}

void JsonReader::end() {
  if (next() != '\0' || at_ < text_.size()) fail("the end");
}

}  // namespace longshore
