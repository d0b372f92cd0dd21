// Assembles every tensor of every real checkpoint from its items, and compares the bytes with those
// that torch recorded.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/sha256.hpp"
#include "core/format/bytes_item.hpp"
#include "core/format/metadata.hpp"
#include "core/format/tensor_item.hpp"
#include "core/format/zip/crc32.hpp"
#include "tests/core/format/items.hpp"

namespace reprise {
namespace {

namespace fs = std::filesystem;

// Lists the checkpoints below tests/data whose tensors are described in an expected.json next to
// them.
std::vector<std::string> checkpoints() {
  std::vector<std::string> found;
  const fs::path root = REPRISE_TEST_DATA;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const std::string path = fs::relative(entry.path(), root).string();
    constexpr std::string_view kEnding = ".expected.json";
    if (!path.ends_with(kEnding)) continue;
    const Bytes text = test::test_file(path);
    if (nlohmann::json::parse(as_text(text)).contains("tensors"))
      found.push_back(path.substr(0, path.size() - kEnding.size()));
  }
  std::ranges::sort(found);
  return found;
}

class Checkpoint {
 public:
  explicit Checkpoint(const std::string& directory) {
    const fs::path root = REPRISE_TEST_DATA;
    std::vector<Bytes> contents;
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(root / directory)) {
      if (!entry.is_regular_file()) continue;
      const std::string path = fs::relative(entry.path(), root).string();
      if (path.ends_with("metadata")) {
        folder_ = fs::path(path).parent_path().string();
        names.push_back(path);
      }
    }
    std::ranges::sort(names);
    for (const std::string& name : names) contents.push_back(test::test_file(name));
    const std::vector<ByteSpan> spans(contents.begin(), contents.end());
    metadata = read_metadata(spans, names);
    for (const std::string& file : metadata.catalog.files) {
      files_.push_back(test::test_file(folder_ + "/" + file));
    }
  }

  ByteSpan item(FileIndex file, ByteRange range) const {
    return ByteSpan(files_.at(file)).subspan(range.offset, range.size);
  }

  Metadata metadata;

 private:
  std::string folder_;
  std::vector<Bytes> files_;
};

// Copies the item element by element into the bytes of the whole tensor. The chunk's box gives the
// indices.
void paste(const TensorItem& item, ByteSpan bytes, const StoredChunk& chunk,
           const StoredTensor& tensor, Bytes& whole) {
  const std::size_t element = size_of(item.dtype);
  for (std::int64_t n = 0; n < chunk.box.elements(); ++n) {
    Dims index = index_at(n, chunk.box.extent);
    std::int64_t place = item.storage_offset;
    for (std::size_t d = 0; d < index.size(); ++d) {
      place += index[d] * item.strides[d];
      index[d] += chunk.box.offset[d];
    }
    const std::byte* from =
        bytes.data() + item.data_offset + static_cast<std::uint64_t>(place) * element;
    const auto to = static_cast<std::size_t>(linear_index(index, tensor.shape)) * element;
    std::copy_n(from, element, whole.begin() + static_cast<std::ptrdiff_t>(to));
  }
}

Bytes whole_tensor(const Checkpoint& checkpoint, const StoredTensor& tensor) {
  Bytes whole(static_cast<std::size_t>(volume(tensor.shape)) * size_of(tensor.dtype));
  for (const StoredChunk& chunk : tensor.chunks) {
    const ByteSpan bytes = checkpoint.item(chunk.file, chunk.range);
    SpanSource source(
        bytes, {.key = tensor.key, .file = checkpoint.metadata.catalog.files.at(chunk.file)});
    const TensorItem item = read_tensor_item(source);
    EXPECT_EQ(item.dtype, tensor.dtype) << tensor.key;
    EXPECT_EQ(item.size, chunk.box.extent) << tensor.key;
    EXPECT_EQ(crc32_of(bytes.subspan(item.data_offset, item.data_bytes)), item.crc) << tensor.key;
    Bytes resolved(bytes.begin(), bytes.end());
    flip_signs(item.dtype, MutableByteSpan(resolved).subspan(item.data_offset, item.data_bytes),
               item.flips);
    paste(item, resolved, chunk, tensor, whole);
  }
  return whole;
}

class RealCheckpoint : public testing::TestWithParam<std::string> {};

TEST_P(RealCheckpoint, holds_the_tensors_that_torch_said_it_holds) {
  const Bytes text = test::test_file(GetParam() + ".expected.json");
  const auto expected = nlohmann::json::parse(as_text(text));
  const Checkpoint checkpoint(GetParam());
  std::size_t compared = 0;
  for (const auto& [key, tensor] : expected.at("tensors").items()) {
    const StoredTensor* stored = checkpoint.metadata.catalog.tensor(key);
    if (stored == nullptr) stored = checkpoint.metadata.catalog.tensor(key + own_suffix(0));
    ASSERT_NE(stored, nullptr) << key;
    EXPECT_EQ(name_of(stored->dtype), tensor.at("dtype").get<std::string>()) << key;
    EXPECT_EQ(hex(sha256_of(whole_tensor(checkpoint, *stored))),
              tensor.at("sha256").get<std::string>())
        << key;
    ++compared;
  }
  EXPECT_EQ(compared, expected.at("tensors").size());
}

TEST_P(RealCheckpoint, holds_objects_that_are_read_or_say_why_not) {
  const Checkpoint checkpoint(GetParam());
  for (const StoredObject& object : checkpoint.metadata.catalog.objects) {
    const BytesItem item = read_bytes_item(checkpoint.item(object.file, object.range));
    EXPECT_TRUE(item.value.has_value() || !item.opaque_because.empty()) << object.key;
    EXPECT_TRUE(item.checksum_mismatches.empty()) << object.key;
  }
}

INSTANTIATE_TEST_SUITE_P(Data, RealCheckpoint, testing::ValuesIn(checkpoints()),
                         [](const auto& row) {
                           std::string name = row.param;
                           std::ranges::replace_if(
                               name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
                           return name;
                         });

}  // namespace
}  // namespace reprise
