#include <cstring>
#include <utility>
#include <vector>

#include <mpi.h>
#include "copies.hpp"
#include "exchange.hpp"

namespace longshore::bench {

namespace {

class HandPacked final : public HaloExchange {
 public:
  HandPacked(const Boxes& boxes, MPI_Comm comm, const HaloWay& way) : boxes_(boxes) {
    for (const HaloPhase& phase : halo_phases(boxes.problem(), boxes.rank(), way)) {
      Stage& stage = stages_.emplace_back();
      for (const auto& own : phase.own) stage.own.push_back(copy_of(cells(own.to), cells(own.from)));
      stage.own = joined(stage.own);
      for (const HaloMessage& message : phase.receives) {
        double* buffer = buffer_of(message, stage.unpack.emplace_back(), false);
        MPI_Recv_init(buffer, int(message.doubles), MPI_DOUBLE, message.peer, message.tag, comm,
                      &stage.receives.emplace_back());
      }
      for (const HaloMessage& message : phase.sends) {
        double* buffer = buffer_of(message, stage.pack.emplace_back(), true);
        MPI_Send_init(buffer, int(message.doubles), MPI_DOUBLE, message.peer, message.tag, comm,
                      &stage.sends.emplace_back());
      }
    }
  }

  ~HandPacked() override {
    for (Stage& stage : stages_)
      for (auto* requests : {&stage.receives, &stage.sends})
        for (MPI_Request& request : *requests) MPI_Request_free(&request);
  }

  void run() override {
    for (Stage& stage : stages_) {
      MPI_Startall(int(stage.receives.size()), stage.receives.data());
      for (std::size_t k = 0; k < stage.sends.size(); ++k) {
        carry_out(stage.pack[k]);
        MPI_Start(&stage.sends[k]);
      }
      carry_out(stage.own);
      for (std::size_t k = 0; k < stage.receives.size(); ++k) {
        int arrived = 0;
        MPI_Waitany(int(stage.receives.size()), stage.receives.data(), &arrived, MPI_STATUS_IGNORE);
        carry_out(stage.unpack[std::size_t(arrived)]);
      }
    }
    for (Stage& stage : stages_) MPI_Waitall(int(stage.sends.size()), stage.sends.data(), MPI_STATUSES_IGNORE);
  }

 private:
  struct Stage {
    std::vector<RunsCopy> own;
    std::vector<std::vector<RunsCopy>> pack, unpack;  ///< by message
    std::vector<MPI_Request> sends, receives;
  };

  Cells cells(const Part& part) const { return {boxes_.array().grid(part.box), part.region}; }

  /// Where the message lies, and the copies that bring it there or from there.
  double* buffer_of(const HaloMessage& message, std::vector<RunsCopy>& copies, bool pack) {
    if (message.parts.size() == 1)
      if (const Cells only = cells(message.parts[0]); only.contiguous()) return only.first;
    auto& buffer = buffers_.emplace_back(std::size_t(message.doubles));
    double* at = buffer.data();
    for (const Part& part : message.parts) {
      const Cells there = cells(part), here = there.dense(at);
      copies.push_back(pack ? copy_of(here, there) : copy_of(there, here));
      at += there.size();
    }
    copies = joined(copies);
    return buffer.data();
  }

  const Boxes& boxes_;
  std::vector<Stage> stages_;
  std::vector<std::vector<double>> buffers_;
};

/// Reads what `fill` has written, wherever that begins.
class PlainCopy final : public HaloExchange {
 public:
  explicit PlainCopy(const Boxes& boxes) : boxes_(boxes), buffer_(std::size_t(boxes.ghost_bytes()) / sizeof(double)) {
    const auto& memory = boxes.array().memory();
    if (memory->bytes() < boxes.ghost_bytes())
      throw Error(ErrorKind::argument, "there are more ghost cells than cells");
  }
  void run() override { std::memcpy(buffer_.data(), boxes_.array().memory()->data(), buffer_.size() * sizeof(double)); }

 private:
  const Boxes& boxes_;
  std::vector<double> buffer_;
};

}  // namespace

std::unique_ptr<HaloExchange> hand_packed(const Boxes& boxes, mpi::CommHandle comm, const HaloWay& way) {
  return std::make_unique<HandPacked>(boxes, comm.get<MPI_Comm>(), way);
}

std::unique_ptr<HaloExchange> plain_copy(const Boxes& boxes) { return std::make_unique<PlainCopy>(boxes); }

}  // namespace longshore::bench
