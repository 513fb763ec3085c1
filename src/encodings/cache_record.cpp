#include "encodings/cache_record.hpp"

#include <bit>

#include "encodings/forms.hpp"

namespace longshore {

namespace {

// "LSRC" and a version; the unit's name; the number of relations; each one's key, what is compiled of it, the time to
// make it and its stored encoding; a checksum of all before it.

constexpr StoredKind stored_kind{"LSRC", 1, "record"};

}  // namespace

std::vector<std::byte> write_cache_record(const std::string& name, std::span<const CacheRecordMember> members) {
  WordWriter out(stored_kind);
  out.text(name);
  out.index(Index(members.size()));
  for (const auto& member : members) {
    out.text(member.key);
    out.word(std::uint64_t(member.kept)), out.word(std::bit_cast<std::uint64_t>(member.make_ns));
    const auto words = from_little_endian(member.encoding.to_bytes());
    out.list(words);
  }
  return std::move(out).finish();
}

bool read_cache_record(std::span<const std::byte> bytes, const std::string& name,
                       std::vector<CacheRecordMember>& members) {
  try {
    const auto content = stored_content(stored_kind, bytes);
    WordReader in(content, stored_kind);
    if (in.text() != name) return false;
    for (Index left = in.count(5); left > 0; --left) {
      auto key = in.text();
      const auto kept = in.word(), make_ns = in.word();
      if (kept > std::uint64_t(KeptProgram::disassembler))
        in.refuse("keeps an unknown program, " + std::to_string(kept));
      const auto stored = in.list();
      auto encoding = Encoding::from_bytes(to_little_endian({stored.begin(), stored.end()}));
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
