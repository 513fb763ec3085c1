#include "core/disagreement.hpp"

#include <map>
#include <vector>

#include "longshore/core/error.hpp"

namespace longshore {

namespace {

constexpr std::size_t most_listed = 8;

/// "ranks 0, 1, 5-7", at most a few.
std::string name_ranks(const std::vector<Index>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  std::size_t listed = 0;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t j = i;
    while (j + 1 < ranks.size() && ranks[j + 1] == ranks[j] + 1) ++j;
    if (listed++) text += ", ";
    if (listed > most_listed) return text + "...";
    text += std::to_string(ranks[i]);
    if (j > i) text += (j == i + 1 ? ", " : "-") + std::to_string(ranks[j]);
    i = j + 1;
  }
  return text;
}

/// The ranks that bring the same text.
struct Group {
  std::vector<Index> ranks;
  std::string text;
};

/// In order of the first rank of each.
std::vector<Group> group(Index ranks, const TextOf& text_of) {
  std::vector<Group> groups;
  std::map<std::string, std::size_t, std::less<>> seen;
  for (Index r = 0; r < ranks; ++r) {
    std::string text = text_of(r);
    if (text.empty()) continue;
    const auto [place, fresh] = seen.try_emplace(text, groups.size());
    if (fresh) groups.push_back({{}, std::move(text)});
    groups[place->second].ranks.push_back(r);
  }
  return groups;
}

}  // namespace

void throw_disagreement(Index ranks, const TextOf& text_of) {
  std::string message = "ranks were given different things to move";
  std::size_t listed = 0;
  for (const auto& group : group(ranks, text_of)) {
    if (listed++ == most_listed) {
      message += "\n  ...";
      break;
    }
    message += "\n  " + name_ranks(group.ranks) + ": " + group.text;
  }
  throw Error(ErrorKind::disagreement, message);
}

// The kind is the first character.
std::string failure_text(const Error& error) { return char('A' + int(error.kind())) + std::string(error.what()); }

void throw_failures(Index ranks, const TextOf& text_of) {
  std::string message;
  auto kind = ErrorKind::argument;
  std::size_t listed = 0;
  for (const auto& group : group(ranks, text_of)) {
    if (listed == 0) kind = ErrorKind(group.text[0] - 'A');
    if (listed++ == most_listed) {
      message += "\n...";
      break;
    }
    if (listed > 1) message += "\n";
    // What all ranks did wrong alike needs no rank.
    if (Index(group.ranks.size()) < ranks) message += name_ranks(group.ranks) + ": ";
    message += group.text.substr(1);
  }
  throw Error(kind, message);
}

}  // namespace longshore
