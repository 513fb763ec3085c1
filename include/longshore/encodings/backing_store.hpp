/// Where a cache puts what it flushes, to have it again without making it again.
#pragma once

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "longshore/core/checked.hpp"

namespace longshore {

/// Records of bytes by name; names are any bytes. What is lost or damaged costs a cache time, nothing else:
/// records carry their name and a checksum, which the cache verifies. A store that cannot do what it is asked
/// throws `Error`, which the cache counts. Called by several threads at once, never for one name, with the
/// cache's mutex held unless it loads; it may not call the cache.
class BackingStore {
 public:
  virtual ~BackingStore() = default;
  /// Replaces what is there under the name.
  virtual void save(const std::string& name, std::span<const std::byte> record) = 0;
  virtual std::optional<std::vector<std::byte>> load(const std::string& name) = 0;
  /// Nothing there is no error.
  virtual void remove(const std::string& name) = 0;
};

/// One file a record, in a folder that is made if need be (not its parent). Files appear whole or not at all. Processes
/// may share a folder where their keys mean the same; a later process finds what an earlier one has flushed.
class DirectoryStore : public BackingStore {
 public:
  /// Throws `Error(argument)` where the folder is not there and cannot be made.
  /// Removes what killed processes left half written an hour ago or longer.
  explicit DirectoryStore(std::filesystem::path folder);

  void save(const std::string& name, std::span<const std::byte> record) override;
  std::optional<std::vector<std::byte>> load(const std::string& name) override;
  void remove(const std::string& name) override;

  const std::filesystem::path& folder() const& { return folder_; }
  std::filesystem::path folder() && { return std::move(folder_); }
  /// The file of a name: the name's digest in hexadecimal digits.
  std::filesystem::path file_of(const std::string& name) const;

 private:
  std::filesystem::path folder_;
  std::string token_;  ///< tells this store's half-written files from those of others
  std::atomic<std::uint64_t> serial_{0};
};

}  // namespace longshore
