#include "longshore/encodings/relation_cache.hpp"

#include "relation_buffers.hpp"
#include "states.hpp"

namespace longshore::python {

namespace {

nb::bytes to_bytes(const std::string& text) { return nb::bytes(text.data(), text.size()); }
std::string from_bytes(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

/// Calls into Python from a function that has let go of the interpreter. What a store raises becomes a failure that the
/// cache counts; what is no Exception (an interrupt) goes on.
template <class F>
auto store_call(F&& f) {
  const nb::gil_scoped_acquire acquire;
  try {
    return f();
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_Exception)) throw;
    throw Error(ErrorKind::transport, error.what());
  } catch (const nb::cast_error&) {
    throw Error(ErrorKind::transport, "the store's load() returned neither bytes nor None");
  }
}

/// A choice among units that Python makes: a callable from a list of them to one of them, or to its position.
class PythonPolicy : public EvictionPolicy {
 public:
  explicit PythonPolicy(nb::object choose) : choose_(std::move(choose)) {
    const nb::object name = nb::getattr(choose_, "__name__", nb::getattr(choose_.type(), "__name__"));
    name_ = nb::cast<std::string>(nb::str(name));
  }
  ~PythonPolicy() override {
    const nb::gil_scoped_acquire acquire;
    choose_.reset();
  }
  std::string_view name() const override { return name_; }
  std::size_t victim(std::span<const FlushUnit* const> units) override {
    const nb::gil_scoped_acquire acquire;
    nb::list list;
    for (const auto* unit : units) list.append(nb::cast(*unit));
    const nb::object choice = choose_(list);
    for (std::size_t k = 0; k < units.size(); ++k)
      if (choice.is(list[k])) return k;
    Index position = -1;
    if (!nb::try_cast(choice, position) || position < 0)
      throw Error(ErrorKind::argument, "the policy " + name_ + " returned none of the units that it was given");
    return std::size_t(position);
  }

 private:
  nb::object choose_;
  std::string name_;
};

/// An object with save(name, record), load(name) and remove(name), as `longshore._cache` makes one.
class PythonStore : public BackingStore {
 public:
  explicit PythonStore(nb::object store) : store_(std::move(store)) {}
  ~PythonStore() override {
    const nb::gil_scoped_acquire acquire;
    store_.reset();
  }
  void save(const std::string& name, std::span<const std::byte> record) override {
    store_call([&] {
      store_.attr("save")(to_bytes(name), nb::bytes(reinterpret_cast<const char*>(record.data()), record.size()));
    });
  }
  std::optional<std::vector<std::byte>> load(const std::string& name) override {
    return store_call([&]() -> std::optional<std::vector<std::byte>> {
      const nb::object record = store_.attr("load")(to_bytes(name));
      if (record.is_none()) return std::nullopt;
      const auto bytes = nb::cast<nb::bytes>(record);
      const auto* first = reinterpret_cast<const std::byte*>(bytes.c_str());
      return std::vector<std::byte>(first, first + bytes.size());
    });
  }
  void remove(const std::string& name) override {
    store_call([&] { store_.attr("remove")(to_bytes(name)); });
  }

 private:
  nb::object store_;
};

/// A kept relation as Python holds it.
struct Kept {
  CachedPointer relation;

  /// The program that is kept, or else one that is compiled now.
  template <class Program>
  nb::object program(nb::handle self, const Program* kept) const {
    if (kept) return nb::cast(kept, nb::rv_policy::reference_internal, self);
    return nb::cast(std::make_unique<Program>(relation->encoding().decode()));
  }
};

constexpr const char* kept_names[] = {"encoding", "program", "assembler", "disassembler"};

KeptProgram kept_of(const std::string& name) {
  for (int k = 0; k < 4; ++k)
    if (name == kept_names[k]) return KeptProgram(k);
  throw Error(ErrorKind::argument, "keep='" + name + "'; there are encoding, program, assembler, disassembler");
}

CacheHint hint_of(const nb::bytes& group, const std::string& keep, bool pin, bool soon, Index expected_uses) {
  if (expected_uses < 0) throw Error(ErrorKind::argument, "expected_uses is " + std::to_string(expected_uses));
  return {from_bytes(group), kept_of(keep), pin, soon, expected_uses};
}

nb::object to_python(const CachedPointer& relation) { return relation ? nb::cast(Kept{relation}) : nb::none(); }

}  // namespace

void bind_relation_cache(nb::module_& module) {
  nb::class_<FlushUnit>(module, "FlushUnit", "longshore.FlushUnit, with a name that is bytes.")
      .def_prop_ro("name", [](const FlushUnit& u) { return to_bytes(u.name); })
      .def_ro("group", &FlushUnit::group, "True for a group.")
      .def_ro("relations", &FlushUnit::relations)
      .def_ro("bytes", &FlushUnit::bytes)
      .def_ro("make_ns", &FlushUnit::make_ns, "Nanoseconds that making its relations took, all together.")
      .def_ro("uses", &FlushUnit::uses, "Uses since they were stored.")
      .def_ro("stored", &FlushUnit::stored, "The cache's operation in which the first of them was stored.")
      .def_ro("last_use", &FlushUnit::last_use, "The cache's operation in which they were last used.");

  def_state(nb::class_<CacheStatistics>(module, "CacheStatistics", "What a cache has done and what it holds."),
            anything, &CacheStatistics::hits, &CacheStatistics::misses, &CacheStatistics::restores,
            &CacheStatistics::evictions, &CacheStatistics::spills, &CacheStatistics::damaged,
            &CacheStatistics::store_failures, &CacheStatistics::not_kept, &CacheStatistics::relations,
            &CacheStatistics::groups, &CacheStatistics::bytes, &CacheStatistics::pinned_bytes,
            &CacheStatistics::ceiling_bytes, &CacheStatistics::most_bytes, &CacheStatistics::largest_bytes)
      .def_ro("hits", &CacheStatistics::hits, "Asked for and kept, or being made by another thread.")
      .def_ro("misses", &CacheStatistics::misses, "Asked for and neither kept nor restored.")
      .def_ro("restores", &CacheStatistics::restores,
              "Relations that came back from the store, groups' other members included.")
      .def_ro("evictions", &CacheStatistics::evictions, "Relations flushed.")
      .def_ro("spills", &CacheStatistics::spills, "Records written to the store, one a group.")
      .def_ro("damaged", &CacheStatistics::damaged, "Records of the store that did not hold together: misses.")
      .def_ro("store_failures", &CacheStatistics::store_failures, "The store could not do what it was asked.")
      .def_ro("not_kept", &CacheStatistics::not_kept,
              "Larger than the ceiling, or than what pinned relations leave of it.")
      .def_ro("relations", &CacheStatistics::relations, "Relations kept now.")
      .def_ro("groups", &CacheStatistics::groups, "Groups kept now.")
      .def_ro("bytes", &CacheStatistics::bytes, "Bytes in use now.")
      .def_ro("pinned_bytes", &CacheStatistics::pinned_bytes, "Bytes now of what is pinned, groups whole.")
      .def_ro("ceiling_bytes", &CacheStatistics::ceiling_bytes, "Bytes allowed.")
      .def_ro("most_bytes", &CacheStatistics::most_bytes, "The most bytes there have been at once.")
      .def_ro("largest_bytes", &CacheStatistics::largest_bytes, "Bytes of the largest relation, kept or not.");

  nb::class_<CacheEntry>(module, "CacheEntry", "A relation that a cache keeps.")
      .def_prop_ro("key_bytes", [](const CacheEntry& e) { return to_bytes(e.key); })
      .def_prop_ro("group_bytes", [](const CacheEntry& e) { return to_bytes(e.group); })
      .def_prop_ro(
          "kind", [](const CacheEntry& e) { return std::string(encoding_name(e.kind)); }, "Its encoding.")
      .def_prop_ro(
          "keep", [](const CacheEntry& e) { return kept_names[int(e.keep)]; }, "What is compiled of it.")
      .def_ro("elements", &CacheEntry::elements)
      .def_ro("bytes", &CacheEntry::bytes)
      .def_ro("uses", &CacheEntry::uses)
      .def_ro("make_ns", &CacheEntry::make_ns)
      .def_ro("pinned", &CacheEntry::pinned)
      .def_ro("soon", &CacheEntry::soon)
      .def_ro("done", &CacheEntry::done);

  nb::class_<Kept>(module, "CachedRelation", "A relation from a cache; it stays usable after the cache has flushed it.")
      .def_prop_ro(
          "encoding", [](const Kept& k) { return k.relation->encoding(); }, "The encoding.")
      .def_prop_ro(
          "relation", [](const Kept& k) { return k.relation->encoding().decode(); }, "The relation, decoded now.")
      .def_prop_ro(
          "keep", [](const Kept& k) { return kept_names[int(k.relation->kept())]; }, "What is compiled of it and kept.")
      .def_prop_ro(
          "program",
          [](nb::handle self) {
            const auto& kept = nb::cast<const Kept&>(self);
            return kept.program(self, kept.relation->program());
          },
          "Source -> destination: kept, or else compiled now.", nb::sig("def program(self) -> RelationProgram"))
      .def_prop_ro(
          "assembler",
          [](nb::handle self) {
            const auto& kept = nb::cast<const Kept&>(self);
            return kept.program(self, kept.relation->assembler());
          },
          "Source -> message: kept, or else compiled now.", nb::sig("def assembler(self) -> Assembler"))
      .def_prop_ro(
          "disassembler",
          [](nb::handle self) {
            const auto& kept = nb::cast<const Kept&>(self);
            return kept.program(self, kept.relation->disassembler());
          },
          "Message -> destination: kept, or else compiled now.", nb::sig("def disassembler(self) -> Disassembler"))
      .def_prop_ro(
          "bytes", [](const Kept& k) { return k.relation->bytes(); }, "What a cache counts, its key aside.")
      .def("__repr__", [](const Kept& k) {
        const auto& encoding = k.relation->encoding();
        return "<longshore.CachedRelation: " + std::to_string(encoding.elements()) + " elements as " +
               std::string(encoding_name(encoding.kind())) + ", " + std::to_string(k.relation->bytes()) + " bytes>";
      });

  const auto no_group = nb::arg("group") = nb::bytes("", 0);
  nb::class_<RelationCache>(module, "RelationCache", "longshore.RelationCache, with keys and groups that are bytes.")
      .def(
          "__init__",
          [](RelationCache* self, Index ceiling, const nb::object& policy, const nb::object& store) {
            std::shared_ptr<EvictionPolicy> chosen;
            if (nb::isinstance<nb::str>(policy))
              chosen = eviction_policy(nb::cast<std::string>(policy));
            else
              chosen = std::make_shared<PythonPolicy>(policy);
            std::shared_ptr<BackingStore> backing;
            if (nb::isinstance<nb::str>(store))
              backing = std::make_shared<DirectoryStore>(nb::cast<std::string>(store));
            else if (!store.is_none())
              backing = std::make_shared<PythonStore>(store);
            new (self) RelationCache(ceiling, std::move(chosen), std::move(backing));
          },
          nb::arg("ceiling"), nb::arg("policy") = "lru", nb::arg("store") = nb::none())
      .def(
          "get_or_make",
          [](RelationCache& self, const nb::bytes& key, const nb::object& maker, const nb::bytes& group,
             const std::string& keep, bool pin, bool soon, Index expected_uses) {
            const auto name = from_bytes(key);
            const auto hint = hint_of(group, keep, pin, soon, expected_uses);
            CachedPointer relation;
            {
              nb::gil_scoped_release release;
              relation = self.get_or_make(
                  name,
                  [&] {
                    const nb::gil_scoped_acquire acquire;
                    return nb::cast<Encoding>(maker());
                  },
                  hint);
            }
            return to_python(relation);
          },
          nb::arg("key"), nb::arg("maker"), no_group, nb::arg("keep") = "encoding", nb::arg("pin") = false,
          nb::arg("soon") = false, nb::arg("expected_uses") = 0,
          nb::sig("def get_or_make(self, key: bytes, maker: object, group: bytes = b'', keep: str = 'encoding', pin: "
                  "bool = False, soon: bool = False, expected_uses: int = 0) -> CachedRelation"))
      .def(
          "get",
          [](RelationCache& self, const nb::bytes& key, const nb::bytes& group) {
            const auto name = from_bytes(key), group_name = from_bytes(group);
            CachedPointer relation;
            {
              nb::gil_scoped_release release;
              relation = self.get(name, group_name);
            }
            return to_python(relation);
          },
          nb::arg("key"), no_group, nb::sig("def get(self, key: bytes, group: bytes = b'') -> CachedRelation | None"))
      .def(
          "put",
          [](RelationCache& self, const nb::bytes& key, const Encoding& encoding, const nb::bytes& group,
             const std::string& keep, bool pin, bool soon, Index expected_uses, double make_ns) {
            const auto name = from_bytes(key);
            const auto hint = hint_of(group, keep, pin, soon, expected_uses);
            nb::gil_scoped_release release;
            return self.put(name, encoding, hint, make_ns);
          },
          nb::arg("key"), nb::arg("encoding"), no_group, nb::arg("keep") = "encoding", nb::arg("pin") = false,
          nb::arg("soon") = false, nb::arg("expected_uses") = 0, nb::arg("make_ns") = 0.0)
      .def(
          "contains",
          [](RelationCache& self, const nb::bytes& key) {
            const auto name = from_bytes(key);
            nb::gil_scoped_release release;
            return self.contains(name);
          },
          nb::arg("key"))
      .def(
          "pin",
          [](RelationCache& self, const nb::bytes& key, bool pinned) {
            const auto name = from_bytes(key);
            nb::gil_scoped_release release;
            self.pin(name, pinned);
          },
          nb::arg("key"), nb::arg("pinned") = true)
      .def(
          "soon",
          [](RelationCache& self, const nb::bytes& key) {
            const auto name = from_bytes(key);
            nb::gil_scoped_release release;
            self.soon(name);
          },
          nb::arg("key"))
      .def(
          "done",
          [](RelationCache& self, const nb::bytes& key) {
            const auto name = from_bytes(key);
            nb::gil_scoped_release release;
            self.done(name);
          },
          nb::arg("key"))
      .def(
          "flush",
          [](RelationCache& self, const nb::bytes& key) {
            const auto name = from_bytes(key);
            nb::gil_scoped_release release;
            self.flush(name);
          },
          nb::arg("key"))
      .def("flush_all", &RelationCache::flush_all, nb::call_guard<nb::gil_scoped_release>())
      .def(
          "erase",
          [](RelationCache& self, const nb::bytes& key, const nb::bytes& group) {
            const auto name = from_bytes(key), group_name = from_bytes(group);
            nb::gil_scoped_release release;
            self.erase(name, group_name);
          },
          nb::arg("key"), no_group)
      .def("statistics", &RelationCache::statistics, nb::call_guard<nb::gil_scoped_release>())
      .def("entries", &RelationCache::entries, nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("policy", &RelationCache::policy_name);
}

}  // namespace longshore::python
