#pragma once
// Writes small checkpoints item by item.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/adapters/posix/posix_store.hpp"
#include "core/engine/checkpoint.hpp"
#include "core/format/bytes_item.hpp"
#include "core/format/common_state.hpp"
#include "core/format/crc32.hpp"
#include "core/format/metadata.hpp"
#include "core/format/tensor_item.hpp"
#include "tests/contracts/temporary_directory.hpp"

namespace reprise::test {

/// One checkpoint, "ckpt" in its own store, with one payload file.
class WrittenCheckpoint {
 public:
  WrittenCheckpoint() : store_(directory_.path()) { store_.make_directory("ckpt"); }

  /// Adds a tensor in one chunk; `elements` are its bytes.
  WrittenCheckpoint& tensor(const std::string& key, DType dtype, const Dims& shape,
                            const Bytes& elements) {
    return chunks(key, dtype, shape, {{Box::whole(shape), elements}});
  }
  /// Adds a tensor of these chunks, even if they do not cover it.
  WrittenCheckpoint& chunks(const std::string& key, DType dtype, const Dims& shape,
                            const std::vector<std::pair<Box, Bytes>>& parts) {
    StoredTensor tensor{.key = key, .dtype = dtype, .shape = shape};
    for (const auto& [box, elements] : parts) {
      const TensorItemLayout layout(dtype, box.extent);
      Bytes item = layout.head();
      append(item, elements);
      append(item, layout.tail(crc32_of(elements)));
      tensor.chunks.push_back({box, 0, add(item)});
    }
    metadata_.catalog.tensors.push_back(std::move(tensor));
    return *this;
  }
  /// Adds a tensor whose bytes are all `value`.
  WrittenCheckpoint& bytes(const std::string& key, std::int64_t count, int value) {
    return tensor(key, DType::kUInt8, {count},
                  Bytes(static_cast<std::size_t>(count), static_cast<std::byte>(value)));
  }
  WrittenCheckpoint& object(const std::string& key, const Value& value) {
    return item(key, write_bytes_item(value));
  }
  /// Adds an object of arbitrary bytes.
  WrittenCheckpoint& item(const std::string& key, const Bytes& bytes) {
    metadata_.catalog.objects.push_back({.key = key, .file = 0, .range = add(bytes)});
    return *this;
  }
  WrittenCheckpoint& common_file(const Dict& state) {
    write("ckpt/common.pt", write_common_file(state));
    return *this;
  }
  WrittenCheckpoint& common_object(const Dict& state) {
    return object(std::string(kCommonObjectKey), List{Value(state)});
  }

  /// Writes the items that were added so far.
  PosixStore& store() {
    auto& catalog = metadata_.catalog;
    catalog.files = {"__0_0.distcp"};
    const auto by_key = [](const auto& a, const auto& b) { return a.key < b.key; };
    std::sort(catalog.tensors.begin(), catalog.tensors.end(), by_key);
    std::sort(catalog.objects.begin(), catalog.objects.end(), by_key);
    write("ckpt/__0_0.distcp", payload_);
    write("ckpt/.metadata", write_metadata(metadata_));
    return store_;
  }

  /// Returns the path of its store.
  const std::string& path() const { return directory_.path(); }

  void write(const std::string& path, ByteSpan bytes) {
    if (store_.stat(path)) store_.remove(path);
    const auto file = store_.create(path);
    file->write_at(0, bytes);
    file->close();
  }

 private:
  ByteRange add(const Bytes& item) {
    const ByteRange range{payload_.size(), item.size()};
    append(payload_, item);
    return range;
  }

  contracts::TemporaryDirectory directory_;
  PosixStore store_;
  Metadata metadata_;
  Bytes payload_;
};

}  // namespace reprise::test
