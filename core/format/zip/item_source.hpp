#pragma once
// Random access to the bytes of one item of a payload file. core/format opens no files: the engine
// adapts a range of an open file to this; tests and small files adapt a span.

#include <cstdint>
#include <string>
#include <utility>

#include "core/base/bytes.hpp"
#include "reprise/error.hpp"

namespace reprise {

/// A slice [0, size()) of bytes. Offsets are relative to the slice.
class ItemSource {
 public:
  /// `place` names the file and, in `offset`, where the slice begins in it; its other fields are
  /// used in messages.
  explicit ItemSource(ErrorPlace place = {}) : place_(std::move(place)) {}
  virtual ~ItemSource() = default;
  ItemSource(const ItemSource&) = delete;
  ItemSource& operator=(const ItemSource&) = delete;

  virtual std::uint64_t size() const = 0;
  /// Fills `out` from `offset`; the caller stays within size(). Throws TORN_FILE if the file ends
  /// earlier.
  virtual void read_at(std::uint64_t offset, MutableByteSpan out) = 0;

  /// Returns the place of byte `offset` of the slice, as an offset in the file.
  ErrorPlace place_at(std::uint64_t offset) const;
  /// Throws an Error at byte `offset` of the slice.
  [[noreturn]] void fail(Code code, std::string message, std::uint64_t offset) const;

 private:
  ErrorPlace place_;
};

/// Adapts a span to a slice; the bytes must outlive it.
class SpanSource final : public ItemSource {
 public:
  explicit SpanSource(ByteSpan bytes, ErrorPlace place = {})
      : ItemSource(std::move(place)), bytes_(bytes) {}

  std::uint64_t size() const override { return bytes_.size(); }
  void read_at(std::uint64_t offset, MutableByteSpan out) override;

 private:
  ByteSpan bytes_;
};

/// Returns bytes [offset, offset + size) of the slice; EXTENT_MISMATCH if they exceed it.
Bytes read_range(ItemSource& source, ByteRange range);

}  // namespace reprise
