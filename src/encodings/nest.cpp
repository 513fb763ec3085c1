// The loop nest: the relation's own parts, written down.
#include "encodings/forms.hpp"

namespace longshore {

namespace {

using Part = AddressRelation::Part;

/// No offset that a nest is made of may be larger, so that sums of a few cannot overflow.
constexpr Index offset_limit = Index{1} << 60;

Index checked_offset(WordReader& in) {
  const Index value = in.index();
  if (value > offset_limit || value < -offset_limit) in.refuse("has a stride of " + std::to_string(value) + " bytes");
  return value;
}

/// How far n steps go must be an offset too.
void check_reach(Index n, Index step) {
  Index reach;
  if (__builtin_mul_overflow(n, step, &reach) || reach > offset_limit || reach < -offset_limit)
    refuse_encoding("has " + std::to_string(n) + " steps of " + std::to_string(step));
}

struct NestForm : Form {
  std::shared_ptr<const AddressRelation> relation;

  EncodingKind kind() const override { return EncodingKind::nest; }
  Index encoded_bytes() const override {
    WordWriter out;
    write(out);
    return Index(out.written().size());
  }
  Index symbols() const override {
    Index n = 0;
    for (const auto& part : relation->parts()) {
      if (const auto* runs = std::get_if<AddressRelation::RunList>(&part)) n += Index(runs->size());
      if (const auto* pairs = std::get_if<AddressRelation::PairList>(&part)) n += Index(pairs->size());
      if (const auto* list = std::get_if<PackedList>(&part)) n += list->source().size();
      if (const auto* nest = std::get_if<LoopNest>(&part)) {
        n += 1;
        for (const auto& axis : nest->axes())
          for (const auto& period : axis.runs.periods()) n += Index(period.runs.size());
      }
    }
    return n;
  }
  double symbol_ns() const override { return 3.5; }
  std::unique_ptr<RunReader> reader() const override { return relation->reader(); }
  const AddressRelation* as_it_is() const override { return relation.get(); }

  void write(WordWriter& out) const override {
    out.index(Index(relation->parts().size()));
    for (const auto& part : relation->parts()) {
      out.index(Index(part.index()));
      std::visit([&](const auto& list) { write_part(out, list); }, part);
    }
  }

  static void write_part(WordWriter& out, const LoopNest& nest) {
    out.index(nest.source_base()), out.index(nest.destination_base());
    out.index(Index(nest.axes().size()));
    for (const auto& axis : nest.axes()) {
      out.index(axis.source_stride), out.index(axis.destination_stride);
      out.index(Index(axis.runs.periods().size()));
      for (const auto& period : axis.runs.periods()) {
        out.index(period.repeats), out.index(period.source_period), out.index(period.destination_period);
        out.index(Index(period.runs.size()));
        for (const auto& run : period.runs)
          for (const Index x :
               {run.source, run.destination, run.length, run.count, run.source_step, run.destination_step})
            out.index(x);
      }
    }
  }
  static void write_part(WordWriter& out, const AddressRelation::RunList& runs) {
    out.index(Index(runs.size()));
    for (const auto& run : runs)
      for (const Index x : {run.source, run.destination, run.count, run.source_step, run.destination_step})
        out.index(x);
  }
  static void write_part(WordWriter& out, const AddressRelation::PairList& pairs) {
    out.index(Index(pairs.size()));
    for (const auto& pair : pairs) out.index(pair.source), out.index(pair.destination);
  }
  static void write_part(WordWriter& out, const PackedList& list) { write_list(out, list); }
};

LoopNest read_loops(WordReader& in, Index element_bytes) {
  const Index source = checked_offset(in), destination = checked_offset(in);
  std::vector<RelationAxis> axes(std::size_t(in.count(3)));
  if (axes.size() > 64) in.refuse("has a nest of " + std::to_string(axes.size()) + " loops");
  for (auto& axis : axes) {
    axis.source_stride = checked_offset(in), axis.destination_stride = checked_offset(in);
    std::vector<PairedPeriod> periods(std::size_t(in.count(4)));
    Index position = 0;  // the global index says nothing here; the position is as good
    for (auto& period : periods) {
      period.repeats = in.index(), period.source_period = checked_offset(in),
      period.destination_period = checked_offset(in);
      period.runs.resize(std::size_t(in.count(6)));
      if (period.repeats < 1 || period.runs.empty())
        in.refuse("has a loop of " + std::to_string(period.repeats) + " goes around nothing");
      check_reach(period.repeats, period.source_period), check_reach(period.repeats, period.destination_period);
      for (auto& run : period.runs) {
        run.source = checked_offset(in), run.destination = checked_offset(in), run.length = in.index(),
        run.count = in.index();
        run.source_step = checked_offset(in), run.destination_step = checked_offset(in);
        if (run.length < 1 || run.count < 1)
          in.refuse("has a run of " + std::to_string(run.length) + " x " + std::to_string(run.count));
        check_reach(run.length, 1), check_reach(run.count, run.source_step),
            check_reach(run.count, run.destination_step);
        check_reach(run.count, run.length);
        run.global = position, run.global_step = run.count > 1 ? run.length : 0;
        position = checked_add(position, checked_mul(run.length, run.count));
      }
      period.global_period = period.repeats > 1 ? period.elements_per_period() : 0;
      position = checked_add(position, checked_mul(period.elements_per_period(), period.repeats - 1));
      check_reach(position, 1);
    }
    axis.runs = PairedRuns(std::move(periods));
    if (axis.runs.empty()) in.refuse("has an empty loop");
  }
  return LoopNest(element_bytes, std::move(axes), source, destination);
}

}  // namespace

FormPointer make_nest(const AddressRelation& relation) {
  auto form = std::make_shared<NestForm>();
  form->relation = std::make_shared<const AddressRelation>(relation.canonical());
  return form;
}

FormPointer read_nest(WordReader& in, const FormHeader& header) {
  std::vector<Part> parts(std::size_t(in.count(2)), Part(AddressRelation::PairList()));
  for (auto& part : parts) {
    const auto which = in.index();
    if (which == 0) {
      part = read_loops(in, header.element_bytes);
    } else if (which == 1) {
      AddressRelation::RunList runs(std::size_t(in.count(5)));
      for (auto& run : runs) {
        run = {in.index(), in.index(), in.index(), in.index(), in.index()};
        if (run.count < 1) in.refuse("has a run of " + std::to_string(run.count) + " elements");
      }
      part = std::move(runs);
    } else if (which == 2) {
      AddressRelation::PairList pairs(std::size_t(in.count(2)));
      for (auto& pair : pairs) pair = {in.index(), in.index()};
      part = std::move(pairs);
    } else if (which == 3) {
      part = read_list(in, header.element_bytes);
    } else {
      in.refuse("has a part of an unknown sort, " + std::to_string(which));
    }
  }
  auto form = std::make_shared<NestForm>();
  form->relation = std::make_shared<const AddressRelation>(
      AddressRelation::from_parts(header.element_bytes, std::move(parts), header.reduction));
  return form;
}

}  // namespace longshore
