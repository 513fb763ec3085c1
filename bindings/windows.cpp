#include "longshore/movers/window.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>

#include "longshore/movers/strips.hpp"
#include "longshore/plans/box_parts.hpp"
#include "parts.hpp"
#include "points.hpp"
#include "rooms.hpp"

namespace longshore::python {

namespace {

/// Bytes of an array that Python has looked at, and keeps.
std::byte* to_bytes(std::uintptr_t address) { return reinterpret_cast<std::byte*>(address); }

int get_strip_buffer(PyObject* self, Py_buffer* view, int flags) {
  auto* reader = nb::inst_ptr<StripReader>(nb::handle(self));
  return PyBuffer_FillInfo(view, self, reader->buffer(), Py_ssize_t(reader->buffer_bytes()), 0, flags);
}

PyType_Slot strip_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_strip_buffer)}, {0, nullptr}};

nb::list to_parts(std::vector<BlockPart>& parts) {
  nb::list list;
  for (auto& part : parts) list.append(nb::make_tuple(part.block, std::move(part.relation)));
  return list;
}

nb::list to_parts(const std::vector<BoxPart>& parts) {
  nb::list list;
  for (const auto& part : parts) list.append(nb::make_tuple(part.rank, AddressRelation(part.relation)));
  return list;
}

}  // namespace

void bind_windows(nb::module_& module) {
  const auto unlocked = nb::call_guard<nb::gil_scoped_release>();

  nb::class_<Window>(module, "OpenWindow", "Arrays laid open to other processes. Use it through `longshore.Window`.")
      .def("__len__", [](const Window& window) { return window.pieces().size(); })
      .def(
          "piece",
          [](const Window& window, Index number) {
            const auto& piece = window.piece(number);
            return nb::make_tuple(piece.owner, to_tuple(piece.shape), to_tuple(piece.strides), piece.seen != nullptr);
          },
          nb::arg("number"), "(owner, shape, strides in bytes, whether it is seen here) of an array.")
      .def_prop_ro("is_open", &Window::is_open)
      .def_prop_ro("progress", &Window::progress)
      .def("fence", &Window::fence, unlocked)
      .def("close", &Window::close, unlocked);

  module.def(
      "open_window",
      [](const Parts& parts, Index itemsize) {
        std::vector<LocalArray> arrays;
        for (const auto& part : parts.parts) arrays.push_back(part.array);
        return open_window(std::move(arrays), itemsize);
      },
      nb::arg("arrays"), nb::arg("itemsize"), "Of arrays of this process.");

  nb::class_<Access>(module, "Access", "A get or put under way.")
      .def("test", &Access::test, unlocked)
      .def("wait", &Access::wait, unlocked);

  nb::class_<Section>(module, "SectionOfWindow", "Elements of a window's arrays. Use it through `longshore.Section`.")
      .def(
          "__init__",
          [](Section* self, std::shared_ptr<Window> window, Index elements,
             const std::vector<std::pair<Index, AddressRelation>>& parts) {
            std::vector<Section::Part> made;
            for (const auto& [piece, relation] : parts) made.push_back({piece, relation});
            new (self) Section(std::move(window), elements, std::move(made));
          },
          nb::arg("window"), nb::arg("elements"), nb::arg("parts"))
      .def_prop_ro("reach", [](const Section& self) { return reach_name(self.reach()); })
      .def(
          "nbget",
          [](const Section& self, Index first, Index last, std::uintptr_t to) {
            return self.nbget(first, last, to_bytes(to));
          },
          nb::arg("first"), nb::arg("last"), nb::arg("to"), unlocked)
      .def(
          "get",
          [](const Section& self, Index first, Index last, std::uintptr_t to) { self.get(first, last, to_bytes(to)); },
          nb::arg("first"), nb::arg("last"), nb::arg("to"), unlocked)
      .def(
          "nbput",
          [](const Section& self, Index first, Index last, std::uintptr_t from) {
            return self.nbput(first, last, to_bytes(from));
          },
          nb::arg("first"), nb::arg("last"), nb::arg("source"), unlocked);

  nb::class_<StripReader>(module, "StripReader", nb::type_slots(strip_slots),
                          "The strips of a section, one after the other. Use it through `longshore.strips`.")
      .def(nb::init<Section, const StripSchedule&, Index>(), nb::arg("section"), nb::arg("schedule"), nb::arg("row"))
      .def(
          "next",
          [](StripReader& self) -> nb::object {
            std::optional<Strip> strip;
            {
              nb::gil_scoped_release released;
              strip = self.next();
            }
            if (!strip) return nb::none();
            return nb::make_tuple(strip->elements.first, strip->elements.last, strip->data - self.buffer());
          },
          "(first, last, where its bytes begin in the buffer) of the next strip; None after the last.",
          nb::sig("def next(self) -> tuple[int, int, int] | None"))
      .def_prop_ro("buffer_bytes", &StripReader::buffer_bytes)
      .def_prop_ro("communication_seconds", &StripReader::communication_seconds);

  module.def(
      "parts_of_box",
      [](const Layout& layout, const std::vector<Index>& first, const std::vector<Index>& last, Index itemsize) {
        return to_parts(parts_of_box(layout, first, last, itemsize));
      },
      nb::arg("layout"), nb::arg("first"), nb::arg("last"), nb::arg("itemsize"),
      "[(rank, its local array -> the dense box)] of the box [first, last).",
      nb::sig("def parts_of_box(layout: Layout, first: collections.abc.Sequence[int], last: "
              "collections.abc.Sequence[int], itemsize: int) -> list[tuple[int, AddressRelation]]"));
  module.def(
      "incoming_parts", [](const MotionPlan& plan, Index rank) { return to_parts(incoming_parts(plan, rank)); },
      nb::arg("plan"), nb::arg("rank"), "[(rank, its local array -> that of `rank` in the destination)].",
      nb::sig("def incoming_parts(plan: MotionPlan, rank: int) -> list[tuple[int, AddressRelation]]"));
  module.def(
      "incoming_blocks",
      [](const std::vector<BlockMotion>& motions, const nb::callable& grid, Index itemsize, const Region* block) {
        const auto grid_of = [&](Index source) {
          auto [region, strides] = nb::cast<std::pair<Region, std::vector<Index>>>(grid(source));
          return Grid{std::move(region), nullptr, std::move(strides), itemsize};
        };
        Grid to;
        if (block) to = {*block, nullptr, dense_strides(block->shape(), Order::C, itemsize), itemsize};
        auto parts = incoming_parts(motions, grid_of, Order::C, block ? &to : nullptr);
        return to_parts(parts);
      },
      nb::arg("motions"), nb::arg("grid"), nb::arg("itemsize"), nb::arg("block").none(),
      "[(block, its grid -> what the motions bring, one after the other, or as a dense array of `block`)]; "
      "grid(block) gives its region and strides in bytes.",
      nb::sig("def incoming_blocks(motions: collections.abc.Sequence[BlockMotion], grid: "
              "collections.abc.Callable[[int], tuple[Region, collections.abc.Sequence[int]]], itemsize: int, block: "
              "Region | None) -> list[tuple[int, AddressRelation]]"));
}

}  // namespace longshore::python
