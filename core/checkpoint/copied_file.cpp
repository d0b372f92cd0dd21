#include "core/checkpoint/copied_file.hpp"

#include <algorithm>
#include <utility>

#include "core/base/print.hpp"
#include "core/checkpoint/file_digest.hpp"

namespace reprise {
namespace {

constexpr std::uint64_t kCopyStep = std::uint64_t{1} << 20U;

/// Copies the bytes of the patch that fall into `block`. The block begins at offset `at` of the
/// source.
void put(const Archive::Patch& patch, std::uint64_t at, MutableByteSpan block) {
  Bytes value;
  append_le(value, patch.value);
  for (std::uint64_t i = 0; i < value.size(); ++i) {
    const std::uint64_t place = patch.offset + i;
    if (place >= at && place < at + block.size()) block[place - at] = value[i];
  }
}

}  // namespace

void confirm_written(Store& store, const std::string& path, const WrittenContent& written,
                     ByteProgress& progress) {
  const auto found = store.stat(path);
  const std::uint64_t size = found ? found->size : 0;
  if (size != written.bytes) {
    throw Error(Code::kIo,
                "the store reported that " + with_commas(written.bytes) +
                    " bytes of this file were written, but it has " + with_commas(size),
                {.file = store.display(path)});
  }
  const auto at_step = [&progress, &path] { progress.go(path, 0); };
  if (digest_of_file(store, path, at_step) == written.sha256) return;
  throw Error(Code::kIo, "this file was written, but other bytes were read back from it",
              {.file = store.display(path)});
}

CopiedFile::CopiedFile(Store& store, std::string path, ByteProgress& progress)
    : store_(store), path_(std::move(path)), progress_(progress), out_(store.create(path_)) {}

ByteRange CopiedFile::append(ItemSource& source, std::span<const Archive::Patch> patches) {
  const ByteRange range{bytes_, source.size()};
  Bytes buffer(static_cast<std::size_t>(std::min(kCopyStep, source.size())));
  for (std::uint64_t at = 0; at < source.size(); at += kCopyStep) {
    const auto size = static_cast<std::size_t>(std::min(kCopyStep, source.size() - at));
    const MutableByteSpan block(buffer.data(), size);
    source.read_at(at, block);
    for (const Archive::Patch& patch : patches) put(patch, at, block);
    hash_.update(block);
    out_->write_at(bytes_, block);
    bytes_ += size;
    progress_.go(path_, size);
  }
  return range;
}

WrittenContent CopiedFile::finish() {
  out_->sync();
  out_->close();
  const WrittenContent written{bytes_, hash_.digest()};
  confirm_written(store_, path_, written, progress_);
  return written;
}

WholeFile::WholeFile(Store& store, const std::string& path)
    : WholeFile(store, path, {.file = store.display(path)}) {}
WholeFile::WholeFile(Store& store, const std::string& path, ErrorPlace place)
    : ItemSource(std::move(place)), file_(store.open(path)) {}

}  // namespace reprise
