#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include <longshore/copies/kernels.hpp>
#include <longshore/encodings/encoding.hpp>
#include "loops.hpp"
#include "pack.hpp"
#include "timed.hpp"

namespace longshore::bench {

namespace {

/// Something that moves bytes from one memory to another, to be timed without Python.
class Carrier {
 public:
  virtual ~Carrier() = default;
  virtual void run(std::byte* to, const std::byte* from) const = 0;
};
using Carried = std::unique_ptr<Carrier>;

template <class F>
class Carries final : public Carrier {
 public:
  explicit Carries(F run) : run_(std::move(run)) {}
  void run(std::byte* to, const std::byte* from) const override { run_(to, from); }

 private:
  F run_;
};

template <class F>
Carried carry(F run) {
  return std::make_unique<Carries<F>>(std::move(run));
}

/// One contiguous copy, as the best of what people use.
void copy_contiguous(std::byte* to, const std::byte* from, Index n, const std::string& how) {
  if (how == "temporal") {
    std::memcpy(to, from, std::size_t(n));
  } else if (how == "non-temporal") {
    kernels(Stores::streaming).copy(to, from, n, Stores::streaming);
    kernels().fence();
  } else if (how == "prefetched") {
    constexpr Index piece = 256, ahead = 1024;
    Index at = 0;
    for (; at + piece + ahead <= n; at += piece) {
      for (Index line = 0; line < piece; line += 64) __builtin_prefetch(from + at + ahead + line);
      std::memcpy(to + at, from + at, piece);
    }
    std::memcpy(to + at, from + at, std::size_t(n - at));
#if defined(__x86_64__)
  } else if (how == "rep movsb") {
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
#endif
  } else {
    throw Error(ErrorKind::argument, "this processor has no copy \"" + how + "\"");
  }
}

const PackLoops& loops_named(const std::string& name) {
  for (const auto* loops : pack_loops())
    if (name == loops->name) return *loops;
  throw Error(ErrorKind::argument, "this CPU has no plain loops \"" + name + "\"");
}

/// (to, from, block, loops of (count, to, from)), all in bytes, the outermost loop first.
using NestWords = std::tuple<Index, Index, Index, std::vector<std::tuple<Index, Index, Index>>>;

Carried nest_carrier(const std::string& name, const std::vector<NestWords>& given) {
  struct Placed {
    Index to, from;
    PackNest nest;
    NestFunction run;
  };
  std::vector<Placed> all;
  for (const auto& [to, from, block, loops] : given) {
    if (loops.size() > 3)
      throw Error(ErrorKind::argument, std::to_string(loops.size()) + " loops; a plain nest has at most 3");
    PackNest nest{block, {}};
    for (std::size_t k = 0; k < loops.size(); ++k) {
      const auto& [count, to_stride, from_stride] = loops[k];
      nest.loops[3 - loops.size() + k] = {count, to_stride, from_stride};
    }
    all.push_back({to, from, nest, loops_named(name).nest(nest)});
  }
  return carry([all = std::move(all)](std::byte* to, const std::byte* from) {
    for (const auto& part : all) part.run(to + part.to, from + part.from, part.nest);
  });
}

using Places = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

Carried list_carrier(const std::string& name, Index block, const Places& places, bool gathers) {
  const auto& loops = loops_named(name);
  const auto list = gathers ? loops.gather(block) : loops.scatter(block);
  if (list == nullptr)
    throw Error(ErrorKind::argument, "no plain loop takes lists of " + std::to_string(block) + "-byte blocks");
  return carry([=](std::byte* to, const std::byte* from) { list(to, from, places.data(), Index(places.size())); });
}

/// MPI_Pack and MPI_Unpack of one instance of a datatype, by address: this module is linked with no MPI. `Handle` is
/// what the library's handles are, an int or a pointer.
template <class Handle>
Carried mpi_carrier(std::uintptr_t function, std::int64_t type_bits, std::int64_t comm_bits, int bytes, bool packs) {
  using Pack = int (*)(const void*, int, Handle, void*, int, int*, Handle);
  using Unpack = int (*)(const void*, int, int*, void*, int, Handle, Handle);
  const auto handle = [](std::int64_t bits) {
    if constexpr (std::is_pointer_v<Handle>)
      return reinterpret_cast<Handle>(bits);
    else
      return Handle(bits);
  };
  const Handle type = handle(type_bits), comm = handle(comm_bits);
  return carry([=](std::byte* to, const std::byte* from) {
    int position = 0;
    const int code = packs ? reinterpret_cast<Pack>(function)(from, 1, type, to, bytes, &position, comm)
                           : reinterpret_cast<Unpack>(function)(from, bytes, &position, to, 1, type, comm);
    if (code != 0) throw Error(ErrorKind::transport, "MPI answers with error " + std::to_string(code));
  });
}

}  // namespace

void bind_assembly(nb::module_& module) {
  nb::class_<Carrier>(module, "Carrier", "Moves bytes between two addresses, and is timed doing so.")
      .def(
          "seconds",
          [](const Carrier& carrier, std::uintptr_t to_address, std::uintptr_t from_address, Index passes) {
            auto* to = reinterpret_cast<std::byte*>(to_address);
            const auto* from = reinterpret_cast<const std::byte*>(from_address);
            return timed(passes, [&] { carrier.run(to, from); });
          },
          nb::arg("to"), nb::arg("from_"), nb::arg("passes"), nb::call_guard<nb::gil_scoped_release>(),
          "The mean seconds of one of so many passes. The addresses are trusted.");

  module.def(
      "copy_bytes",
      [](std::uintptr_t destination, std::uintptr_t source, Index n, const std::string& how) {
        copy_contiguous(reinterpret_cast<std::byte*>(destination), reinterpret_cast<const std::byte*>(source), n, how);
      },
      nb::arg("destination"), nb::arg("source"), nb::arg("n"), nb::arg("how"), nb::call_guard<nb::gil_scoped_release>(),
      "One contiguous copy of n bytes between addresses: \"temporal\" (memcpy), \"non-temporal\", \"rep movsb\" or "
      "\"prefetched\". ValueError where the processor has no such way.");
  module.def(
      "copy_carrier",
      [](Index bytes) {
        return carry([=](std::byte* to, const std::byte* from) { std::memcpy(to, from, std::size_t(bytes)); });
      },
      nb::arg("bytes"), "One memcpy.");
  module.def(
      "pack_loops",
      [] {
        std::vector<std::string> names;
        for (const auto* loops : pack_loops()) names.emplace_back(loops->name);
        return names;
      },
      "The instruction sets for which there are plain loops that this CPU can run.");
  module.def("nest_carrier", &nest_carrier, nb::arg("name"), nb::arg("nests"),
             "Plain loop nests, one after the other: (to, from, block, loops of (count, to, from)) in bytes, the "
             "outermost first.");
  module.def("list_carrier", &list_carrier, nb::arg("name"), nb::arg("block"), nb::arg("places"), nb::arg("gathers"),
             "A plain loop over a list of places, in blocks of so many bytes: to a dense message, or from one.");
  module.def(
      "assembler_carrier",
      [](const Assembler& assembler) {
        return carry([&assembler](std::byte* to, const std::byte* from) { assembler.run(to, from); });
      },
      nb::arg("assembler"), nb::keep_alive<0, 1>(), "A compiled assembler.");
  module.def(
      "disassembler_carrier",
      [](const Disassembler& disassembler) {
        return carry([&disassembler](std::byte* to, const std::byte* from) { disassembler.run(to, from); });
      },
      nb::arg("disassembler"), nb::keep_alive<0, 1>(), "A compiled disassembler.");
  module.def(
      "encoding_carrier",
      [](const Encoding& encoding, bool assembles) {
        return carry([&encoding, assembles](std::byte* to, const std::byte* from) {
          if (assembles)
            encoding.assemble(to, from, 0, encoding.elements());
          else
            encoding.disassemble(to, from, 0, encoding.elements());
        });
      },
      nb::arg("encoding"), nb::arg("assembles"), nb::keep_alive<0, 1>(), "An encoding, decoded symbol by symbol.");
  module.def(
      "mpi_carrier",
      [](std::uintptr_t function, Index handle_bytes, std::int64_t type, std::int64_t comm, int bytes, bool packs) {
        if (handle_bytes == Index(sizeof(int))) return mpi_carrier<int>(function, type, comm, bytes, packs);
        return mpi_carrier<void*>(function, type, comm, bytes, packs);
      },
      nb::arg("function"), nb::arg("handle_bytes"), nb::arg("type"), nb::arg("comm"), nb::arg("bytes"),
      nb::arg("packs"),
      "MPI_Pack or MPI_Unpack, by address, of one instance of a datatype. Handles are ints or pointers.");
}

}  // namespace longshore::bench
