#include "engines/mpi/access_messages.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "longshore/copies/relation_program.hpp"
#include "sequences/stored_words.hpp"

namespace longshore::mpi {

namespace {

/// Where the elements of a message lie at one side of a relation: runs of them, in order.
void write_addresses(WordWriter& out, const AddressRelation& relation, Side side) {
  std::vector<Index> places, steps, counts;
  for_each_run(*relation.reader(), [&](const OffsetRun& run) {
    places.push_back(side == Side::source ? run.source : run.destination);
    steps.push_back(side == Side::source ? run.source_step : run.destination_step);
    counts.push_back(run.count);
  });
  out.index(Index(places.size()));
  out.integers(places), out.integers(steps), out.integers(counts);
}

/// As they were written: that side, and a dense message at the other. Throws `Error` for anything else.
AddressRelation addresses_of(WordReader& in, Index element_bytes, Side side) {
  const auto runs = std::size_t(in.index());
  const auto places = in.integers(runs), steps = in.integers(runs), counts = in.integers(runs);
  AddressRelation::RunList list(runs);
  Index at = 0;
  for (std::size_t k = 0; k < runs; ++k) {
    if (counts[k] < 1) in.refuse("has a run without elements");
    list[k] = {places[k], at, counts[k], steps[k], element_bytes};
    if (side == Side::destination)
      std::swap(list[k].source, list[k].destination), std::swap(list[k].source_step, list[k].destination_step);
    at = checked_add(at, checked_mul(counts[k], element_bytes));
  }
  return AddressRelation::from_runs(element_bytes, std::move(list));
}

}  // namespace

AccessMessages::AccessMessages(const Communicator& communicator, std::map<Index, Array> arrays)
    : communicator_(communicator), comm_(duplicate(communicator.world())), arrays_(std::move(arrays)) {}

int AccessMessages::expect(int rank, void* here, Index bytes, MPI_Request& request) {
  const int tag = first_answer + asked_;
  asked_ = (asked_ + 1) % answers;
  check_mpi(MPI_Irecv(here, int(bytes), MPI_BYTE, rank, tag, comm_, &request), "MPI_Irecv");
  return tag;
}

void AccessMessages::send(int rank, int tag, std::vector<std::byte> bytes, std::span<const std::byte> in_place) {
  auto& letter = going_.emplace_back(Letter{std::move(bytes), MPI_REQUEST_NULL, rank});
  if (in_place.empty()) in_place = letter.bytes;
  check_mpi(MPI_Isend(in_place.data(), int(in_place.size()), MPI_BYTE, rank, tag, comm_, &letter.request), "MPI_Isend");
}

std::vector<std::byte> AccessMessages::question_of(const Header& header, const AddressRelation& relation, Side side) {
  WordWriter out;
  write_addresses(out, relation, side);
  std::vector<std::byte> words(sizeof header);
  std::memcpy(words.data(), &header, sizeof header);
  words.insert(words.end(), out.written().begin(), out.written().end());
  return words;
}

AccessMessages::Asked AccessMessages::get(int rank, Index number, const AddressRelation& relation, std::byte* here) {
  Asked asked{MPI_REQUEST_NULL, relation.bytes()};
  const int tag = expect(rank, here, asked.bytes, asked.request);
  send(rank, question, question_of({number, tag, 0, relation.element_bytes()}, relation, Side::source));
  return asked;
}

AccessMessages::Asked AccessMessages::put(int rank, Index number, const AddressRelation& relation,
                                          const std::byte* here) {
  Asked asked{MPI_REQUEST_NULL, 1};
  const int tag = expect(rank, &acknowledged_, asked.bytes, asked.request);
  auto words = question_of({number, tag, 1, relation.element_bytes()}, relation, Side::destination);
  words.insert(words.end(), here, here + relation.bytes());
  send(rank, question, std::move(words));
  return asked;
}

void AccessMessages::answer(const Header& header, std::span<const std::byte> words, int rank) {
  const auto& array = arrays_.at(header.number);
  WordReader in(words, "what was asked for");
  const auto addresses = addresses_of(in, header.element_bytes, header.put ? Side::destination : Side::source);
  const auto touched = header.put ? addresses.destination_extent() : addresses.source_extent();
  if (touched.first < array.reach.first || touched.last > array.reach.last)
    throw Error(ErrorKind::argument, "what is asked for is not of the array");
  const int tag = int(header.tag);
  if (!header.put) {
    if (const auto* runs = std::get_if<AddressRelation::RunList>(&addresses.parts().front());
        runs && runs->size() == 1 && runs->front().source_step == header.element_bytes)
      return send(rank, tag, {}, {array.first + touched.first, std::size_t(touched.size())});
    std::vector<std::byte> data(std::size_t(addresses.bytes()));
    RelationProgram(addresses).run(data.data(), array.first);
    return send(rank, tag, std::move(data));
  }
  if (array.read_only || Index(words.size()) < addresses.bytes())
    throw Error(ErrorKind::argument, "what is put cannot be");
  RelationProgram(addresses).run(array.first, words.data() + (Index(words.size()) - addresses.bytes()));
  send(rank, tag, std::vector<std::byte>(1));
}

void AccessMessages::answer(const Letter& letter) {
  Header header;
  if (letter.bytes.size() < sizeof header) return;  // an announcement
  std::memcpy(&header, letter.bytes.data(), sizeof header);
  try {
    answer(header, std::span(letter.bytes).subspan(sizeof header), letter.rank);
  } catch (const std::exception&) {
    send(letter.rank, int(header.tag), {});  // an answer without bytes says so
  }
}

Woken AccessMessages::serve() noexcept {
  auto any = Woken::no;
  try {
    for (;;) {
      int found = 0;
      MPI_Message message = MPI_MESSAGE_NULL;
      MPI_Status status;
      if (MPI_Improbe(MPI_ANY_SOURCE, question, comm_, &found, &message, &status) != MPI_SUCCESS || !found) break;
      any = std::max(any, communicator_.node_rank_of(status.MPI_SOURCE) >= 0 ? Woken::near : Woken::far);
      int bytes = 0;
      MPI_Get_count(&status, MPI_BYTE, &bytes);
      auto& letter = coming_.emplace_back(Letter{std::vector<std::byte>(std::size_t(bytes)), {}, status.MPI_SOURCE});
      if (MPI_Imrecv(letter.bytes.data(), bytes, MPI_BYTE, &message, &letter.request) != MPI_SUCCESS) {
        coming_.pop_back();
        break;
      }
    }
    const auto complete = [](Letter& letter) {
      int done = 0;
      return MPI_Test(&letter.request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0;
    };
    for (auto letter = coming_.begin(); letter != coming_.end();) {
      const auto next = std::next(letter);
      if (complete(*letter)) {
        answer(*letter);
        coming_.erase(letter);
      }
      letter = next;
    }
    going_.remove_if(complete);
  } catch (...) {  // there was no memory: who asked waits until there is
  }
  return any;
}

void AccessMessages::close() {
  while (serve() != Woken::no) continue;  // what was announced at last
  for (auto& letter : going_) MPI_Wait(&letter.request, MPI_STATUS_IGNORE);
  going_.clear();
  check_mpi(MPI_Comm_free(&comm_), "MPI_Comm_free");
}

}  // namespace longshore::mpi
