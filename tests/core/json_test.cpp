#include "core/json.hpp"

#include <gtest/gtest.h>

#include <map>

#include "support/expect_error.hpp"

namespace longshore::test {
namespace {

TEST(Json, what_is_quoted_is_read_again) {
  for (const std::string text : {"", "plain", "a \"b\" \\c/", "line\nand\ttab\x01", "Größe, 長さ, 𝄞"}) {
    const auto quoted = json_quoted(text);
    JsonReader json(quoted);
    EXPECT_EQ(json.text(), text);
    json.end();
  }
  JsonReader escaped(R"("\u00e9\u20AC\ud834\udd1e\/\b\f\n\r\t\"\\")");
  EXPECT_EQ(escaped.text(), "é€𝄞/\b\f\n\r\t\"\\");
}

TEST(Json, values_are_read_or_skipped) {
  JsonReader json(
      R"( {"n": -17 , "x":2.5e-3, "skip": [1, {"a": [true, false, null], "b": "]"}, []], "list": [1,2] } )");
  std::map<std::string, double> found;
  json.object([&](const std::string& key) {
    if (key == "n")
      found[key] = double(json.integer());
    else if (key == "x")
      found[key] = json.number();
    else if (key == "list")
      json.array([&] { found[key] += json.number(); });
    else
      json.skip();
  });
  json.end();
  EXPECT_EQ(found, (std::map<std::string, double>{{"n", -17}, {"x", 2.5e-3}, {"list", 3}}));
}

TEST(Json, what_is_none_is_refused) {
  const auto refused = [](const std::string& text, const std::string& words) {
    expect_error(ErrorKind::argument, {words}, [&] {
      JsonReader json(text);
      json.skip();
      json.end();
    });
  };
  refused("", "a finite number at character 0");
  refused("{", "a text");
  refused("{\"a\" 1}", "':' at character 5");
  refused("{\"a\": 1", "',' or '}'");
  refused("[1 2]", "',' or ']'");
  refused("[1] 2", "the end at character 4");
  refused("\"a", "the end of a text");
  refused("\"a\nb\"", "the end of a text");
  refused("\"\\x\"", "an escape");
  refused("\"\\u12g4\"", "hexadecimal");
  refused("\"\\ud800\"", "both halves");
  refused("\"\\ud800\\u0041\"", "both halves");
  refused("\"\\udc00\"", "both halves");
  refused(std::string(100'000, '['), "less nesting");
  for (const char* number : {"nan", "inf", "Infinity", "NaN", "1e999", "0x10", "1.5.2", "+1", "truth"})
    refused(number, "a finite number");
  for (const char* number : {"1.5", "99999999999999999999", "true", "\"1\"", "1e3", ""})
    expect_error(ErrorKind::argument, {"a 64-bit integer"}, [&] { JsonReader(number).integer(); });
}

}  // namespace
}  // namespace longshore::test
