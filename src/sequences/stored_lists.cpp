#include "sequences/stored_lists.hpp"

#include "core/digest.hpp"

namespace longshore {

namespace {

constexpr std::size_t name_bytes = 4, head_bytes = name_bytes + 1, word_bytes = 8;

std::vector<Index> unpacked(const PackedIntegers& packed) {
  std::vector<Index> values(std::size_t(packed.size()));
  if (!values.empty()) packed.read(0, packed.size(), values.data());
  return values;
}

std::uint64_t word_at(std::span<const std::byte> bytes) {
  std::uint64_t word = 0;
  for (std::size_t k = 0; k < bytes.size(); ++k) word |= std::uint64_t(bytes[k]) << 8 * k;
  return word;
}

std::uint64_t checksum(std::span<const std::byte> bytes) {
  Digest digest;
  digest.mix(bytes.size());
  for (std::size_t k = 0; k < bytes.size(); k += word_bytes)
    digest.mix(word_at(bytes.subspan(k, std::min(word_bytes, bytes.size() - k))));
  return digest.value();
}

}  // namespace

ListWriter::ListWriter(const StoredKind& kind) {
  for (std::size_t k = 0; k < name_bytes; ++k) bytes_.push_back(std::byte(kind.name[k]));
  bytes_.push_back(std::byte(kind.version));
}

void ListWriter::list(std::span<const Index> values) { PackedIntegers::smallest(values).append_to(bytes_); }

std::vector<std::byte> ListWriter::finish() && {
  const std::uint64_t sum = checksum(bytes_);
  for (std::size_t k = 0; k < word_bytes; ++k) bytes_.push_back(std::byte(sum >> 8 * k));
  return std::move(bytes_);
}

ListReader::ListReader(const StoredKind& kind, std::span<const std::byte> bytes) : kind_(kind), all_(bytes) {
  if (bytes.size() < head_bytes + word_bytes) refuse("has " + std::to_string(bytes.size()) + " bytes: it is cut short");
  for (std::size_t k = 0; k < name_bytes; ++k)
    if (bytes[k] != std::byte(kind.name[k])) refuse("does not begin with " + std::string(kind.name));
  if (const auto version = unsigned(bytes[name_bytes]); version != kind.version)
    refuse("has version " + std::to_string(version) + "; this library reads version " + std::to_string(kind.version));
  const auto content = bytes.first(bytes.size() - word_bytes);
  if (checksum(content) != word_at(bytes.last(word_bytes))) refuse("has a wrong checksum: it was damaged");
  left_ = content.subspan(head_bytes);
}

PackedIntegers ListReader::packed() {
  try {
    return PackedIntegers::from_bytes(left_);
  } catch (const Error& error) {
    refuse("has no good list at byte " + std::to_string(left_.data() - all_.data()) + ": " + error.what());
  }
}

std::vector<Index> ListReader::list() { return unpacked(packed()); }

std::vector<Index> ListReader::list(std::size_t n) {
  const auto values = packed();
  if (values.size() != Index(n))
    refuse("has a list of " + std::to_string(values.size()) + " numbers where there must be " + std::to_string(n));
  return unpacked(values);
}

std::vector<Index> ListReader::list_of_most(Index most, const char* what) {
  const auto values = packed();
  if (values.size() > most)
    refuse("has " + std::to_string(values.size()) + " " + what + ", more than the " + std::to_string(most) +
           " that are read");
  return unpacked(values);
}

void ListReader::end() const {
  if (!left_.empty()) refuse("goes on for " + std::to_string(left_.size()) + " bytes after its end");
}

void ListReader::refuse(const std::string& why) const {
  throw Error(ErrorKind::argument, std::string("the stored ") + kind_.words + " " + why);
}

}  // namespace longshore
