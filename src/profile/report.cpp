#include "profile/report.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <tuple>

#include "core/json.hpp"
#include "core/whole_file.hpp"
#include "longshore/ranks/rank_module.hpp"

namespace longshore::profile {

namespace {

// What MPICH and Open MPI keep of each member in each process that is in the communicator, or has made the group.
constexpr Index list_bytes_a_member = 8;
constexpr std::string_view assumption =
    "the library keeps 8 bytes a member in every process that holds a list, as MPICH and Open MPI do; duplicates share "
    "their list";
constexpr std::size_t most_lines = 40;

template <class... Values>
std::string formatted(const char* format, Values... values) {
  std::string text(std::size_t(std::snprintf(nullptr, 0, format, values...)), '\0');
  std::snprintf(text.data(), text.size() + 1, format, values...);
  return text;
}

std::string bytes_in_words(double bytes) {
  constexpr const char* units[] = {"B", "KB", "MB", "GB", "TB", "PB"};
  std::size_t unit = 0;
  for (; bytes >= 10000 && unit + 1 < std::size(units); ++unit) bytes /= 1000;
  return formatted("%.0f %s", bytes, units[unit]);
}

std::string calls_in_words(const std::map<std::string, Index>& calls) {
  std::string text;
  for (const auto& [name, count] : calls) {
    if (!text.empty()) text += ", ";
    text += count == 1 ? name : name + " x " + std::to_string(count);
  }
  return text;
}

/// A list of members and what it costs.
struct Row {
  const Usage* usage;
  std::string structure, representation;
  Index list_bytes, map_bytes;  ///< of all processes together

  explicit Row(const Usage& of) : usage(&of) {
    const Roster& members = of.members;
    structure = explain(members.local).structure;
    representation = members.local.representation();
    if (!members.remote.empty()) {
      structure += "; and " + explain(members.remote).structure;
      representation.append(", ").append(members.remote.representation());
    }
    list_bytes = checked_mul(of.lists, checked_mul(members.size(), list_bytes_a_member));
    map_bytes = checked_mul(of.lists, members.bytes());
  }
};

double ratio(Index list_bytes, Index map_bytes) { return map_bytes > 0 ? double(list_bytes) / double(map_bytes) : 0; }

struct Rows {
  std::vector<Row> rows;  ///< what takes most first
  Index communicators = 0, groups = 0, list_bytes = 0, map_bytes = 0;

  explicit Rows(const Summary& summary) {
    for (const Usage* usage : summary.usages.entries()) {
      if (usage->calls.empty())
        continue;  // it was there without having been made, or its first member's report is lost
      const Row& row = rows.emplace_back(*usage);
      communicators += usage->communicators, groups += usage->groups;
      list_bytes = checked_add(list_bytes, row.list_bytes), map_bytes = checked_add(map_bytes, row.map_bytes);
    }
    std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.list_bytes > b.list_bytes; });
  }
};

/// Rows that differ only in which ranks they are of, such as all rows of a grid.
struct Alike {
  const Row* first;
  Index count = 0, list_bytes = 0, map_bytes = 0;
};

std::vector<Alike> alike(const std::vector<Row>& rows) {
  std::map<std::tuple<Index, Index, std::string, Index, Index, Index, Index, std::map<std::string, Index>>, std::size_t>
      places;
  std::vector<Alike> folded;
  for (const Row& row : rows) {
    const Usage& usage = *row.usage;
    const auto [place, first] = places.try_emplace(
        {usage.members.local.size(), usage.members.remote.size(), row.representation, usage.communicators,
         usage.alive_communicators, usage.groups, usage.alive_groups, usage.calls},
        folded.size());
    if (first) folded.push_back({&row});
    Alike& of = folded[place->second];
    ++of.count, of.list_bytes += row.list_bytes, of.map_bytes += row.map_bytes;
  }
  std::stable_sort(folded.begin(), folded.end(),
                   [](const Alike& a, const Alike& b) { return a.list_bytes > b.list_bytes; });
  return folded;
}

std::string line(const std::string& members, const std::string& lists, const std::string& made, Index list_bytes,
                 Index map_bytes, const std::string& words) {
  const auto bytes = formatted("%10s %10s %7.2f", bytes_in_words(double(list_bytes)).c_str(),
                               bytes_in_words(double(map_bytes)).c_str(), ratio(list_bytes, map_bytes));
  return formatted("%12s %6s  %-22s %s", members.c_str(), lists.c_str(), made.c_str(), bytes.c_str()) +
         (words.empty() ? "" : "  " + words) + "\n";
}

/// "3 (2) + 8 (2)": so many were made, so many of them alive at one time; communicators and groups, of so many lists
/// that are alike.
std::string made_in_words(const Usage& usage, Index count) {
  const auto of_all = [&](Index made, Index alive) {
    return std::to_string(made * count) + " (" + std::to_string(alive * count) + ")";
  };
  std::string text = of_all(usage.communicators, usage.alive_communicators);
  if (usage.groups > 0) text += " + " + of_all(usage.groups, usage.alive_groups);
  return text;
}

std::string counts_as_json(const std::map<std::string, Index>& counts) {
  std::string text;
  for (const auto& [name, count] : counts)
    text += (text.empty() ? "" : ", ") + json_quoted(name) + ": " + std::to_string(count);
  return "{" + text + "}";
}

std::string map_as_json(const RankMap& map) {
  std::string text = "{\"size\": " + std::to_string(map.size()) +
                     ", \"structure\": " + json_quoted(explain(map).structure) +
                     ", \"representation\": " + json_quoted(map.representation()) +
                     ", \"bytes\": " + std::to_string(map.bytes()) + ", \"stored\": \"";
  for (const std::byte b : map.to_bytes()) text += formatted("%02x", unsigned(b));
  return text + "\"}";
}

std::string row_as_json(const Row& row) {
  const Usage& usage = *row.usage;
  std::string text = "    {\"members\": " + map_as_json(usage.members.local);
  if (!usage.members.remote.empty()) text += ",\n     \"remote_members\": " + map_as_json(usage.members.remote);
  const auto field = [&](const char* name, Index value) {
    text.append(", \"").append(name).append("\": ").append(std::to_string(value));
  };
  text += ",\n     \"calls\": " + counts_as_json(usage.calls);
  field("communicators", usage.communicators), field("most_communicators_alive", usage.alive_communicators);
  field("groups", usage.groups), field("most_groups_alive", usage.alive_groups);
  field("processes", usage.processes), field("lists", usage.lists);
  field("list_bytes", row.list_bytes), field("map_bytes", row.map_bytes);
  return text + formatted(", \"ratio\": %.6g}", ratio(row.list_bytes, row.map_bytes));
}

}  // namespace

std::string text_report(const Summary& summary) {
  const Rows all(summary);
  std::string text = formatted("longshore rank profile: %s, %lld processes, %.3f s from MPI_Init to MPI_Finalize,\n",
                               summary.family.c_str(), static_cast<long long>(summary.world), summary.run_s);
  text += formatted("%.3f ms (%.3f %%) of it in the profile, with waiting for other processes, where it was longest\n",
                    summary.profile_s * 1e3, summary.run_s > 0 ? summary.profile_s / summary.run_s * 100 : 0.0);
  text += formatted("%12s %6s  %-22s %10s %10s %7s  %s\n", "members", "lists", "made (alive)", "as lists", "as maps",
                    "ratio", "structure; calls");
  const auto folded = alike(all.rows);
  for (std::size_t i = 0; i < folded.size() && i < most_lines; ++i) {
    const Usage& usage = *folded[i].first->usage;
    std::string members = std::to_string(usage.members.local.size());
    if (!usage.members.remote.empty()) members += "+" + std::to_string(usage.members.remote.size());
    std::string words = folded[i].first->structure;
    if (folded[i].count > 1) words += " (and " + std::to_string(folded[i].count - 1) + " alike)";
    text += line(members, std::to_string(folded[i].count), made_in_words(usage, folded[i].count), folded[i].list_bytes,
                 folded[i].map_bytes, words + "; " + calls_in_words(usage.calls));
  }
  if (folded.size() > most_lines) text += formatted("%12s %zu more lines\n", "...", folded.size() - most_lines);
  text +=
      line("all", std::to_string(all.rows.size()),
           std::to_string(all.communicators) + " + " + std::to_string(all.groups), all.list_bytes, all.map_bytes, "");
  text +=
      "Made (alive at one time): communicators + groups, these in every process. Bytes: of all processes, at their "
      "most;\n";
  text.append(assumption).append(".\n");
  if (!summary.lost.empty())
    text +=
        "Not followed, for their members are not known here, or too many others were: " + calls_in_words(summary.lost) +
        ".\n";
  if (summary.unread > 0)
    text += "The reports of " + std::to_string(summary.unread) + " processes could not be read.\n";
  return text;
}

std::string json_report(const Summary& summary) {
  const Rows all(summary);
  std::string text =
      "{\n  \"format\": \"longshore rank profile\", \"version\": 1, \"family\": " + json_quoted(summary.family) +
      ", \"world\": " + std::to_string(summary.world) + ", \"reports\": " + std::to_string(summary.processes) +
      ", \"unread_reports\": " + std::to_string(summary.unread) + ",\n";
  text += formatted("  \"run_s\": %.6f, \"profile_s\": %.9f, \"profile_all_processes_s\": %.9f,\n", summary.run_s,
                    summary.profile_s, summary.profile_sum_s);
  text += "  \"assumption\": " + json_quoted(assumption) +
          ", \"list_bytes_a_member\": " + std::to_string(list_bytes_a_member) + ",\n";
  text += "  \"not_followed\": " + counts_as_json(summary.lost) + ",\n";
  text += "  \"total\": {\"communicators\": " + std::to_string(all.communicators) +
          ", \"groups\": " + std::to_string(all.groups) + ", \"list_bytes\": " + std::to_string(all.list_bytes) +
          ", \"map_bytes\": " + std::to_string(all.map_bytes) +
          formatted(", \"ratio\": %.6g},\n", ratio(all.list_bytes, all.map_bytes));
  text += "  \"members\": [\n";
  for (const Row& row : all.rows) text += (&row == all.rows.data() ? "" : ",\n") + row_as_json(row);
  return text + "\n  ]\n}\n";
}

void publish(const Summary& summary, bool spawned) {
  const char* file = std::getenv("LONGSHORE_RANK_PROFILE");
  std::string text = text_report(summary);
  if (file != nullptr && *file != '\0' && !spawned)
    if (const auto why = write_whole(file, json_report(summary)); !why.empty())
      text += std::string("The profile could not be written to ") + file + ": " + why + "\n";
  std::fflush(stdout);
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace longshore::profile
