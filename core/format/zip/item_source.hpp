#pragma once
// Defines the interface through which core/format reads the bytes of one item of a payload file, at
// any offset. core/format opens no files itself. The engine implements the interface for a range of
// an open file; SpanSource implements it for bytes in memory.

#include <cstdint>
#include <string>
#include <utility>

#include "core/base/bytes.hpp"
#include "reprise/error.hpp"

namespace reprise {

/// A slice [0, size()) of bytes. Offsets are relative to the slice.
class ItemSource {
 public:
  /// `place.file` is the file, and `place.offset` is the offset of the slice in it. Messages show
  /// the other members of `place`, such as the key.
  explicit ItemSource(ErrorPlace place = {}) : place_(std::move(place)) {}
  virtual ~ItemSource() = default;
  ItemSource(const ItemSource&) = delete;
  ItemSource& operator=(const ItemSource&) = delete;

  virtual std::uint64_t size() const = 0;
  /// Fills `out` with the bytes from `offset` on. The caller must stay within size(). Throws
  /// TORN_FILE if the file ends earlier.
  virtual void read_at(std::uint64_t offset, MutableByteSpan out) = 0;

  /// Returns the error place of byte `offset` of the slice. The offset in the result is counted
  /// from the start of the file.
  ErrorPlace place_at(std::uint64_t offset) const;
  /// Throws an Error that reports byte `offset` of the slice as its place.
  [[noreturn]] void fail(Code code, std::string message, std::uint64_t offset) const;

 private:
  ErrorPlace place_;
};

/// A slice of bytes in memory. The bytes must outlive this object.
class SpanSource final : public ItemSource {
 public:
  explicit SpanSource(ByteSpan bytes, ErrorPlace place = {})
      : ItemSource(std::move(place)), bytes_(bytes) {}

  std::uint64_t size() const override { return bytes_.size(); }
  void read_at(std::uint64_t offset, MutableByteSpan out) override;

 private:
  ByteSpan bytes_;
};

/// Returns bytes [offset, offset + size) of the slice. Throws EXTENT_MISMATCH if the range exceeds
/// it.
Bytes read_range(ItemSource& source, ByteRange range);

}  // namespace reprise
