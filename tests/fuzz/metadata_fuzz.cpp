// The input is a `.metadata` file, or those of several ranks, separated by kNextFile. The target
// reads the input, checks it as `verify` does, and writes it again.

#include <algorithm>
#include <vector>

#include "core/format/metadata.hpp"
#include "core/verify/verify_catalog.hpp"
#include "core/verify/verify_objects.hpp"
#include "tests/fuzz/seeds.hpp"

namespace reprise::fuzz {
namespace {

constexpr std::size_t kFilesMax = 8;
constexpr std::int64_t kCountedMax = 4096;  // elements are counted only in tensors up to this size

std::vector<ByteSpan> split(ByteSpan input) {
  std::vector<ByteSpan> files;
  std::string_view rest = as_text(input);
  while (files.size() + 1 < kFilesMax) {
    const std::size_t end = rest.find(kNextFile);
    if (end == std::string_view::npos) break;
    files.push_back(as_bytes(rest.substr(0, end)));
    rest.remove_prefix(end + kNextFile.size());
  }
  files.push_back(as_bytes(rest));
  return files;
}

Metadata read(const std::vector<ByteSpan>& files) {
  return read_metadata(files, std::vector<std::string>(files.size(), kFile));
}

Bytes written_again(const Bytes& bytes) { return write_metadata(read({bytes})); }

/// Counts how many chunks cover each element. Returns true if each element is in exactly one chunk
/// and no chunk exceeds the tensor.
bool tiles_by_count(const StoredTensor& tensor) {
  std::vector<int> counts(static_cast<std::size_t>(volume(tensor.shape)), 0);
  const Box whole = Box::whole(tensor.shape);
  for (const auto& chunk : tensor.chunks) {
    if (!contains(whole, chunk.box)) return false;
    if (chunk.box.empty()) continue;
    Dims at = chunk.box.offset;
    for (std::size_t d = at.size();;) {
      std::int64_t index = 0;
      for (std::size_t i = 0; i < at.size(); ++i) index = index * tensor.shape[i] + at[i];
      ++counts[static_cast<std::size_t>(index)];
      for (d = at.size(); d > 0; at[d - 1] = chunk.box.offset[d - 1], --d) {
        if (++at[d - 1] < chunk.box.interval(d - 1).end) break;
      }
      if (d == 0) break;
    }
  }
  return std::ranges::all_of(counts, [](int count) { return count == 1; });
}

void check_proofs(const Catalog& catalog) {
  for (const auto& tensor : catalog.tensors) {
    if (!tensor.original_shape.empty() || volume(tensor.shape) > kCountedMax) continue;
    if (tensor.chunks.size() > 64) continue;
    Catalog one{.files = catalog.files, .tensors = {tensor}, .objects = {}};
    // check_cover() ignores which file a chunk is in.
    for (auto& chunk : one.tensors[0].chunks) chunk.file = 0;
    promise(check_cover(one).empty() == tiles_by_count(tensor),
            "the proof of cover and a count disagree on " + tensor.key + " of shape " +
                to_string(tensor.shape));
  }
}

void examine(const Catalog& catalog) {
  std::vector<StoredFile> files;
  for (std::size_t i = 0; i < catalog.files.size(); ++i) {
    files.push_back({catalog.files[i], std::nullopt});
    if (i % 4 != 3) files.back().size = 4096 << i % 4;
  }
  check_cover(catalog, files);
  check_storage(catalog, files);
  check_grids(catalog);
  check_modules(modules_of(catalog));
  check_proofs(catalog);
}

Acceptance run(ByteSpan input) {
  const auto files = split(input);
  auto metadata = read_or_refuse(0, [&] { return read(files); });
  if (!metadata) return Acceptance::kRefused;
  examine(metadata->catalog);
  const Bytes once = write_metadata(*metadata);
  promise(written_again(once) == once, "what is written is not what was read");
  return Acceptance::kAccepted;
}

const Target kTarget("metadata", run, real_metadata);

}  // namespace
}  // namespace reprise::fuzz
