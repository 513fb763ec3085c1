#include "lab/twins/ft.hpp"

#include <algorithm>

namespace longshore::apps::twins {

using ft::Complex;

Ft::Ft(MPI_Comm comm, const ft::Slabs& slabs) : comm_(comm), columns_of_(slabs.columns.regions()) {
  MPI_Comm_rank(comm, &rank_);
  mine_ = slabs.planes.region(rank_);
  int in_planes = 0, in_columns = 0;
  const auto add = [](Parts& to, const Region& part, int& place) {
    to.counts.push_back(int(part.size()));
    to.places.push_back(place);
    place += to.counts.back();
  };
  for (Index k = 0; k < slabs.planes.size(); ++k) {
    add(of_planes_, mine_ & columns_of_[k], in_planes);
    add(of_columns_, columns_of_[rank_] & slabs.planes.region(k), in_columns);
  }
  for (Parts* parts : {&of_planes_, &of_columns_}) parts->counts[rank_] = 0;
  for (auto* array : {&planes_, &buffer_}) *array = Array<Complex>(in_planes);
  for (auto* array : {&spectrum_, &columns_}) *array = Array<Complex>(in_columns);
}

void Ft::to_spectrum() {
  const Stopwatch communication(phases.communication_s);
  for_each_run(spectrum(), [](Complex* plane, Complex* elsewhere, Index n) { std::copy_n(plane, n, elsewhere); });
  exchange(buffer_.data(), of_planes_, spectrum(), of_columns_);
}

void Ft::wait_to_planes(int) {
  const Stopwatch communication(phases.communication_s);
  exchange(columns_.data(), of_columns_, buffer_.data(), of_planes_);
  for_each_run(columns_.data(), [](Complex* plane, Complex* elsewhere, Index n) { std::copy_n(elsewhere, n, plane); });
}

void Ft::exchange(const Complex* send, const Parts& sent, Complex* receive, const Parts& received) const {
  MPI_Alltoallv(send, sent.counts.data(), sent.places.data(), MPI_C_DOUBLE_COMPLEX, receive, received.counts.data(),
                received.places.data(), MPI_C_DOUBLE_COMPLEX, comm_);
}

template <class Copy>
void Ft::for_each_run(Complex* columns, Copy copy) {
  const Index nx = mine_.extent(0), ny = mine_.extent(1);
  for (int k = 0; k < int(columns_of_.size()); ++k) {
    const Index run = nx * columns_of_[k].extent(1);
    Complex* plane = planes() + nx * columns_of_[k].lower()[1];
    Complex* elsewhere = k == rank_ ? columns + of_columns_.places[k] : buffer_.data() + of_planes_.places[k];
    for (Index z = 0; z < mine_.extent(2); ++z, plane += nx * ny, elsewhere += run) copy(plane, elsewhere, run);
  }
}

}  // namespace longshore::apps::twins
