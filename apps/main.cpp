/// longshore-apps: runs one application, says how long it took and whether its result is right.
#include <mpi.h>

#include <charconv>
#include <cstdio>
#include <string>

#include "apps/apps.hpp"

namespace {

using namespace longshore;
using apps::Result;
using apps::Variant;

constexpr const char* usage =
    "usage: longshore-apps NAME [--variant longshore|overlapped|twin|windows] [--json]\n"
    "  mg, ft        NAS benchmarks: [--class S|W|A|B]; mg from windows: [--parts n]\n"
    "  redblack3d    [--size points in each dimension] [--iterations n]\n"
    "  summa         [--size rows] [--panel columns]\n";

struct Options {
  apps::Problem problem;
  Variant variant = Variant::longshore;
  bool json = false;
};

Index number(const std::string& option, const std::string& text) {
  Index value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size() || value < 1 || value > INT32_MAX)
    throw Error(ErrorKind::argument, option + " wants a whole number of at least 1, not \"" + text + "\"");
  return value;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int n = 1; n < argc; ++n) {
    const std::string word = argv[n];
    const auto value = [&]() -> std::string {
      if (++n == argc) throw Error(ErrorKind::argument, word + " wants a value\n" + usage);
      return argv[n];
    };
    if (word == "--json")
      options.json = true;
    else if (word == "--variant")
      options.variant = apps::variant_named(value());
    else if (word == "--size")
      options.problem.size = number(word, value());
    else if (word == "--panel")
      options.problem.panel = number(word, value());
    else if (word == "--parts")
      options.problem.parts = number(word, value());
    else if (word == "--iterations")
      options.problem.iterations = int(number(word, value()));
    else if (word == "--class") {
      const std::string letter = value();
      if (letter.size() != 1) throw Error(ErrorKind::argument, "--class wants one letter, not \"" + letter + "\"");
      options.problem.problem_class = letter[0];
    } else if (options.problem.name.empty() && word[0] != '-')
      options.problem.name = word;
    else
      throw Error(ErrorKind::argument, "unknown option \"" + word + "\"\n" + usage);
  }
  return options;
}

void print(const Options& options, const Result& result, int ranks, Index payload_bytes) {
  if (options.json)
    std::printf(
        "{\"name\": \"%s\", \"variant\": \"%s\", \"ranks\": %d, \"verified\": %s, \"verification\": \"%s\", \"error\": "
        "%.17g, \"tolerance\": %.17g, \"total_s\": %.9g, \"communication_s\": %.9g, \"payload_bytes\": %lld, "
        "\"flops\": %.17g}\n",
        options.problem.name.c_str(), to_string(options.variant), ranks, result.verified ? "true" : "false",
        result.verification.c_str(), result.error, result.tolerance, result.total_s, result.communication_s,
        static_cast<long long>(payload_bytes), result.flops);
  else
    std::printf(
        "%s, %s, %d ranks: %.4f s, of which communication %.4f s; %.0f Mflop/s; %lld bytes between ranks\n"
        "%s: %s (error %.3g, at most %.3g)\n",
        options.problem.name.c_str(), to_string(options.variant), ranks, result.total_s, result.communication_s,
        result.flops / result.total_s * 1e-6, static_cast<long long>(payload_bytes),
        result.verified ? "verified" : "NOT VERIFIED", result.verification.c_str(), result.error, result.tolerance);
}

}  // namespace

int main(int argc, char** argv) {
  int level = 0, rank = 0, ranks = 0, status = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  try {
    const Options options = parse(argc, argv);
    if (options.problem.name.empty()) throw Error(ErrorKind::argument, usage);
    const Result result = apps::run(MPI_COMM_WORLD, options.problem, options.variant);
    std::int64_t payload_bytes = result.payload_bytes;
    MPI_Allreduce(MPI_IN_PLACE, &payload_bytes, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) print(options, result, ranks, payload_bytes);
    status = result.verified ? 0 : 1;
  } catch (const std::exception& error) {  // the same on all ranks
    if (rank == 0) std::fprintf(stderr, "longshore-apps: %s\n", error.what());
    status = 2;
  }
  MPI_Finalize();
  return status;
}
