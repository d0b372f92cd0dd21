#pragma once
// The bytes of one item of a payload file, read at random places. core/format opens no file: the
// engine adapts an open file's range to this, tests and small files adapt a span.

#include <cstdint>
#include <string>
#include <utility>

#include "core/base/bytes.hpp"
#include "reprise/error.hpp"

namespace reprise {

/// A slice [0, size()) of bytes. Offsets are relative to the slice.
class ItemSource {
 public:
  /// `place` names the file and, in `offset`, where in it the slice begins; its other fields are
  /// kept for messages.
  explicit ItemSource(ErrorPlace place = {}) : place_(std::move(place)) {}
  virtual ~ItemSource() = default;
  ItemSource(const ItemSource&) = delete;
  ItemSource& operator=(const ItemSource&) = delete;

  virtual std::uint64_t size() const = 0;
  /// Fills `out` from `offset`; the caller stays within size(). A file that ends before is
  /// TORN_FILE.
  virtual void read_at(std::uint64_t offset, MutableByteSpan out) = 0;

  /// The place of byte `offset` of the slice, as an offset in the file.
  ErrorPlace place_at(std::uint64_t offset) const;
  /// Throws an Error at byte `offset` of the slice.
  [[noreturn]] void fail(Code code, std::string message, std::uint64_t offset) const;

 private:
  ErrorPlace place_;
};

/// A span as a slice; the bytes outlive it.
class SpanSource final : public ItemSource {
 public:
  explicit SpanSource(ByteSpan bytes, ErrorPlace place = {})
      : ItemSource(std::move(place)), bytes_(bytes) {}

  std::uint64_t size() const override { return bytes_.size(); }
  void read_at(std::uint64_t offset, MutableByteSpan out) override;

 private:
  ByteSpan bytes_;
};

/// Bytes [offset, offset + size) of the slice in memory. EXTENT_MISMATCH if they leave it.
Bytes read_range(ItemSource& source, ByteRange range);

}  // namespace reprise
