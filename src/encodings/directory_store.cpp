#include <algorithm>
#include <chrono>
#include <fstream>
#include <random>

#include "core/digest.hpp"
#include "longshore/encodings/backing_store.hpp"

namespace longshore {

namespace {

namespace fs = std::filesystem;

constexpr const char* suffix = ".lsrc";
constexpr const char* partial = ".lsrc-partial-";

/// A digest of a text, from a basis of one's own.
std::uint64_t digest(const std::string& text, std::uint64_t basis) {
  Digest digest;
  digest.mix(basis);
  digest.mix(text);
  return digest.value();
}

std::string hexadecimal(std::uint64_t value) {
  std::string digits(16, '0');
  for (std::size_t k = digits.size(); k-- > 0; value >>= 4) digits[k] = "0123456789abcdef"[value & 15];
  return digits;
}

[[noreturn]] void fail(const std::string& what, const fs::path& path) {
  throw Error(ErrorKind::transport, "cannot " + what + " " + path.string());
}

}  // namespace

DirectoryStore::DirectoryStore(fs::path folder) : folder_(std::move(folder)) {
  std::random_device random;
  token_ = hexadecimal(std::uint64_t(random()) << 32 | random());
  std::error_code error;
  fs::create_directory(folder_, error);
  if (!fs::is_directory(folder_, error))
    throw Error(ErrorKind::argument, folder_.string() + " is no folder and cannot be made one; make its parent first");
  const auto stale = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    if (entry.path().filename().string().find(partial) == std::string::npos) continue;
    const auto written = entry.last_write_time(error);
    if (!error && written < stale) fs::remove(entry.path(), error);
  }
}

fs::path DirectoryStore::file_of(const std::string& name) const {
  // Two names of one file are told apart by the name in the record.
  return folder_ /
         (hexadecimal(digest(name, 14695981039346656037u)) + hexadecimal(digest(name, 88172645463325252u)) + suffix);
}

void DirectoryStore::save(const std::string& name, std::span<const std::byte> record) {
  const auto path = file_of(name);
  auto hidden = path;
  hidden.replace_extension(partial + token_ + "-" + std::to_string(serial_++));
  std::error_code error;
  std::ofstream out(hidden, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(record.data()), std::streamsize(record.size()));
  out.close();
  if (out) fs::rename(hidden, path, error);
  if (!out || error) {
    fs::remove(hidden, error);
    fail("write", path);
  }
}

std::optional<std::vector<std::byte>> DirectoryStore::load(const std::string& name) {
  const auto path = file_of(name);
  std::error_code error;
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) {
    if (fs::exists(path, error)) fail("read", path);
    return std::nullopt;
  }
  std::vector<std::byte> record(std::size_t(std::max<std::streamoff>(in.tellg(), 0)));
  in.seekg(0);
  in.read(reinterpret_cast<char*>(record.data()), std::streamsize(record.size()));
  if (!in) fail("read", path);
  return record;
}

void DirectoryStore::remove(const std::string& name) {
  std::error_code error;
  fs::remove(file_of(name), error);
  if (error) fail("remove", file_of(name));
}

}  // namespace longshore
