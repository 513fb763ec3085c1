#include "core/disagreement.hpp"

#include <algorithm>
#include <cctype>
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

constexpr char name_ends = '\x1f', fact_ends = '\x1e';

Facts read_facts(const std::string& text) {
  Facts facts;
  for (std::size_t first = 0, last = 0; first < text.size(); first = last + 1) {
    last = std::min(text.find(fact_ends, first), text.size());
    const std::size_t name = std::min(text.find(name_ends, first), last);
    const std::size_t value = std::min(name + 1, last);
    facts.push_back({text.substr(first, name - first), text.substr(value, last - value)});
  }
  return facts;
}

/// The ranks that bring the same facts.
struct Said {
  std::vector<Index> ranks;
  Facts facts;

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& fact : facts)
      if (std::find(names.begin(), names.end(), fact.name) == names.end()) names.push_back(fact.name);
    return names;
  }
  std::vector<std::string> values(const std::string& name) const {
    std::vector<std::string> values;
    for (const auto& fact : facts)
      if (fact.name == name) values.push_back(fact.value);
    return values;
  }
};

/// "halo: rank 1 has width 2, ranks 0, 2-3 have width 1", of the first fact of this name that is not the same for all;
/// nothing where there is none, or where some have no such facts.
std::string first_difference(const std::vector<Said>& said, const std::string& name) {
  std::vector<std::vector<std::string>> values;
  std::size_t most = 0;
  for (const auto& one : said) {
    values.push_back(one.values(name));
    if (values.back().empty()) return {};
    most = std::max(most, values.back().size());
  }
  for (std::size_t k = 0; k < most; ++k) {
    std::map<std::string, std::vector<Index>> who;
    for (std::size_t i = 0; i < said.size(); ++i) {
      auto& ranks = who[k < values[i].size() ? values[i][k] : "no more"];
      ranks.insert(ranks.end(), said[i].ranks.begin(), said[i].ranks.end());
    }
    if (who.size() == 1) continue;
    std::vector<std::pair<std::vector<Index>, std::string>> sides;  // those who stand alone first
    for (auto& [value, ranks] : who) sides.push_back({std::move(ranks), value});
    for (auto& side : sides) std::sort(side.first.begin(), side.first.end());
    std::sort(sides.begin(), sides.end(), [](const auto& a, const auto& b) {
      return std::pair(a.first.size(), a.first[0]) < std::pair(b.first.size(), b.first[0]);
    });
    std::string words = name + ": ";
    for (std::size_t i = 0; i < std::min(sides.size(), most_listed); ++i)
      words += (i ? ", " : "") + name_ranks(sides[i].first) + (sides[i].first.size() == 1 ? " has " : " have ") +
               sides[i].second;
    return words + (sides.size() > most_listed ? ", ..." : "");
  }
  return {};
}

}  // namespace

std::string facts_text(const Facts& facts) {
  std::string text;
  for (const auto& [name, value] : facts) text += name + name_ends + value + fact_ends;
  return text;
}

void throw_disagreement(Index ranks, const TextOf& text_of) {
  std::vector<Said> said;
  for (auto& [who, text] : group(ranks, text_of)) said.push_back({std::move(who), read_facts(text)});
  std::string message = "ranks were given different things to move";
  std::size_t listed = 0;
  for (const auto& name : said[0].names()) {
    const auto difference = first_difference(said, name);
    // The digest tells that something differs, and nothing of it.
    if (difference.empty() || (name == digest_fact && listed > 0)) continue;
    message += "\n  " + (listed++ < most_listed ? difference : "...");
    if (listed > most_listed) break;
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
    const std::string words = group.text.substr(1), who = name_ranks(group.ranks);
    // What all ranks did wrong alike needs no rank, nor do words that begin with it.
    const bool named = words.rfind(who, 0) == 0 && (words.size() == who.size() || !std::isdigit(words[who.size()]));
    if (Index(group.ranks.size()) < ranks && !named) message += who + ": ";
    message += words;
  }
  throw Error(kind, message);
}

}  // namespace longshore
