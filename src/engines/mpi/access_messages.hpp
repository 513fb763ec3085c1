/// engines/mpi: gets and puts that the owner of the memory carries out, for what lies there in many short stretches:
/// Open MPI's one-sided calls send a message for each of them, and keep it.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "longshore/movers/mover.hpp"
#include "longshore/relations/address_relation.hpp"
#include "mpi/communicator.hpp"
#include "mpi/progress_thread.hpp"

namespace longshore::mpi {

/// The addresses go ahead of what is got, and along with what is put (Dinda & O'Hallaron, section 2, get and put). All
/// calls are made in this process's turn in MPI; every process must call serve() again and again.
class AccessMessages {
 public:
  /// An array that others get from and put into.
  struct Array {
    std::byte* first = nullptr;  ///< its first element
    Interval reach;              ///< bytes that may be touched, counted from there
    bool read_only = false;
  };
  /// Collective. `arrays` by number, of this process.
  AccessMessages(const Communicator& communicator, std::map<Index, Array> arrays);
  AccessMessages(const AccessMessages&) = delete;
  AccessMessages& operator=(const AccessMessages&) = delete;

  /// What an access waits for: complete when so many bytes have come. Fewer: the owner has refused.
  struct Asked {
    MPI_Request request = MPI_REQUEST_NULL;
    Index bytes = 0;
  };
  /// The relation's source is array `number` of that rank, its message comes to `here`, dense.
  Asked get(int rank, Index number, const AddressRelation& relation, std::byte* here);
  /// The relation's destination is array `number` of that rank; its message is at `here`, dense, and is free at once.
  Asked put(int rank, Index number, const AddressRelation& relation, const std::byte* here);
  /// Tells that rank that something is asked of it through MPI's one-sided calls, which its thread for progress can
  /// only guess: then it does not rest.
  void announce(int rank) { send(rank, question, {}); }
  /// Answers what others have asked for meanwhile. What cannot be answered is refused. Says whether there was anything,
  /// and from where.
  Woken serve() noexcept;
  /// Collective, when nobody asks for anything any more.
  void close();

 private:
  struct Header {
    Index number = 0, tag = 0, put = 0, element_bytes = 0;
  };
  struct Letter {
    std::vector<std::byte> bytes;
    MPI_Request request = MPI_REQUEST_NULL;
    int rank = 0;
  };
  static constexpr int question = 0, first_answer = 1, answers = 30'000;  // tags, of which MPI has 32767 at least
  int expect(int rank, void* here, Index bytes, MPI_Request& request);
  /// These bytes, or those that stay where they are until they have gone.
  void send(int rank, int tag, std::vector<std::byte> bytes, std::span<const std::byte> in_place = {});
  void answer(const Letter& letter);
  void answer(const Header& header, std::span<const std::byte> words, int rank);
  static std::vector<std::byte> question_of(const Header& header, const AddressRelation& relation, Side side);

  const Communicator& communicator_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::map<Index, Array> arrays_;
  int asked_ = 0;  ///< so far, counted in a circle: answers come with tags of their own
  std::list<Letter> coming_, going_;
  char acknowledged_ = 0;  ///< where nobody looks
};

}  // namespace longshore::mpi
