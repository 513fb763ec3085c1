// The stored form of a map: "LSRM" and the version; the world, the size and flags (ascending, the kind of index); the
// name of the form; its content, which for "module" is the module's name and a list of words; a checksum of all before
// it. Words of 64 bits, little-endian. A map within a map has no header of its own.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "ranks/forms.hpp"
#include "ranks/lookup.hpp"
#include "ranks/make.hpp"

namespace longshore {
namespace ranks {

namespace {

constexpr StoredKind stored_kind{"LSRM", 2, "rank map"};
constexpr std::string_view nest_name = "nest", module_name = "module";

void write_nest(WordWriter& out, const AffineNest& nest) {
  out.index(nest.base()), out.index(nest.size() == 0 ? 0 : Index(nest.depth()));
  for (std::size_t k = 0; k < nest.depth() && nest.size() > 0; ++k)
    out.index(nest.axis(k).count), out.index(nest.axis(k).stride);
}

AffineNest read_nest(WordReader& in, const FormHead& head) {
  const Index base = in.index();
  std::vector<AffineNest::Axis> axes(std::size_t(in.count(2)));
  for (auto& axis : axes) axis.count = in.index(), axis.stride = in.index();
  if (head.size == 0) return AffineNest();
  return AffineNest(base, axes);
}

/// The form of this name.
template <std::size_t Which = 1>
RankMap::Form read_form(const std::string& name, WordReader& in, const FormHead& head) {
  if constexpr (Which == AllForms::size) {
    for (const auto* module : all_modules())
      if (module->name() == name) in.refuse("has a \"" + name + "\" as earlier versions stored it; make the map again");
    in.refuse("has a representation \"" + name + "\", which there is not");
  } else {
    using Form = AllForms::At<Which>;
    return Form::name == name ? keep(Form::stored(in, head)) : read_form<Which + 1>(name, in, head);
  }
}

/// What a module wrote: its name and words that only it can read.
RankMap::Form read_module(WordReader& in, const FormHead& head) {
  const auto name = in.text();
  const auto words = in.list();
  for (const auto* modules : {head.modules, &all_modules()})
    for (const auto* module : *modules)
      if (module->name() == name) {
        if (auto form = module->read(words, head.size, head.world)) return form;
        in.refuse("is of the module \"" + name + "\", which does not read it");
      }
  in.refuse("is of the module \"" + name + "\", which is not among those that it is read with");
}

Checked check_form(const RankMap& map, const FormHead& head) {
  if (map.nest() != nullptr) {
    if (map.size() > 0 && map.nest()->highest() >= head.world) refuse_rank(map.nest()->highest(), 0, head.world);
    if (map.ascending() != map.nest()->ascending()) throw Error(ErrorKind::argument, "nest: the order is another");
    return Checked::all;
  }
  return visit_form(*std::get<1>(map.form()), [&](const auto& form) { return form.check(head); });
}

/// Looks at every member.
void check_members(const RankMap& map) {
  Index lowest = INT64_MAX, highest = -1, before = -1, position = 0;
  Members(map).each_piece([&](Index, std::span<const Index> values) {
    for (const Index w : values) {
      if (w < 0 || w >= map.world()) refuse_rank(w, position, map.world());
      if (map.ascending() && w <= before)
        throw Error(ErrorKind::argument, "rank " + std::to_string(w) + " at position " + std::to_string(position) +
                                             " follows rank " + std::to_string(before) + " in a map that ascends");
      lowest = std::min(lowest, w), highest = std::max(highest, w), before = w, ++position;
    }
  });
  if (!map.ascending()) check_distinct(Members(map), lowest, highest);
}

}  // namespace

void write_map(WordWriter& out, const RankMap& map) {
  out.index(map.world()), out.index(map.size());
  out.word(std::uint64_t(map.ascending()) | std::uint64_t(map.lookup()) << 8);
  if (const auto* nest = map.nest()) {
    out.text(nest_name);
    write_nest(out, *nest);
  } else if (const auto* custom = custom_form_of(map)) {
    if (const auto words = custom->words()) {
      out.text(module_name), out.text(custom->name());
      out.list(*words);
    } else {
      out.text(PackedForm::name);
      PackedForm(Members(map), map.world()).write(out);
    }
  } else {
    visit_form(*std::get<1>(map.form()), [&](const auto& form) {
      if constexpr (requires { form.write(out); }) {
        out.text(form.name);
        form.write(out);
      }
    });
  }
}

bool same_words(const RankMap& a, const RankMap& b) {
  WordWriter of_a, of_b;
  write_map(of_a, a.with_lookup(LookupKind::none)), write_map(of_b, b.with_lookup(LookupKind::none));
  return of_a.written() == of_b.written();
}

RankMap read_map(WordReader& in, const FormHead& within) {
  FormHead head = within;
  head.world = in.within(0, RankMap::largest_world, "a world of");
  head.size = in.within(0, std::min(head.world, within.most_members), "a number of members");
  const auto flags = in.word();
  const auto lookup = flags >> 8;
  head.ascending = flags & 1;
  if ((flags & 0xfe) != 0 || lookup > std::uint64_t(LookupKind::shortcuts)) in.refuse("has unknown flags");
  if (head.size < 2 && !head.ascending) in.refuse("has fewer than two members that do not ascend");
  const auto name = in.text();
  RankMap::Form form = name == nest_name     ? RankMap::Form(read_nest(in, head))
                       : name == module_name ? read_module(in, head)
                                             : read_form(name, in, head);
  RankMap map(std::move(form), head.world, head.ascending);
  if (map.size() != head.size)
    in.refuse("has " + std::to_string(map.size()) + " members, not " + std::to_string(head.size));
  if (check_form(map, head) == Checked::structure) check_members(map);
  // A map within a map has its index from the outer one.
  return lookup == 0 ? map : map.with_lookup(LookupKind(lookup));
}

}  // namespace ranks

std::vector<std::byte> RankMap::to_bytes() const {
  WordWriter out(ranks::stored_kind);
  ranks::write_map(out, *this);
  return std::move(out).finish();
}

RankMap RankMap::from_bytes(std::span<const std::byte> bytes, Index most_members) {
  return from_bytes(bytes, most_members, all_modules());
}

RankMap RankMap::from_bytes(std::span<const std::byte> bytes, Index most_members, const Modules& modules) {
  WordReader in(ranks::stored_kind, bytes);
  try {
    auto map = ranks::read_map(in, {0, 0, true, most_members, &modules});
    in.end();
    return map;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::argument) throw;
    in.refuse(std::string("does not hold together: ") + error.what());
  } catch (const std::bad_alloc&) {
    in.refuse("asks for more memory than there is");
  }
}

bool RankMap::validate(std::string& reason) const {
  try {
    if (ranks::check_form(*this, {size_, world_, ascending_, size_}) == ranks::Checked::structure)
      ranks::check_members(*this);
    // A few members, from one end to the other, are where they are found.
    constexpr Index looks = 1000;
    for (Index k = 0; k < std::min(looks, size_); ++k) {
      const Index i = Index(Wide(size_ - 1) * k / std::max<Index>(1, std::min(looks, size_) - 1)), w = select(i);
      const bool answers = ascending_ || nest() || lookup_ || size_ <= looks;
      if (answers && rank(w) != i)
        throw Error(ErrorKind::argument, "rank " + std::to_string(w) + " is at position " + std::to_string(i) +
                                             ", but found at " + std::to_string(rank(w)));
    }
    return true;
  } catch (const Error& error) {
    reason = error.what();
    return false;
  }
}

}  // namespace longshore
