#include "mpi/agreement.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "core/disagreement.hpp"

namespace longshore::mpi {

namespace {

constexpr std::size_t longest_text = 4000;  // a layout of a million ranks must not flood the others

/// Every rank's text, on every rank. Only on the way to an error.
std::vector<std::string> gather_texts(const Communicator& communicator, std::string text) {
  if (text.size() > longest_text) text = text.substr(0, longest_text) + "...";
  const int length = int(text.size());
  std::vector<int> lengths(std::size_t(communicator.size())), places(lengths.size());
  check_mpi(MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, communicator.world()), "MPI_Allgather");
  // One rank may bring megabytes when thousands fail alike: cut everybody so that the whole stays addressable.
  const int share = std::max(1, int((Index(1) << 28) / communicator.size()));
  for (auto& l : lengths) l = std::min(l, share);
  std::exclusive_scan(lengths.begin(), lengths.end(), places.begin(), 0);
  std::string all(std::size_t(places.back() + lengths.back()), '\0');
  check_mpi(MPI_Allgatherv(text.data(), lengths[std::size_t(communicator.rank())], MPI_CHAR, all.data(), lengths.data(),
                           places.data(), MPI_CHAR, communicator.world()),
            "MPI_Allgatherv");
  std::vector<std::string> texts;
  for (std::size_t r = 0; r < lengths.size(); ++r)
    texts.push_back(all.substr(std::size_t(places[r]), std::size_t(lengths[r])));
  return texts;
}

TextOf everybodys(const Communicator& communicator, std::string text) {
  return [texts = gather_texts(communicator, std::move(text))](Index rank) { return texts[std::size_t(rank)]; };
}

}  // namespace

std::array<Index, 2> agree(const Communicator& communicator, const Submission& mine,
                           const std::array<Index, 2>& values) {
  // The smallest and the largest of the digest's halves are equal where all agree; one reduction finds both.
  const auto high = Index(mine.digest >> 32), low = Index(mine.digest & 0xffffffffu);
  std::array<Index, 7> ours = {mine.failure ? 0 : 1, high, -high, low, -low, values[0], values[1]}, all{};
  check_mpi(MPI_Allreduce(ours.data(), all.data(), int(ours.size()), MPI_INT64_T, MPI_MIN, communicator.world()),
            "MPI_Allreduce");
  const Index ranks = communicator.size();
  if (!all[0])
    throw_failures(ranks, everybodys(communicator, mine.failure ? failure_text(*mine.failure) : std::string()));
  if (all[1] != -all[2] || all[3] != -all[4]) throw_disagreement(ranks, everybodys(communicator, mine.text));
  return {all[5], all[6]};
}

void agree(CommHandle comm, const Error* failure) {
  Submission mine;
  if (failure) mine.failure = *failure;
  agree(*Communicator::of(comm), mine);
}

std::vector<std::string> gather_texts(CommHandle comm, const std::string& text) {
  return gather_texts(*Communicator::of(comm), text);
}

}  // namespace longshore::mpi
