#include "encodings/cache_record.hpp"

#include <bit>

#include "encodings/forms.hpp"

namespace longshore {

namespace {

/// The unit's name; the number of relations; each one's key, what is compiled of it, the time to make it and its stored
/// encoding.
constexpr StoredKind record_kind{"LSRC", 2, "record"};

}  // namespace

std::vector<std::byte> write_cache_record(const std::string& name, std::span<const CacheRecordMember> members) {
  WordWriter out(record_kind);
  out.text(name);
  out.index(Index(members.size()));
  for (const auto& member : members) {
    out.text(member.key);
    out.word(std::uint64_t(member.kept)), out.word(std::bit_cast<std::uint64_t>(member.make_ns));
    out.bytes(member.encoding.to_bytes());
  }
  return std::move(out).finish();
}

bool read_cache_record(std::span<const std::byte> bytes, const std::string& name,
                       std::vector<CacheRecordMember>& members) {
  try {
    WordReader in(record_kind, bytes);
    if (in.text() != name) return false;
    for (Index left = in.count(5); left > 0; --left) {
      auto key = in.text();
      const auto kept = in.word(), make_ns = in.word();
      if (kept > std::uint64_t(KeptProgram::disassembler))
        in.refuse("keeps an unknown program, " + std::to_string(kept));
      auto encoding = Encoding::from_bytes(in.bytes());
      members.push_back({std::move(key), KeptProgram(kept), std::bit_cast<double>(make_ns), std::move(encoding)});
    }
    in.end();
    return true;
  } catch (const Error&) {
    members.clear();
    return false;
  }
}

}  // namespace longshore
