#include "mpi/agreement.hpp"

#include <algorithm>
#include <array>

#include "core/digest.hpp"
#include "core/disagreement.hpp"
#include "mpi/gather.hpp"

namespace longshore::mpi {

namespace {

constexpr std::size_t longest_text = 32000;  // a layout of a million ranks must not flood the others

/// Every rank's text, on every rank. Only on the way to an error.
std::vector<std::string> gather_texts(const Communicator& communicator, std::string text) {
  // One rank may bring megabytes when thousands fail alike: everybody is cut so that the whole stays addressable.
  const std::size_t share = std::max<std::size_t>(8, (std::size_t(1) << 28) / std::size_t(communicator.size()));
  const std::size_t longest = std::min(longest_text, share);
  if (text.size() > longest) text = text.substr(0, longest - 3) + "...";
  return gather_bytes(communicator, Among::world, text);
}

TextOf everybodys(const Communicator& communicator, std::string text) {
  return [texts = gather_texts(communicator, std::move(text))](Index rank) { return texts[std::size_t(rank)]; };
}

}  // namespace

Values agree(const Communicator& communicator, const Submission& mine, const Values& values) {
  // The smallest and the largest of the digest's halves are equal where all agree; one reduction finds both.
  const auto high = Index(mine.digest >> 32), low = Index(mine.digest & 0xffffffffu);
  const Index state = mine.failure ? 0 : mine.postponed ? 1 : 2;
  constexpr std::size_t own = 5;
  std::array<Index, own + std::tuple_size_v<Values>> all = {state, high, -high, low, -low};
  std::copy(values.begin(), values.end(), all.begin() + own);
  find_smallest(communicator, Among::world, all);
  const Index ranks = communicator.size();
  if (!all[0])
    throw_failures(ranks, everybodys(communicator, mine.failure ? failure_text(*mine.failure) : std::string()));
  if (all[0] == 1) throw Postponed();
  if (all[1] != -all[2] || all[3] != -all[4]) {
    Facts facts = mine.facts ? mine.facts() : Facts();
    facts.push_back({digest_fact, std::to_string(mine.digest)});
    throw_disagreement(ranks, everybodys(communicator, facts_text(facts)));
  }
  Values agreed;
  std::copy(all.begin() + own, all.end(), agreed.begin());
  return agreed;
}

void agree(CommHandle comm, const Error* failure) {
  Submission mine;
  if (failure) mine.failure = *failure;
  agree(*Communicator::of(comm), mine);
}

std::vector<std::string> gather_words(CommHandle comm, const std::string& words, const Error* failure) {
  const auto communicator = Communicator::of(comm);
  Submission mine;
  if (failure) mine.failure = *failure;
  Digest digest;
  digest.mix(words);
  const auto number = Index(digest.value() >> 1);
  const auto agreed = agree(*communicator, mine, {number, -number, !words.empty()});
  if (agreed[2] && agreed[0] == -agreed[1]) return {words};
  return gather_texts(*communicator, words);
}

}  // namespace longshore::mpi
