#include "engines/mpi/access_messages.hpp"

#include <cstring>
#include <utility>

#include "longshore/encodings/message_models.hpp"
#include "mpi/communicator.hpp"

namespace longshore::mpi {

namespace {

constexpr int question = 0, first_answer = 1, answers = 30'000;  // tags, of which MPI has 32767 at least

}  // namespace

AccessMessages::AccessMessages(MPI_Comm comm, std::map<Index, Array> arrays) : arrays_(std::move(arrays)) {
  check_mpi(MPI_Comm_dup(comm, &comm_), "MPI_Comm_dup");
  check_mpi(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

int AccessMessages::expect(int rank, void* here, Index bytes, MPI_Request& request) {
  const int tag = first_answer + asked_++ % answers;
  check_mpi(MPI_Irecv(here, int(bytes), MPI_BYTE, rank, tag, comm_, &request), "MPI_Irecv");
  return tag;
}

void AccessMessages::send(int rank, int tag, std::vector<std::byte> bytes) {
  auto& letter = going_.emplace_back(Letter{std::move(bytes), MPI_REQUEST_NULL, rank});
  check_mpi(MPI_Isend(letter.bytes.data(), int(letter.bytes.size()), MPI_BYTE, rank, tag, comm_, &letter.request),
            "MPI_Isend");
}

AccessMessages::Asked AccessMessages::get(int rank, Index number, const AddressRelation& relation, std::byte* here) {
  const auto addresses = get_request(relation, EncodingKind::nest);
  Asked asked{MPI_REQUEST_NULL, relation.bytes()};
  const Header header{number, expect(rank, here, asked.bytes, asked.request), 0, relation.bytes()};
  std::vector<std::byte> words(sizeof header + addresses.size());
  std::memcpy(words.data(), &header, sizeof header);
  std::memcpy(words.data() + sizeof header, addresses.data(), addresses.size());
  send(rank, question, std::move(words));
  return asked;
}

AccessMessages::Asked AccessMessages::put(int rank, Index number, const AddressRelation& relation,
                                          const std::byte* here) {
  const PutSender sender(relation.disassembly(), EncodingKind::nest);
  Asked asked{MPI_REQUEST_NULL, 1};
  const Header header{number, expect(rank, &acknowledged_, asked.bytes, asked.request), 1, relation.bytes()};
  std::vector<std::byte> words(sizeof header + std::size_t(sender.message_bytes()));
  std::memcpy(words.data(), &header, sizeof header);
  sender.run(words.data() + sizeof header, here);
  send(rank, question, std::move(words));
  return asked;
}

std::vector<std::byte> AccessMessages::answer_to(const Header& header, std::span<const std::byte> words) {
  const auto& array = arrays_.at(header.number);
  if (header.put) {
    if (array.read_only) return {};
    PutMessage(words).deliver(array.first, array.reach);
    return std::vector<std::byte>(1);
  }
  const GetRequest request(words, header.bytes);
  std::vector<std::byte> data(std::size_t(request.payload_bytes()));
  request.answer(data.data(), array.first, array.reach);
  return data;
}

void AccessMessages::answer(const Letter& letter) {
  Header header;
  if (letter.bytes.size() < sizeof header) return;  // nobody of ours
  std::memcpy(&header, letter.bytes.data(), sizeof header);
  std::vector<std::byte> data;
  try {
    data = answer_to(header, std::span(letter.bytes).subspan(sizeof header));
  } catch (const std::exception&) {  // an answer without bytes says so
  }
  send(letter.rank, int(header.tag), std::move(data));
}

void AccessMessages::serve() noexcept {
  try {
    for (;;) {
      int found = 0;
      MPI_Message message = MPI_MESSAGE_NULL;
      MPI_Status status;
      if (MPI_Improbe(MPI_ANY_SOURCE, question, comm_, &found, &message, &status) != MPI_SUCCESS || !found) break;
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
}

void AccessMessages::close() {
  for (auto& letter : going_) MPI_Wait(&letter.request, MPI_STATUS_IGNORE);
  going_.clear();
  check_mpi(MPI_Comm_free(&comm_), "MPI_Comm_free");
}

}  // namespace longshore::mpi
