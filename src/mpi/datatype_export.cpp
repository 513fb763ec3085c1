// Export: loops become vectors from the inside outwards, lists become indexed datatypes, parts become structs.
#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "mpi/communicator.hpp"
#include "mpi/datatypes.hpp"
#include "mpi/large_counts.hpp"
#include "relations/parts.hpp"

namespace longshore::mpi {

namespace {

constexpr Index largest_int = std::numeric_limits<int>::max();

/// A datatype that is freed with this object, unless it is predefined or released.
class Type {
 public:
  Type() = default;
  static Type named(MPI_Datatype type) { return Type(type, false); }
  static Type made(MPI_Datatype type) { return Type(type, true); }
  Type(Type&& other) noexcept
      : type_(std::exchange(other.type_, MPI_DATATYPE_NULL)), owned_(std::exchange(other.owned_, false)) {}
  Type& operator=(Type&& other) noexcept {
    std::swap(type_, other.type_), std::swap(owned_, other.owned_);
    return *this;
  }
  ~Type() {
    if (owned_) MPI_Type_free(&type_);
  }
  MPI_Datatype get() const { return type_; }
  bool owned() const { return owned_; }
  MPI_Datatype release() {
    owned_ = false;
    return type_;
  }

 private:
  Type(MPI_Datatype type, bool owned) : type_(type), owned_(owned) {}
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  bool owned_ = false;
};

/// `length` elements one after the other, the first at `displacement`.
struct Block {
  Index displacement = 0, length = 1;
};

/// A datatype at a displacement.
struct Placed {
  Index displacement = 0;
  Type type;
};

class Exporter {
 public:
  /// `alignment`: 1, 2, 4 or 8, which all offsets are multiples of.
  Exporter(Index element_bytes, Index alignment, Index most) : element_bytes_(alignment), most_(most) {
    element_ = Type::named(alignment == 8   ? MPI_UINT64_T
                           : alignment == 4 ? MPI_UINT32_T
                           : alignment == 2 ? MPI_UINT16_T
                                            : MPI_BYTE);
    if (element_bytes == alignment) return;
    Type several = vector(element_bytes / alignment, 1, alignment, element_.get());
    element_ = std::move(several), element_bytes_ = element_bytes;
  }

  /// All parts of the relation's source side.
  Type side(std::span<const AddressRelation::Part> parts) {
    std::vector<Placed> placed;
    for (const auto& part : parts) {
      if (const auto* nest = std::get_if<LoopNest>(&part)) {
        placed.push_back(nest_type(nest->canonical()));
      } else if (const auto* pairs = std::get_if<AddressRelation::PairList>(&part)) {
        std::vector<Block> blocks;
        for (const auto& pair : *pairs) append(blocks, {pair.source, 1});
        list(placed, blocks, element_.get());
      } else {
        run_list(placed, std::get<AddressRelation::RunList>(part));
      }
    }
    return together(std::move(placed));
  }

 private:
  /// `count` blocks of `length`, `stride` bytes apart. Only elements
  /// are in blocks of more than one: their extent is known.
  Type vector(Index count, Index length, Index stride, MPI_Datatype type) {
    if (length > most_) {
      const Type inner = vector(length, 1, element_bytes_, type);
      return vector(count, 1, stride, inner.get());
    }
    if (stride == -1 && count > 1) {
      // Open MPI 5 takes this stride for "as far as the type extends": in twos there is none.
      std::vector<Placed> both, halves;
      both.push_back({0, vector(1, length, 0, type)}), both.push_back({-1, vector(1, length, 0, type)});
      const Type two = together(std::move(both));
      halves.push_back({0, vector(count / 2, 1, -2, two.get())});
      if (count % 2 != 0) halves.push_back({-(count - 1), vector(1, length, 0, type)});
      return together(std::move(halves));
    }
    MPI_Datatype made = MPI_DATATYPE_NULL;
    if (count <= most_) {
      if (length == 1 && stride == element_bytes_ && type == element_.get())
        check_mpi(MPI_Type_contiguous(int(count), type, &made), "MPI_Type_contiguous");
      else
        check_mpi(MPI_Type_create_hvector(int(count), int(length), stride, type, &made), "MPI_Type_create_hvector");
      return Type::made(made);
    }
#ifdef LONGSHORE_MPI_HAS_LARGE
    if (most_ == largest_int && LONGSHORE_MPI_HAS_LARGE(MPI_Type_create_hvector_c)) {
      check_mpi(MPI_Type_create_hvector_c(count, length, stride, type, &made), "MPI_Type_create_hvector_c");
      return Type::made(made);
    }
#endif
    // Vectors of as many as fit, and one of the rest.
    const Index whole = count / most_ * most_;
    std::vector<Placed> halves;
    {
      const Type inner = vector(most_, length, stride, type);
      halves.push_back({0, vector(whole / most_, 1, checked_mul(most_, stride), inner.get())});
    }
    if (whole < count) halves.push_back({checked_mul(whole, stride), vector(count - whole, length, stride, type)});
    return together(std::move(halves));
  }

  /// Adds an indexed type of the blocks to `placed`, or several where there are too many or too long ones.
  void list(std::vector<Placed>& placed, std::span<const Block> blocks, MPI_Datatype type) {
    while (!blocks.empty()) {
      if (blocks[0].length > most_) {
        placed.push_back({blocks[0].displacement, vector(blocks[0].length, 1, element_bytes_, type)});
        blocks = blocks.subspan(1);
        continue;
      }
      std::size_t n = 0;
      while (n < blocks.size() && Index(n) < most_ && blocks[n].length <= most_) ++n;
      placed.push_back({0, indexed(blocks.first(n), type)});
      blocks = blocks.subspan(n);
    }
  }

  Type indexed(std::span<const Block> blocks, MPI_Datatype type) {
    std::vector<MPI_Aint> displacements;
    std::vector<int> lengths;
    bool equal = true;
    for (const auto& block : blocks) {
      displacements.push_back(block.displacement), lengths.push_back(int(block.length));
      equal = equal && block.length == blocks[0].length;
    }
    MPI_Datatype made = MPI_DATATYPE_NULL;
    const int n = int(blocks.size());
    if (equal)
      check_mpi(MPI_Type_create_hindexed_block(n, lengths[0], displacements.data(), type, &made),
                "MPI_Type_create_hindexed_block");
    else
      check_mpi(MPI_Type_create_hindexed(n, lengths.data(), displacements.data(), type, &made),
                "MPI_Type_create_hindexed");
    return Type::made(made);
  }

  /// One type of several; of none, one without data.
  Type together(std::vector<Placed> placed) {
    if (placed.size() == 1 && placed[0].displacement == 0) return std::move(placed[0].type);
    while (Index(placed.size()) > most_) {  // structs of structs
      std::vector<Placed> groups;
      for (std::size_t first = 0; first < placed.size(); first += std::size_t(most_)) {
        const auto from = placed.begin() + std::ptrdiff_t(first);
        const auto to = from + std::min<std::ptrdiff_t>(most_, placed.end() - from);
        groups.push_back({0, structure(std::span(from, to))});
      }
      placed = std::move(groups);
    }
    return structure(placed);
  }

  Type structure(std::span<const Placed> placed) {
    std::vector<MPI_Aint> displacements;
    std::vector<MPI_Datatype> types;
    for (const auto& one : placed) displacements.push_back(one.displacement), types.push_back(one.type.get());
    const std::vector<int> lengths(placed.size(), 1);
    MPI_Datatype made = MPI_DATATYPE_NULL;
    check_mpi(MPI_Type_create_struct(int(placed.size()), lengths.data(), displacements.data(), types.data(), &made),
              "MPI_Type_create_struct");
    return Type::made(made);
  }

  /// Blocks that touch are one.
  void append(std::vector<Block>& blocks, const Block& block) const {
    if (!blocks.empty() && blocks.back().displacement + blocks.back().length * element_bytes_ == block.displacement)
      blocks.back().length += block.length;
    else
      blocks.push_back(block);
  }

  void run_list(std::vector<Placed>& placed, const AddressRelation::RunList& runs) {
    constexpr Index few = 64;  // elements that rather are blocks among others than a vector of their own
    std::vector<Block> blocks;
    for (const auto& run : runs) {
      if (run.count == 1 || run.source_step == element_bytes_) {
        append(blocks, {run.source, run.count});
      } else if (run.count <= few) {
        for (Index k = 0; k < run.count; ++k) append(blocks, {run.at(k).source, 1});
      } else {
        list(placed, std::exchange(blocks, {}), element_.get());
        placed.push_back({run.source, vector(run.count, 1, run.source_step, element_.get())});
      }
    }
    list(placed, blocks, element_.get());
  }

  Placed nest_type(const LoopNest& nest) {
    Placed nested{nest.source_base(), {}};
    for (std::size_t k = nest.axes().size(); k-- > 0;) {
      const auto& axis = nest.axes()[k];
      // Only elements touch: anything else is repeated by a stride of its own.
      const bool innermost = !nested.type.owned();
      const MPI_Datatype inner = innermost ? element_.get() : nested.type.get();
      std::vector<Placed> periods;
      for (const auto& period : axis.runs.periods())
        periods.push_back(period_type(period, axis.source_stride, inner, innermost));
      if (periods.size() == 1) {
        nested.displacement += periods[0].displacement;
        nested.type = std::move(periods[0].type);
      } else {
        nested.type = together(std::move(periods));
      }
    }
    if (!nested.type.owned()) nested.type = vector(1, 1, element_bytes_, element_.get());
    return nested;
  }

  Placed period_type(const PairedPeriod& period, Index stride, MPI_Datatype inner, bool innermost) {
    std::vector<Placed> placed;
    const bool dense = innermost && stride == element_bytes_;
    Index blocks = 0;
    for (const auto& run : period.runs) blocks += dense ? run.count : run.count * run.length;
    if (period.runs.size() > 1 && blocks <= 4 * Index(period.runs.size())) {
      // Mostly single things: an indexed type.
      std::vector<Block> list_of;
      for (const auto& run : period.runs)
        for (Index r = 0; r < run.count; ++r)
          for (Index e = 0; e < run.length; e += dense ? run.length : 1)
            list_of.push_back({(run.source + r * run.source_step + e) * stride, dense ? run.length : 1});
      list(placed, list_of, inner);
    } else {
      for (const auto& run : period.runs) placed.push_back(run_type(run, stride, inner, dense));
    }
    Placed one;
    if (placed.size() == 1)
      one = std::move(placed[0]);
    else
      one.type = together(std::move(placed));
    if (period.repeats > 1)
      one.type = vector(period.repeats, 1, checked_mul(period.source_period, stride), one.type.get());
    return one;
  }

  Placed run_type(const PairedRun& run, Index stride, MPI_Datatype inner, bool dense) {
    const Index step = checked_mul(run.source_step, stride);
    Placed placed{run.source * stride, {}};
    if (run.count == 1 || run.length == 1 || dense) {
      if (run.count == 1)
        placed.type = vector(run.length, 1, stride, inner);
      else
        placed.type = vector(run.count, run.length, step, inner);
      return placed;
    }
    const Type row = vector(run.length, 1, stride, inner);
    placed.type = vector(run.count, 1, step, row.get());
    return placed;
  }

  Index element_bytes_, most_;
  Type element_;
};

/// The largest size that divides all offsets of the source side, where strides may say more than is used.
Index alignment_of(const AddressRelation::Part& part) {
  Index alignment = 0;
  if (const auto* nest = std::get_if<LoopNest>(&part)) {
    alignment = nest->source_base();
    for (const auto& axis : nest->axes()) alignment = std::gcd(alignment, axis.source_stride);
  } else if (const auto* pairs = std::get_if<AddressRelation::PairList>(&part)) {
    for (const auto& pair : *pairs) alignment = std::gcd(alignment, pair.source);
  } else {
    for (const auto& run : std::get<AddressRelation::RunList>(part))
      alignment = std::gcd(alignment, std::gcd(run.source, run.count > 1 ? run.source_step : 0));
  }
  return alignment;
}

}  // namespace

DatatypeHandle to_datatype(const AddressRelation& relation, Side side, Index most) {
  check_running();
  if (most < 2 || most > largest_int)
    throw Error(ErrorKind::argument, "counts up to " + std::to_string(most) + "; it can be 2 to 2^31 - 1");
  if (side == Side::destination && !relation.reduction().is_replace())
    throw Error(ErrorKind::argument,
                "a datatype cannot say that destinations are combined: receive into a message and take the "
                "relation's disassembler");
  std::vector<AddressRelation::Part> turned;
  if (side == Side::destination)
    for (const auto& part : relation.parts()) turned.push_back(inverted(part));
  const auto& parts = side == Side::source ? relation.parts() : turned;

  Index alignment = std::gcd<Index>(relation.element_bytes(), 8);
  for (const auto& part : parts) alignment = std::gcd(alignment, alignment_of(part));
  Type type = Exporter(relation.element_bytes(), alignment, most).side(parts);
  MPI_Datatype committed = type.get();
  check_mpi(MPI_Type_commit(&committed), "MPI_Type_commit");
  type.release();
  return committed;
}

DatatypeHandle to_datatype(const AddressRelation& relation, Side side) {
  return to_datatype(relation, side, largest_int);
}

}  // namespace longshore::mpi
