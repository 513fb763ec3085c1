#include "longshore/tune/copy_timing.hpp"

#include "longshore/tune/strip_tuner.hpp"
#include "rooms.hpp"

namespace longshore::python {

namespace {

CopyTimer::Writer writer_of(const std::string& name) {
  if (name == "nobody") return CopyTimer::Writer::nobody;
  if (name == "itself") return CopyTimer::Writer::itself;
  if (name == "another") return CopyTimer::Writer::another;
  throw Error(ErrorKind::argument, "writer is \"" + name + "\"; it is \"nobody\", \"itself\" or \"another\"");
}

}  // namespace

void bind_tune(nb::module_& module) {
  nb::class_<CopyTimer>(
      module, "CopyTimer",
      "Two arrays of `bytes` bytes for each of `threads` threads, between which compiled relations are timed. Raises "
      "ArgumentError where a number is not positive.")
      .def(nb::init<int, Index>(), nb::arg("threads"), nb::arg("bytes"))
      .def_prop_ro("threads", &CopyTimer::threads, "That may copy at once.")
      .def_prop_ro("bytes", &CopyTimer::bytes, "Of an array.")
      .def(
          "time",
          [](CopyTimer& self, const AddressRelation& relation, int at_once, bool cold, const std::string& writer,
             bool streaming, int samples, double sample_seconds, double seconds) {
            CopyTimer::Options options{cold, writer_of(writer), samples, sample_seconds, seconds, {}};
            options.program.stores = streaming ? Stores::streaming : Stores::cached;
            nb::gil_scoped_release release;
            return self.time(relation, at_once, options);
          },
          nb::arg("relation"), nb::arg("at_once") = 1, nb::kw_only(), nb::arg("cold") = false,
          nb::arg("writer") = "nobody", nb::arg("streaming") = false, nb::arg("samples") = 7,
          nb::arg("sample_seconds") = 2e-5, nb::arg("seconds") = 0.02,
          "Seconds of one run, a number a sample, of the slowest of `at_once` threads that run the relation at the "
          "same "
          "time. A sample is as many runs as take `sample_seconds`; no further one begins after `seconds`. `cold`: "
          "each "
          "run has other places in the arrays, until all have had their turn. `writer`: before each sample, which is "
          "one "
          "run then, the thread \"itself\" or \"another\" one writes what will be read. `streaming`: stores go past "
          "the caches. "
          "Raises ArgumentError where the relation does not fit the arrays. One call at a time.");

  const auto pattern = nb::arg("pattern"), rows = nb::arg("rows"), row_bytes = nb::arg("row_bytes");
  nb::class_<StripTuner>(
      module, "StripTuner",
      "Finds strip schedules by trying them, of loops that are run anyway. A loop is a pattern, what "
      "tells it from others, and how many rows of how many bytes it goes over.")
      .def(
          "__init__",
          [](StripTuner* self, const std::optional<LogGP>& overheads) {
            if (overheads)
              new (self) StripTuner(*overheads);
            else
              new (self) StripTuner();
          },
          nb::arg("overheads").none() = nb::none())
      .def(
          "schedule",
          [](StripTuner& self, const std::string& p, Index n, Index b) {
            return self.schedule({p, n, b});
          },
          pattern, rows, row_bytes, "What the next loop should take.")
      .def(
          "record",
          [](StripTuner& self, const std::string& p, Index n, Index b, const StripSchedule& schedule, double seconds,
             double communication) {
            self.record({p, n, b}, schedule, seconds, communication);
          },
          pattern, rows, row_bytes, nb::arg("schedule"), nb::arg("seconds"), nb::arg("communication"),
          "What a loop took, of which so much was spent in asking for strips and waiting for them.")
      .def(
          "settled",
          [](const StripTuner& self, const std::string& p, Index n, Index b) {
            return self.settled({p, n, b});
          },
          pattern, rows, row_bytes, "Whether there is nothing left to try.")
      .def(
          "choices",
          [](const StripTuner& self) {
            nb::list all;
            for (const auto& [loop, schedule, seconds, vectorized] : self.choices())
              all.append(nb::make_tuple(loop.pattern, loop.rows, loop.row_bytes, schedule, seconds, vectorized));
            return all;
          },
          "(pattern, rows, row_bytes, schedule, seconds a row, those of `vectorized`) of all that is settled.",
          nb::sig("def choices(self) -> list[tuple[str, int, int, StripSchedule, float, float]]"))
      .def(
          "remember",
          [](StripTuner& self, const std::string& p, Index n, Index b, const StripSchedule& schedule, double seconds,
             double vectorized) {
            self.remember({{p, n, b}, schedule, seconds, vectorized});
          },
          pattern, rows, row_bytes, nb::arg("schedule"), nb::arg("seconds"), nb::arg("vectorized_seconds"),
          "What `choices` gave.");
  module.def(
      "kernel_tables",
      [] {
        std::vector<std::string> names;
        for (const auto* table : available_kernels()) names.emplace_back(table->name);
        return names;
      },
      "The copy kernels that this processor can run, the plain ones first. LONGSHORE_KERNELS=NAME asks for others than "
      "the last.");
  module.def(
      "kernels_name", [] { return kernels().name; }, "The copy kernels that this processor has: \"avx512\".");
}

}  // namespace longshore::python
