#include "longshore/tune/copy_timing.hpp"

#include "longshore/copies/kernels.hpp"
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

nb::list to_list(const std::vector<StripChoice>& choices) {
  nb::list all;
  for (const auto& [loop, schedule, seconds, vectorized] : choices)
    all.append(nb::make_tuple(loop.pattern, loop.rows, loop.row_bytes, schedule, seconds, vectorized));
  return all;
}

constexpr const char* profile_numbers = "rows burst_bytes stagger_bytes paged_bytes string_bytes merged_rows expands";

nb::dict facts_of(const KernelProfile& p) {
  const auto from = [](Index bytes) -> nb::object {
    if (bytes == KernelProfile::never) return nb::none();
    return nb::cast(bytes);
  };
  nb::dict facts;
  facts["rows"] = p.rows, facts["burst_bytes"] = p.burst_bytes, facts["stagger_bytes"] = p.stagger_bytes;
  facts["paged_bytes"] = from(p.paged_bytes), facts["string_bytes"] = from(p.string_bytes);
  facts["merged_rows"] = p.merged_rows, facts["expands"] = p.expands;
  facts["ahead_bytes"] = p.ahead_bytes, facts["tile_lines"] = p.tile_lines;
  facts["tiled_from"] = from(p.tiled_from), facts["merged_bytes"] = p.merged_bytes;
  facts["cached_bytes"] = p.cached_bytes;
  return facts;
}

KernelProfile profile_of(const nb::dict& facts) {
  const auto at = [&](const char* name) -> nb::object {
    if (!facts.contains(name))
      throw Error(ErrorKind::argument,
                  std::string("a kernel profile has ") + profile_numbers + "; this one has no " + name);
    return facts[name];
  };
  const auto number = [&](const char* name) {
    Index value = 0;
    if (!nb::try_cast(at(name), value))
      throw Error(ErrorKind::argument, std::string("a kernel profile's ") + name + " is no 64-bit integer");
    return value;
  };
  const auto from = [&](const char* name) { return at(name).is_none() ? KernelProfile::never : number(name); };
  KernelProfile p;
  p.rows = number("rows"), p.burst_bytes = number("burst_bytes"), p.stagger_bytes = number("stagger_bytes");
  p.paged_bytes = from("paged_bytes"), p.string_bytes = from("string_bytes");
  p.merged_rows = number("merged_rows"), p.expands = nb::cast<bool>(nb::bool_(at("expands")));
  // Which profiles that were measured earlier do not have.
  if (facts.contains("ahead_bytes")) p.ahead_bytes = number("ahead_bytes");
  if (facts.contains("tile_lines")) p.tile_lines = number("tile_lines");
  if (facts.contains("tiled_from")) p.tiled_from = from("tiled_from");
  if (facts.contains("merged_bytes")) p.merged_bytes = number("merged_bytes");
  if (facts.contains("cached_bytes")) p.cached_bytes = number("cached_bytes");
  check(p);
  return p;
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
          [](StripTuner* self, const std::optional<LogGP>& overheads, const std::string& file) {
            new (self) StripTuner(overheads.value_or(StripTuner::least_overheads), file);
          },
          nb::arg("overheads").none() = nb::none(), nb::arg("file") = "", "`file`: where choices are kept.")
      .def("keep", &StripTuner::keep,
           "Writes all that is settled to the file, with what others have written meanwhile.")
      .def("trouble", &StripTuner::trouble, "Why choices were not read or not kept the last time. Told once.")
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
          "choices", [](const StripTuner& self) { return to_list(self.choices()); },
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
  module.def("machine_profile_path", &machine_profile_path, "Where this machine's profile is kept.");
  module.def("strip_choices_path", &strip_choices_path, "Where it is kept what was found about strips.");
  module.def(
      "read_strip_choices", [](const std::string& path) { return to_list(read_strip_choices(path)); }, nb::arg("path"),
      "What `StripTuner.choices` gave, from a file.",
      nb::sig("def read_strip_choices(path: str) -> list[tuple[str, int, int, StripSchedule, float, float]]"));
  module.def(
      "kernel_tables",
      [] {
        std::vector<std::string> names;
        for (const auto* table : available_kernels()) names.emplace_back(table->name);
        return names;
      },
      "The copy kernels that this processor can run, the plain ones first. LONGSHORE_KERNELS=NAME asks for others than "
      "the last.");
  module.def("cpu_name", &cpu_name, "This processor, as it calls itself: \"AuthenticAMD family 25 model 17\".");
  module.def(
      "kernel_choice",
      [] {
        nb::gil_scoped_release release;
        const KernelChoice& choice = kernel_choice();
        nb::gil_scoped_acquire again;
        return nb::make_tuple(facts_of(choice.profile), choice.by);
      },
      "The profile of this process's copy kernels, a dict, and whence it comes. Chosen now if nothing has streamed "
      "yet.");
  module.def(
      "choose_kernel_profile",
      [](const nb::dict& facts, const std::string& by) {
        return choose_kernel_profile({profile_of(facts), by});
      },
      nb::arg("profile"), nb::arg("by"),
      "For this process's copy kernels. False where they have one already. Raises ArgumentError where a number is none "
      "that they can work with.");
  static const KernelChoice& (*const choose)() = &kernel_choice;
  module.attr("kernel_chooser") = nb::capsule(&choose);  // for the modules of MPI
  module.def("kernels_await_probe", &kernels_await_probe,
             "Whether this process's copy kernels have no profile yet, and a probe would be made for it.");
  module.def("keep_kernel_probe", &keep_kernel_probe, nb::arg("path"),
             "The file in which a probe leaves what it found. Where that cannot be written nothing is said.");
  module.def(
      "measure_kernels",
      [](int threads, double seconds) {
        const KernelMeasurement found = [&] {
          nb::gil_scoped_release release;
          return measure_kernels(kernels(), threads, seconds);
        }();
        nb::list trials;
        for (const auto& t : found.trials) {
          nb::dict trial = facts_of(t.profile);
          trial["copies"] = t.copies, trial["seconds"] = t.seconds, trial["seconds_low"] = t.seconds_low;
          trial["seconds_high"] = t.seconds_high, trial["chosen"] = t.chosen;
          trials.append(trial);
        }
        return nb::make_tuple(facts_of(found.profile), trials);
      },
      nb::arg("threads"), nb::arg("seconds"),
      "The profile that is best for this machine's copy kernels, a dict, and the candidates that were timed, with so "
      "many threads at once.");
  module.def(
      "kernels_name", [] { return kernels().name; }, "The copy kernels that this processor has: \"avx512\".");
}

}  // namespace longshore::python
