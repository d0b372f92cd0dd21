#pragma once
// Functions that read items of real checkpoints, and functions that damage the items.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/format/zip/item_source.hpp"
#include "reprise/error.hpp"

namespace reprise::test {

/// Reads a file below tests/data.
Bytes test_file(std::string_view path);

/// Returns the archives in a payload file, split at their end records.
std::vector<ByteSpan> items_in(ByteSpan payload);

/// Returns paths below tests/data of all payload files of real checkpoints.
std::vector<std::string> payload_files();

/// The bytes of an archive. The functions find the offsets of its structures without the code under
/// test.
struct SpoiledItem {
  Bytes bytes;

  std::size_t end_record() const { return bytes.size() - 22; }
  std::size_t wide_locator() const { return end_record() - 20; }
  std::size_t wide_end_record() const { return wide_locator() - 56; }
  std::size_t directory() const;
  /// entry() returns the offset of the n-th record's entry in the central directory; local()
  /// returns the offset of the record's local header.
  std::size_t entry(std::size_t n) const;
  std::size_t local(std::size_t n) const;
  /// Returns the offset of the first occurrence of `text`.
  std::size_t place_of(std::string_view text) const;

  template <class T>
  void put(std::size_t at, T value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
  void put_text(std::size_t at, std::string_view text);
  /// Sets the directory's size and offset, or the number of records, in both end records.
  void set_directory(std::uint64_t offset, std::uint64_t size);
  void set_count(std::uint64_t count);
};

/// A source that counts how often it is read.
class CountingSource final : public ItemSource {
 public:
  explicit CountingSource(ByteSpan bytes) : bytes_(bytes) {}
  std::uint64_t size() const override { return bytes_.size(); }
  void read_at(std::uint64_t offset, MutableByteSpan out) override;

  std::size_t reads = 0;
  std::uint64_t bytes_read = 0;

 private:
  ByteSpan bytes_;
};

/// Returns the error that `act` throws; fails the test if `act` does not throw.
template <class Act>
Error error_of(Act&& act) {
  try {
    act();
  } catch (const Error& error) {
    return error;
  }
  return Error(Code::kUsage, "nothing was thrown");
}

}  // namespace reprise::test
