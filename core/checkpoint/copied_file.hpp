#pragma once
// Copies bytes from file to file in bounded steps and reads the result back.

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/base/sha256.hpp"
#include "core/checkpoint/byte_progress.hpp"
#include "core/format/zip/archive.hpp"
#include "core/format/zip/item_source.hpp"
#include "reprise/store.hpp"

namespace reprise {

/// Size and digest that a written file must have when read back.
struct WrittenContent {
  std::uint64_t bytes = 0;
  Sha256Digest sha256 = {};
};

/// Throws IO unless the file has this content. Reads all of it, reporting each step to `progress`.
void confirm_written(Store& store, const std::string& path, const WrittenContent& written,
                     ByteProgress& progress);

class CopiedFile {
 public:
  /// Creates the file. Reports copied bytes to `progress`, which must outlive this object.
  CopiedFile(Store& store, std::string path, ByteProgress& progress);

  /// Appends the content of `source` with the patches applied. Returns the range of this content in
  /// the new file.
  ByteRange append(ItemSource& source, std::span<const Archive::Patch> patches = {});
  /// Syncs and closes the file, and reads it back to confirm its content. May be called once.
  WrittenContent finish();

 private:
  Store& store_;
  std::string path_;
  ByteProgress& progress_;
  std::unique_ptr<WriteFile> out_;
  Sha256 hash_;
  std::uint64_t bytes_ = 0;
};

/// Reads a whole file of a store as an item source. The constructor opens the file.
class WholeFile final : public ItemSource {
 public:
  WholeFile(Store& store, const std::string& path);
  WholeFile(Store& store, const std::string& path, ErrorPlace place);

  std::uint64_t size() const override { return file_->size(); }
  void read_at(std::uint64_t offset, MutableByteSpan out) override { file_->read_at(offset, out); }

 private:
  std::unique_ptr<ReadFile> file_;
};

/// Reads a range of another item source.
class PartOf final : public ItemSource {
 public:
  /// Error messages give `place` as the position of the range. `whole` must outlive this object.
  PartOf(ItemSource& whole, ByteRange range, ErrorPlace place)
      : ItemSource(std::move(place)), whole_(whole), range_(range) {}

  std::uint64_t size() const override { return range_.size; }
  void read_at(std::uint64_t offset, MutableByteSpan out) override {
    whole_.read_at(range_.offset + offset, out);
  }

 private:
  ItemSource& whole_;
  ByteRange range_;
};

}  // namespace reprise
