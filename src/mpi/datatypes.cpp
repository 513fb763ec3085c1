// Import: a datatype's envelope and contents, from the outside inwards.
#include <cstddef>
#include <vector>

#include "longshore/mpi/datatypes.hpp"
#include "mpi/communicator.hpp"
#include "mpi/large_counts.hpp"
#include "relations/datatype_contents.hpp"

namespace longshore::mpi {

namespace {

struct Envelope {
  Combiner combiner = Combiner::named;
  Index integers = 0, addresses = 0, counts = 0, types = 0;
};

Combiner combiner_of(int number) {
  switch (number) {
    case MPI_COMBINER_NAMED: return Combiner::named;
    case MPI_COMBINER_DUP: return Combiner::dup;
    case MPI_COMBINER_CONTIGUOUS: return Combiner::contiguous;
    case MPI_COMBINER_VECTOR: return Combiner::vector;
    case MPI_COMBINER_HVECTOR: return Combiner::hvector;
    case MPI_COMBINER_INDEXED: return Combiner::indexed;
    case MPI_COMBINER_HINDEXED: return Combiner::hindexed;
    case MPI_COMBINER_INDEXED_BLOCK: return Combiner::indexed_block;
    case MPI_COMBINER_HINDEXED_BLOCK: return Combiner::hindexed_block;
    case MPI_COMBINER_STRUCT: return Combiner::structure;
    case MPI_COMBINER_SUBARRAY: return Combiner::subarray;
    case MPI_COMBINER_DARRAY: return Combiner::darray;
    case MPI_COMBINER_F90_REAL: return Combiner::f90_real;
    case MPI_COMBINER_F90_COMPLEX: return Combiner::f90_complex;
    case MPI_COMBINER_F90_INTEGER: return Combiner::f90_integer;
    case MPI_COMBINER_RESIZED:
      return Combiner::resized;
      // Made by Fortran procedures that MPI-3 removed; each library
      // still has the numbers under a name of its own, or not at all.
#if defined(OPEN_MPI) && OMPI_OMIT_MPI1_COMPAT_DECLS
    case OMPI_WAS_MPI_COMBINER_HVECTOR_INTEGER: return Combiner::hvector;
    case OMPI_WAS_MPI_COMBINER_HINDEXED_INTEGER: return Combiner::hindexed;
    case OMPI_WAS_MPI_COMBINER_STRUCT_INTEGER: return Combiner::structure;
#elif defined(OPEN_MPI) || defined(MPICH)
    case MPI_COMBINER_HVECTOR_INTEGER: return Combiner::hvector;
    case MPI_COMBINER_HINDEXED_INTEGER: return Combiner::hindexed;
    case MPI_COMBINER_STRUCT_INTEGER: return Combiner::structure;
#endif
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
    case MPI_COMBINER_VALUE_INDEX: return Combiner::value_index;
#endif
    default:
      throw Error(ErrorKind::argument,
                  "Longshore does not know a datatype's combiner of this MPI: " + std::to_string(number));
  }
}

Envelope envelope_of(MPI_Datatype type) {
  Envelope envelope;
  int combiner = 0;
#ifdef LONGSHORE_MPI_HAS_LARGE
  // One made with large counts has to be asked with them; they serve for the others too.
  if (LONGSHORE_MPI_HAS_LARGE(MPI_Type_get_envelope_c)) {
    MPI_Count integers = 0, addresses = 0, counts = 0, types = 0;
    check_mpi(MPI_Type_get_envelope_c(type, &integers, &addresses, &counts, &types, &combiner),
              "MPI_Type_get_envelope_c");
    return {combiner_of(combiner), integers, addresses, counts, types};
  }
#endif
  int integers = 0, addresses = 0, types = 0;
  check_mpi(MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner), "MPI_Type_get_envelope");
  return {combiner_of(combiner), integers, addresses, 0, types};
}

bool predefined(Combiner combiner) {
  return combiner == Combiner::named || combiner == Combiner::f90_real || combiner == Combiner::f90_complex ||
         combiner == Combiner::f90_integer || combiner == Combiner::value_index;
}

/// The datatypes that MPI_Type_get_contents hands out: new handles, to be freed unless they are predefined.
struct Received {
  std::vector<MPI_Datatype> types;
  explicit Received(Index n) : types(std::size_t(n), MPI_DATATYPE_NULL) {}
  Received(const Received&) = delete;
  Received& operator=(const Received&) = delete;
  ~Received() {
    for (auto& type : types) try {
        if (type != MPI_DATATYPE_NULL && !predefined(envelope_of(type).combiner)) MPI_Type_free(&type);
      } catch (const Error&) {  // a combiner that is not known: the walk has said so already
      }
  }
};

/// Returns the numbers, and the datatypes in `received`, which has room for them.
DatatypeContents numbers_of(MPI_Datatype type, const Envelope& envelope, Received& received) {
  DatatypeContents contents;
  contents.combiner = envelope.combiner;
  std::vector<int> integers(std::size_t(envelope.integers));
  std::vector<MPI_Aint> addresses(std::size_t(envelope.addresses));
#ifdef LONGSHORE_MPI_HAS_LARGE
  if (LONGSHORE_MPI_HAS_LARGE(MPI_Type_get_contents_c)) {
    std::vector<MPI_Count> counts(std::size_t(envelope.counts));
    check_mpi(MPI_Type_get_contents_c(type, envelope.integers, envelope.addresses, envelope.counts, envelope.types,
                                      integers.data(), addresses.data(), counts.data(), received.types.data()),
              "MPI_Type_get_contents_c");
    contents.counts.assign(counts.begin(), counts.end());
  } else
#endif
    check_mpi(MPI_Type_get_contents(type, int(envelope.integers), int(envelope.addresses), int(envelope.types),
                                    integers.data(), addresses.data(), received.types.data()),
              "MPI_Type_get_contents");
  contents.integers.assign(integers.begin(), integers.end());
  contents.addresses.assign(addresses.begin(), addresses.end());
  return contents;
}

Index extent_of(MPI_Datatype type) {
  MPI_Aint lower = 0, extent = 0;
  check_mpi(MPI_Type_get_extent(type, &lower, &extent), "MPI_Type_get_extent");
  return Index(extent);
}

/// The types for MPI_MINLOC are C structs of a value and an int, with a gap where that has one.
template <class Value>
Typemap with_int() {
  struct Both {
    Value value;
    int index;
  };
  Typemap map = Typemap::basic(sizeof(Value));
  map.append(Typemap::basic(sizeof(int)).shifted(Index(offsetof(Both, index))));
  return map;
}

Typemap predefined_map(MPI_Datatype type) {
  if (type == MPI_FLOAT_INT) return with_int<float>();
  if (type == MPI_DOUBLE_INT) return with_int<double>();
  if (type == MPI_LONG_INT) return with_int<long>();
  if (type == MPI_SHORT_INT) return with_int<short>();
  if (type == MPI_2INT) return with_int<int>();
  if (type == MPI_LONG_DOUBLE_INT) return with_int<long double>();
  int bytes = 0;
  check_mpi(MPI_Type_size(type, &bytes), "MPI_Type_size");
  return Typemap::basic(bytes);
}

Typemap map_of(MPI_Datatype type) {
  const ArrayConstants constants{MPI_ORDER_C,          MPI_ORDER_FORTRAN,     MPI_DISTRIBUTE_NONE,
                                 MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_DFLT_DARG};
  const Envelope envelope = envelope_of(type);
  if (predefined(envelope.combiner) && envelope.combiner != Combiner::value_index) return predefined_map(type);
  Received received(envelope.types);
  auto contents = numbers_of(type, envelope, received);
  for (std::size_t k = 0; k < received.types.size(); ++k) {
    const MPI_Datatype inner = received.types[k];
    if (k > 0 && inner == received.types[k - 1])
      contents.types.push_back(contents.types.back());  // structs of many equal members
    else
      contents.types.push_back({map_of(inner), extent_of(inner)});
  }
  return typemap_of(contents, constants);
}

Typemap map_of(DatatypeHandle handle, Index count) {
  check_running();
  const auto type = handle.get<MPI_Datatype>();
  if (type == MPI_DATATYPE_NULL) throw Error(ErrorKind::argument, "the datatype is MPI_DATATYPE_NULL");
  if (count < 0)
    throw Error(ErrorKind::argument, "a count of " + std::to_string(count) + " datatypes; it must be at least 0");
  return map_of(type).repeated(count, extent_of(type));
}

}  // namespace

AddressRelation from_datatype(DatatypeHandle type, Index count) { return map_of(type, count).assembly(); }

AddressRelation from_datatypes(DatatypeHandle source, Index source_count, DatatypeHandle destination,
                               Index destination_count) {
  return map_of(source, source_count).to(map_of(destination, destination_count));
}

}  // namespace longshore::mpi
