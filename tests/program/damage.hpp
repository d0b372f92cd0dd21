#pragma once
// Damages a checkpoint in a temporary directory.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "core/base/bytes.hpp"
#include "core/format/metadata.hpp"
#include "tests/contracts/temporary_directory.hpp"

namespace reprise::test {

/// Returns the path of a fixture in the test data.
std::string data(const std::string& name);

class Victim {
 public:
  /// Copies a fixture of the test data to a temporary directory.
  explicit Victim(const std::string& fixture);

  std::string path() const { return path_.string(); }
  std::filesystem::path file(const std::string& name) const { return path_ / name; }

  void truncate(const std::string& name, std::uint64_t size) const;
  /// Flips one bit at `offset`; a negative offset counts from the end.
  void flip(const std::string& name, std::int64_t offset) const;
  void write(const std::string& name, std::string_view content) const;
  void remove(const std::string& name) const;
  /// Returns the offset of the first occurrence of `text` in the file.
  std::int64_t offset_of(const std::string& name, std::string_view text) const;
  /// Sets all bytes of the first object in `file` to zero.
  void zero_object_in(const std::string& file) const;

  /// Reads `.metadata`, passes it to `change`, and writes it back.
  void edit_metadata(const std::function<void(Metadata&)>& change) const;
  /// Position of the elements of a tensor's first chunk.
  struct Elements {
    std::string file;
    std::int64_t offset;
  };
  Elements elements_of(const std::string& key) const;

 private:
  contracts::TemporaryDirectory directory_;
  std::filesystem::path path_;
};

}  // namespace reprise::test
