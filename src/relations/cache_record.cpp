#include "relations/cache_record.hpp"

#include <bit>
#include <cstring>

#include "relations/encodings/forms.hpp"

namespace longshore {

namespace {

// "LSRC" and a version; the unit's name; the number of relations; each one's key, what is compiled of it, the time to make it and
// its stored encoding; a checksum of all before it. Texts are a length and as many words as they fill.

constexpr std::uint64_t record_magic = 0x1'43'52'53'4c;

void write_text(WordWriter& out, const std::string& text) {
  out.index(Index(text.size()));
  for (std::size_t at = 0; at < text.size(); at += 8) {
    std::uint64_t word = 0;
    for (std::size_t k = at; k < std::min(at + 8, text.size()); ++k) word |= std::uint64_t(std::uint8_t(text[k])) << (8 * (k - at));
    out.word(word);
  }
}

std::string read_text(WordReader& in) {
  const auto length = in.word();
  const auto words = in.take(std::size_t(length / 8 + (length % 8 != 0)));
  std::string text(std::size_t(length), '\0');
  for (std::size_t k = 0; k < text.size(); ++k) text[k] = char(words[k / 8] >> (8 * (k % 8)));
  return text;
}

}  // namespace

std::vector<std::byte> write_cache_record(const std::string& name, std::span<const CacheRecordMember> members) {
  WordWriter out;
  out.word(record_magic);
  write_text(out, name);
  out.index(Index(members.size()));
  for (const auto& member : members) {
    write_text(out, member.key);
    out.word(std::uint64_t(member.kept)), out.word(std::bit_cast<std::uint64_t>(member.make_ns));
    const auto words = from_little_endian(member.encoding.to_bytes());
    out.index(Index(words.size()));
    for (const auto word : words) out.word(word);
  }
  out.word(checksum(out.words()));
  return to_little_endian(out.words());
}

bool read_cache_record(std::span<const std::byte> bytes, const std::string& name, std::vector<CacheRecordMember>& members) {
  const auto words = from_little_endian(bytes);
  const auto content = std::span<const std::uint64_t>(words).first(words.empty() ? 0 : words.size() - 1);
  if (bytes.size() % 8 != 0 || words.empty() || words.back() != checksum(content)) return false;
  try {
    WordReader in(content, "the record");
    if (in.word() != record_magic || read_text(in) != name) return false;
    for (Index left = in.count(5); left > 0; --left) {
      auto key = read_text(in);
      const auto kept = in.word(), make_ns = in.word();
      if (kept > std::uint64_t(KeptProgram::disassembler)) in.refuse("keeps an unknown program, " + std::to_string(kept));
      const auto stored = in.take(std::size_t(in.count(1)));
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
