/// NumPy's allocator of array data (NEP 49) for memory that the processes of a node can map.
#include <algorithm>
#include <cstring>

#include "mpi/shared_heap.hpp"
#include "mpi_rooms.hpp"
#include "rooms.hpp"

namespace longshore::python {

namespace {

/// What NumPy's C API takes in a capsule of this name, as it has been since 1.22. Each array keeps the capsule of the
/// handler that made its data.
constexpr const char* capsule_name = "mem_handler";
struct Handler {
  char name[127];
  std::uint8_t version;
  void* context;
  void* (*malloc)(void* context, std::size_t bytes);
  void* (*calloc)(void* context, std::size_t count, std::size_t bytes);
  void* (*realloc)(void* context, void* data, std::size_t bytes);
  void (*free)(void* context, void* data, std::size_t bytes);
};

/// Two functions of the API, and where its table has them.
struct NumpyApi {
  PyObject* (*set_handler)(PyObject* capsule);
  PyObject* (*get_handler)();

  explicit NumpyApi(nb::handle table) {
    const auto functions = static_cast<void**>(PyCapsule_GetPointer(table.ptr(), nullptr));
    if (!functions) throw nb::python_error();
    set_handler = reinterpret_cast<decltype(set_handler)>(functions[304]);
    get_handler = reinterpret_cast<decltype(get_handler)>(functions[305]);
  }
  nb::object current() const { return taken(get_handler()); }
  void make_current(nb::handle capsule) const { taken(set_handler(capsule.ptr())); }

 private:
  static nb::object taken(PyObject* capsule) {
    if (!capsule) throw nb::python_error();
    return nb::steal(capsule);
  }
};

/// Takes large blocks from the heap and leaves the others, and what the heap has no place for, to the handler before
/// it. Whoever frees need not say how large a block was: the heap knows its own by their addresses.
struct SharedHandler {
  Handler handler;
  std::shared_ptr<mpi::SharedHeap> heap;
  std::size_t least;
  nb::object before;
  const Handler* rest;

  SharedHandler(std::shared_ptr<mpi::SharedHeap> from, Index least_bytes, nb::object handler_before)
      : handler{"longshore", 1, this, malloc, calloc, realloc, free},
        heap(std::move(from)),
        least(std::size_t(least_bytes)),
        before(std::move(handler_before)),
        rest(static_cast<const Handler*>(PyCapsule_GetPointer(before.ptr(), capsule_name))) {
    if (!rest) throw nb::python_error();
  }

 private:
  bool is_large(std::size_t bytes) const { return bytes >= least && bytes <= std::size_t(INT64_MAX); }
  /// Of the heap where it is large and can be had, else what `from_rest()` gives.
  template <class FromRest>
  void* take(std::size_t bytes, bool zeros, FromRest&& from_rest) {
    if (!is_large(bytes)) return from_rest();
    if (void* const block = heap->allocate(Index(bytes), zeros)) return block;
    void* const block = from_rest();
    if (block) heap->add_refused(block, Index(bytes));
    return block;
  }
  static SharedHandler& of(void* context) { return *static_cast<SharedHandler*>(context); }
  static void* malloc(void* context, std::size_t bytes) {
    const auto* rest = of(context).rest;
    return of(context).take(bytes, false, [&] { return rest->malloc(rest->context, bytes); });
  }
  static void* calloc(void* context, std::size_t count, std::size_t bytes) {
    const auto* rest = of(context).rest;
    const auto from_rest = [&] { return rest->calloc(rest->context, count, bytes); };
    std::size_t all = 0;
    return __builtin_mul_overflow(count, bytes, &all) ? from_rest() : of(context).take(all, true, from_rest);
  }
  static void* realloc(void* context, void* data, std::size_t bytes) {
    auto& [handler, heap, least, before, rest] = of(context);
    if (data && heap->contains(data)) {
      const auto old = static_cast<std::byte*>(data);
      if (of(context).is_large(bytes) && heap->resize(old, Index(bytes))) return old;
      void* const block = malloc(context, bytes);
      if (!block) return nullptr;
      std::memcpy(block, old, std::min(bytes, std::size_t(heap->bytes_of(old))));
      heap->free(old);
      return block;
    }
    // How large it was only the other handler knows.
    heap->remove_refused(data);
    void* const grown = rest->realloc(rest->context, data, bytes);
    if (!grown || !of(context).is_large(bytes)) return grown;
    void* const block = of(context).take(bytes, false, [&] { return grown; });
    if (block == grown) return grown;
    std::memcpy(block, grown, bytes);
    rest->free(rest->context, grown, bytes);
    return block;
  }
  static void free(void* context, void* data, std::size_t bytes) {
    auto& [handler, heap, least, before, rest] = of(context);
    if (data && heap->contains(data)) return heap->free(static_cast<std::byte*>(data));
    heap->remove_refused(data);
    rest->free(rest->context, data, bytes);
  }
};

/// The handler while it is on.
class NumpyMemory {
 public:
  NumpyMemory(nb::handle table, Index least, Index keep)
      : numpy_(table), before_(numpy_.current()), heap_(mpi::SharedHeap::open(keep)) {
    auto made = std::make_unique<SharedHandler>(heap_, least, before_);
    handler_ = nb::steal(PyCapsule_New(&made->handler, capsule_name, [](PyObject* capsule) {
      delete static_cast<SharedHandler*>(static_cast<Handler*>(PyCapsule_GetPointer(capsule, capsule_name))->context);
    }));
    if (!handler_.is_valid()) throw nb::python_error();
    static_cast<void>(made.release());
    numpy_.make_current(handler_);
  }
  void close() {
    if (!heap_) return;
    if (!numpy_.current().is(handler_))
      throw Error(ErrorKind::argument,
                  "another memory handler was switched on after this one, or in another thread or context: close "
                  "where it was switched on, the last one first");
    numpy_.make_current(before_);
    handler_.reset(), before_.reset();
    heap_->close(), heap_.reset();
  }

 private:
  NumpyApi numpy_;
  nb::object before_, handler_;
  std::shared_ptr<mpi::SharedHeap> heap_;
};

}  // namespace

void bind_numpy_memory(nb::module_& module) {
  nb::class_<NumpyMemory>(module, "NumpyMemory", "Use it through `longshore.share_numpy_memory`.")
      .def(nb::init<nb::handle, Index, Index>(), nb::arg("table"), nb::arg("least"), nb::arg("keep"),
           "`table`: NumPy's functions. `least`, `keep`: bytes.")
      .def("close", &NumpyMemory::close, "Once is enough.");
}

}  // namespace longshore::python
