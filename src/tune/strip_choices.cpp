#include "longshore/tune/strip_choices.hpp"

#include <pwd.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/json.hpp"
#include "core/whole_file.hpp"

namespace longshore {

namespace fs = std::filesystem;

namespace {

constexpr const char* format = "longshore strip choices";
constexpr Index version = 1;
constexpr std::size_t most_choices = 4096;
constexpr double most_seconds = 1e9;  // of a row

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

fs::path configuration() {
  if (const auto given = variable("XDG_CONFIG_HOME"); !given.empty()) return given;
  auto home = variable("HOME");
  if (home.empty())
    if (const auto* user = getpwuid(getuid())) home = user->pw_dir;
  return fs::path(home) / ".config";
}

double seconds_of(JsonReader& json) {
  const double value = json.number();
  if (!(value >= 0 && value < most_seconds))
    throw Error(ErrorKind::argument, "a row takes no " + std::to_string(value) + " seconds");
  return value;
}

StripChoice choice_of(JsonReader& json) {
  constexpr std::string_view names[] = {"pattern", "rows", "row_bytes", "schedule", "seconds", "vectorized_seconds"};
  StripChoice choice;
  bool has[std::size(names)] = {};
  json.object([&](const std::string& key) {
    const auto k = std::find(std::begin(names), std::end(names), key) - std::begin(names);
    if (k < std::ssize(names)) has[k] = true;
    switch (k) {
      case 0: choice.loop.pattern = json.text(); break;
      case 1: choice.loop.rows = json.integer(); break;
      case 2: choice.loop.row_bytes = json.integer(); break;
      case 3: choice.schedule = StripSchedule::parse(json.text()); break;
      case 4: choice.seconds = seconds_of(json); break;
      case 5: choice.vectorized_seconds = seconds_of(json); break;
      default: json.skip();
    }
  });
  if (const auto* missing = std::find(std::begin(has), std::end(has), false); missing != std::end(has))
    throw Error(ErrorKind::argument, "a choice has no " + std::string(names[missing - has]));
  if (choice.loop.rows < 0 || choice.loop.row_bytes < 1)
    throw Error(ErrorKind::argument, "a loop over " + std::to_string(choice.loop.rows) + " rows of " +
                                         std::to_string(choice.loop.row_bytes) + " bytes");
  return choice;
}

std::string number_of(double value) {
  char digits[32];
  return std::string(digits, std::to_chars(digits, std::end(digits), value).ptr);
}

}  // namespace

std::string machine_profile_path() {
  if (auto given = variable("LONGSHORE_PROFILE"); !given.empty()) return given;
  utsname name{};
  const std::string host = uname(&name) == 0 && name.nodename[0] ? name.nodename : "machine";
  return configuration() / "longshore" / (host + ".json");
}

std::string strip_choices_path() { return fs::path(machine_profile_path()).replace_extension(".strips.json"); }

std::vector<StripChoice> read_strip_choices(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return {};
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in) throw Error(ErrorKind::transport, "cannot read " + path);
  std::vector<StripChoice> choices;
  std::string found;
  Index of_version = 0;
  try {
    JsonReader json(text);
    json.object([&](const std::string& key) {
      if (key == "format")
        found = json.text();
      else if (key == "version")
        of_version = json.integer();
      else if (key == "choices")
        json.array([&] { choices.push_back(choice_of(json)); });
      else
        json.skip();
    });
    json.end();
    if (found != format || of_version != version)
      throw Error(ErrorKind::argument, "it is of format \"" + found + "\", version " + std::to_string(of_version));
  } catch (const Error& wrong) {
    throw Error(ErrorKind::argument, path + " holds no choices of strips: " + wrong.what());
  }
  return choices;
}

void keep_strip_choices(const std::string& path, const std::vector<StripChoice>& choices) {
  std::error_code error;
  std::vector<StripChoice> all;
  if (fs::exists(path, error) && fs::file_size(path, error) > 0) all = read_strip_choices(path);
  std::erase_if(all, [&](const StripChoice& old) {
    return std::find_if(choices.begin(), choices.end(),
                        [&](const StripChoice& each) { return each.loop == old.loop; }) != choices.end();
  });
  all.insert(all.end(), choices.begin(), choices.end());
  if (all.size() > most_choices) all.erase(all.begin(), all.end() - most_choices);
  std::string text = std::string("{\n \"format\": \"") + format + "\",\n \"version\": " + std::to_string(version) +
                     ",\n \"choices\": [";
  const auto field = [&](const char* name, const std::string& value) {
    text.append(", \"").append(name).append("\": ").append(value);
  };
  for (const auto& each : all) {
    text.append(&each == all.data() ? "\n" : ",\n").append("  {\"pattern\": ").append(json_quoted(each.loop.pattern));
    field("rows", std::to_string(each.loop.rows));
    field("row_bytes", std::to_string(each.loop.row_bytes));
    field("schedule", json_quoted(each.schedule.to_string()));
    field("seconds", number_of(each.seconds));
    field("vectorized_seconds", number_of(each.vectorized_seconds));
    text += '}';
  }
  fs::create_directories(fs::path(path).parent_path(), error);
  if (const auto why = write_whole(path, text + "\n ]\n}\n"); !why.empty())
    throw Error(ErrorKind::transport, "cannot write " + path + ": " + why);
}

}  // namespace longshore
