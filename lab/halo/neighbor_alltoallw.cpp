#include <algorithm>
#include <utility>
#include <vector>

#include <mpi.h>
#include "copies.hpp"
#include "exchange.hpp"

// Open MPI 5 has the persistent collectives of MPI 4 while it still calls itself 3.1.
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define LONGSHORE_PERSISTENT_COLLECTIVES 1
#else
#define LONGSHORE_PERSISTENT_COLLECTIVES 0
#endif

namespace longshore::bench {

namespace {

class NeighborAlltoallw final : public HaloExchange {
 public:
  NeighborAlltoallw(const Boxes& boxes, MPI_Comm comm, const HaloWay& way, bool persistent)
      : boxes_(boxes), base_(boxes.array().memory()->data()) {
    for (const HaloPhase& phase : halo_phases(boxes.problem(), boxes.rank(), way)) {
      Stage& stage = *stages_.emplace_back(std::make_unique<Stage>());
      for (const auto& own : phase.own) stage.own.push_back(copy_of(cells(own.to), cells(own.from)));
      stage.own = joined(stage.own);
      if (phase.sends.empty()) continue;  // then no rank has any
      describe(phase.sends, stage.sent);
      describe(phase.receives, stage.received);
      MPI_Dist_graph_create_adjacent(comm, int(stage.received.peers.size()), stage.received.peers.data(),
                                     MPI_UNWEIGHTED, int(stage.sent.peers.size()), stage.sent.peers.data(),
                                     MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &stage.comm);
      if (persistent) make_request(stage);
    }
  }

  void run() override {
    for (const auto& stage : stages_) {
      if (stage->request != MPI_REQUEST_NULL) MPI_Start(&stage->request);
      carry_out(stage->own);
      if (stage->request != MPI_REQUEST_NULL)
        MPI_Wait(&stage->request, MPI_STATUS_IGNORE);
      else if (stage->comm != MPI_COMM_NULL)
        MPI_Neighbor_alltoallw(base_, stage->sent.counts.data(), stage->sent.places.data(), stage->sent.types.data(),
                               base_, stage->received.counts.data(), stage->received.places.data(),
                               stage->received.types.data(), stage->comm);
    }
  }

 private:
  /// One end of all messages, as the collective wants to be told.
  struct End {
    std::vector<int> peers, counts;
    std::vector<MPI_Aint> places;
    std::vector<MPI_Datatype> types;
  };
  struct Stage {
    std::vector<RunsCopy> own;
    End sent, received;
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Request request = MPI_REQUEST_NULL;

    Stage() = default;
    Stage(const Stage&) = delete;
    Stage& operator=(const Stage&) = delete;
    ~Stage() {
      if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
      for (End* end : {&sent, &received})
        for (MPI_Datatype& type : end->types) MPI_Type_free(&type);
      if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
    }
  };

  Cells cells(const Part& part) const { return {boxes_.array().grid(part.box), part.region}; }

  void describe(const std::vector<HaloMessage>& messages, End& end) const {
    for (const HaloMessage& message : messages) {
      std::vector<MPI_Aint> places;
      std::vector<MPI_Datatype> types;
      for (const Part& part : message.parts) {
        const Grid& grid = boxes_.array().grid(part.box);
        places.push_back(grid.data - base_);
        types.push_back(subarray(grid.region, part.region));
      }
      if (types.size() > 1) {
        MPI_Datatype whole;
        const std::vector<int> ones(types.size(), 1);
        MPI_Type_create_struct(int(types.size()), ones.data(), places.data(), types.data(), &whole);
        for (MPI_Datatype& type : types) MPI_Type_free(&type);
        types = {whole}, places = {0};
      }
      MPI_Type_commit(&types[0]);
      end.peers.push_back(message.peer), end.counts.push_back(1);
      end.places.push_back(places[0]), end.types.push_back(types[0]);
    }
  }

  static MPI_Datatype subarray(const Region& whole, const Region& part) {
    int sizes[3], subsizes[3], starts[3];
    for (std::size_t d = 0; d < 3; ++d) {
      sizes[d] = int(whole.extent(d)), subsizes[d] = int(part.extent(d));
      starts[d] = int(part.lower()[d] - whole.lower()[d]);
    }
    MPI_Datatype type;
    MPI_Type_create_subarray(3, sizes, subsizes, starts, MPI_ORDER_FORTRAN, MPI_DOUBLE, &type);
    return type;
  }

  void make_request([[maybe_unused]] Stage& stage) const {
#if LONGSHORE_PERSISTENT_COLLECTIVES
    MPI_Neighbor_alltoallw_init(base_, stage.sent.counts.data(), stage.sent.places.data(), stage.sent.types.data(),
                                base_, stage.received.counts.data(), stage.received.places.data(),
                                stage.received.types.data(), stage.comm, MPI_INFO_NULL, &stage.request);
#else
    throw Error(ErrorKind::argument, "this MPI has no persistent collectives");
#endif
  }

  const Boxes& boxes_;
  std::byte* base_;
  std::vector<std::unique_ptr<Stage>> stages_;  // which do not move: a persistent collective keeps their addresses
};

}  // namespace

std::unique_ptr<HaloExchange> neighbor_alltoallw(const Boxes& boxes, mpi::CommHandle comm, const HaloWay& way,
                                                 bool persistent) {
  return std::make_unique<NeighborAlltoallw>(boxes, comm.get<MPI_Comm>(), way, persistent);
}

bool has_persistent_collectives() { return LONGSHORE_PERSISTENT_COLLECTIVES != 0; }

}  // namespace longshore::bench
