#include "apps/ft/kernels.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <string>

#include "apps/nas_random.hpp"
#include "longshore/regions/partition.hpp"

namespace longshore::apps::ft {

namespace {

// Published by NASA with the NAS Parallel Benchmarks.
constexpr Complex checksums_s[] = {{554.6087004964, 484.5363331978}, {554.6385409189, 486.5304269511},
                                   {554.6148406171, 488.3910722336}, {554.5423607415, 490.1273169046},
                                   {554.4255039624, 491.7475857993}, {554.2683411902, 493.2597244941}};
constexpr Complex checksums_w[] = {{567.3612178944, 529.3246849175}, {563.1436885271, 528.2149986629},
                                   {559.4024089970, 527.0996558037}, {556.0698047020, 526.0027904925},
                                   {553.0898991250, 524.9400845633}, {550.4159734538, 523.9212247086}};
constexpr Complex checksums_a[] = {{504.6735008193, 511.4047905510}, {505.9412319734, 509.8809666433},
                                   {506.9376896287, 509.8144042213}, {507.7892868474, 510.1336130759},
                                   {508.5233095391, 510.4914655194}, {509.1487099959, 510.7917842803}};
constexpr Complex checksums_b[] = {
    {517.7643571579, 507.7803458597}, {515.4521291263, 508.8249431599}, {514.6409228649, 509.6208912659},
    {514.2378756213, 510.1023387619}, {513.9626667737, 510.3976610617}, {513.7423460082, 510.5948019802},
    {513.5547056878, 510.7404165783}, {513.3910925466, 510.8576573661}, {513.2470705390, 510.9577278523},
    {513.1197729984, 511.0460304483}, {513.0070319283, 511.1252433800}, {512.9070537032, 511.1968077718},
    {512.8182883502, 511.2616233064}, {512.7393733383, 511.3203605551}, {512.6691062020, 511.3735928093},
    {512.6064276004, 511.4218460548}, {512.5504076570, 511.4656139760}, {512.5002331720, 511.5053595966},
    {512.4551951846, 511.5415130407}, {512.4146770029, 511.5744692211}};

fftw_complex* raw(Complex* data) { return reinterpret_cast<fftw_complex*>(data); }

/// exp(-4 alpha pi^2 k^2 time) for the indices [first, end) of
/// a dimension; its upper half has the negative frequencies.
std::vector<double> decay(Index first, Index end, Index extent, int time) {
  constexpr double alpha = 1e-6, pi = std::numbers::pi;
  std::vector<double> factors;
  for (Index i = first; i < end; ++i) {
    const double k = double((i + extent / 2) % extent - extent / 2);
    factors.push_back(std::exp(-4 * alpha * pi * pi * k * k * time));
  }
  return factors;
}

}  // namespace

Problem problem(char name) {
  switch (name) {
    case 'S': return {name, {64, 64, 64}, checksums_s};
    case 'W': return {name, {128, 128, 32}, checksums_w};
    case 'A': return {name, {256, 256, 128}, checksums_a};
    case 'B': return {name, {512, 256, 256}, checksums_b};
  }
  throw Error(ErrorKind::argument, std::string("no class ") + name + " of NAS-FT: S, W, A or B");
}

Slabs slabs(const Problem& problem, int ranks) {
  const Point& shape = problem.shape;
  if (ranks > std::min(shape[1], shape[2]))
    throw Error(ErrorKind::argument, std::to_string(ranks) + " ranks are too many for class " + problem.name +
                                         " of NAS-FT, which has " + std::to_string(shape[2]) + " planes and " +
                                         std::to_string(shape[1]) + " rows to share");
  const Region domain = Region::of_shape(shape);
  Map owners(ranks);
  std::iota(owners.begin(), owners.end(), Index{0});
  return {{split_evenly(domain, {1, 1, ranks}), owners}, {split_evenly(domain, {1, ranks, 1}), owners}};
}

Kernels::Kernels(const Problem& problem, const Region& planes, const Region& columns, Complex* in_planes,
                 Complex* in_columns)
    : shape_(problem.shape),
      planes_(planes),
      columns_(columns),
      plane_{{nullptr, fftw_destroy_plan}, {nullptr, fftw_destroy_plan}},
      column_{{nullptr, fftw_destroy_plan}, {nullptr, fftw_destroy_plan}} {
  constexpr Index cached_bytes = Index{1} << 17;
  width_ = shape_[0];
  while (width_ % 2 == 0 && width_ * shape_[2] * Index(sizeof(Complex)) > cached_bytes) width_ /= 2;
  const int column = int(shape_[2]), stride = int(shape_[0] * columns.extent(1));
  for (const int backward : {0, 1}) {
    const int sign = backward ? FFTW_BACKWARD : FFTW_FORWARD;
    plane_[backward].reset(
        fftw_plan_dft_2d(int(shape_[1]), int(shape_[0]), raw(in_planes), raw(in_planes), sign, FFTW_MEASURE));
    column_[backward].reset(fftw_plan_many_dft(1, &column, int(width_), raw(in_columns), nullptr, stride, 1,
                                               raw(in_columns), nullptr, stride, 1, sign, FFTW_MEASURE));
  }
}

void Kernels::fill(Complex* in_planes) const {
  NasRandom random(2 * shape_[0] * shape_[1] * planes_.lower()[2]);
  for (Complex& value : std::span(in_planes, std::size_t(planes_.size()))) {
    const double real = random();
    value = {real, random()};
  }
}

void Kernels::transform_planes(Complex* in_planes, int sign) const {
  for (Complex *u = in_planes, *end = u + planes_.size(); u < end; u += shape_[0] * shape_[1])
    fftw_execute_dft(plane_[sign > 0].get(), raw(u), raw(u));
}

void Kernels::transform_columns(Complex* spectrum) const {
  for (Complex *u = spectrum, *end = u + shape_[0] * columns_.extent(1); u < end; u += width_)
    fftw_execute_dft(column_[0].get(), raw(u), raw(u));
}

void Kernels::evolve(const Complex* spectrum, Complex* columns, int time) const {
  const Index rows = columns_.extent(1), nx = shape_[0], nz = shape_[2];
  const std::vector<double> along_x = decay(0, nx, nx, time), along_z = decay(0, nz, nz, time),
                            along_y = decay(columns_.lower()[1], columns_.upper()[1], shape_[1], time);
  for (Index y = 0; y < rows; ++y)
    for (Index x = 0; x < nx; x += width_) {
      const Index first = x + nx * y;
      for (Index z = 0; z < nz; ++z) {
        const Complex* from = spectrum + first + nx * rows * z;
        Complex* to = columns + first + nx * rows * z;
        const double factor = along_y[y] * along_z[z];
        for (Index i = 0; i < width_; ++i) to[i] = from[i] * (factor * along_x[x + i]);
      }
      fftw_execute_dft(column_[1].get(), raw(columns + first), raw(columns + first));
    }
}

Complex Kernels::checksum(const Complex* in_planes) const {
  Complex sum = 0;
  for (Index j = 1; j <= 1024; ++j) {
    const Point point{j % shape_[0], 3 * j % shape_[1], 5 * j % shape_[2]};
    if (planes_.contains(point)) sum += in_planes[planes_.offset_of(point, Order::F)];
  }
  return sum / double(Region::of_shape(shape_).size());
}

double operations(const Problem& problem) {
  const double points = double(Region::of_shape(problem.shape).size()), log = std::log(points);
  return points * (14.8157 + 7.19641 * log + (5.23518 + 7.21113 * log) * problem.iterations());
}

}  // namespace longshore::apps::ft
