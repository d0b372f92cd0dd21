#include "core/export/torch_dist_form.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include "core/base/utf8.hpp"
#include "core/checkpoint/file_digest.hpp"
#include "core/format/metadata_tables.hpp"
#include "core/format/tensor_frames.hpp"
#include "core/save/phases.hpp"

namespace reprise {
namespace {

/// A part, as an item of a payload file.
struct Item {
  DType dtype;
  Dims extent;
  std::uint64_t begin;  ///< of the elements
};

void put_items(const std::vector<Item>& items, std::span<const std::uint32_t> checksums,
               const PutBytes& put) {
  TensorFrames frames;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto frame = frames.of(items[i].dtype, items[i].extent);
    const TensorItemLayout& layout = frame->layout();
    put(items[i].begin - layout.head().size(), layout.head());
    put(items[i].begin + layout.data_bytes(), layout.tail(checksums[i]));
  }
}

/// Returns what a reader will find in `.metadata`.
Metadata as_read(const Metadata& metadata) {
  const Bytes written = write_metadata(metadata);
  const std::array<ByteSpan, 1> bytes = {written};
  const std::array<std::string, 1> names = {std::string(kMetadataFile)};
  return read_metadata(bytes, names);
}

}  // namespace

void TorchDistForm::require_holds(const MappedTensor& tensor) const {
  if (is_utf8(tensor.key) && !tensor.key.empty() && tensor.key.size() <= kKeyBytesMax) return;
  throw Error(Code::kUnsupported, "a torch_dist checkpoint can't have this key",
              {.key = tensor.key});
}

std::vector<OutputFile> TorchDistForm::lay_out(const std::vector<MappedTensor>& tensors) {
  tensor_of_.resize(tensors.size());
  std::iota(tensor_of_.begin(), tensor_of_.end(), 0U);
  std::ranges::sort(tensor_of_, [&tensors](std::uint32_t a, std::uint32_t b) {
    return tensors[a].key < tensors[b].key;
  });
  Metadata& metadata = content_.metadata;
  metadata.version = "1.0.0";
  for (const auto t : tensor_of_) {
    StoredTensor stored;
    stored.key = tensors[t].key;
    stored.dtype = tensors[t].dtype;
    stored.shape = tensors[t].shape;
    stored.place = static_cast<std::uint32_t>(metadata.catalog.tensors.size());
    metadata.catalog.tensors.push_back(std::move(stored));
  }
  const auto shares = plan_reshard(metadata.catalog, options_.rule, options_.writers);
  std::vector<OutputFile> files;
  for (std::size_t w = 0; w < shares.size(); ++w) {
    if (shares[w].parts.empty()) continue;
    metadata.catalog.files.push_back("__" + std::to_string(w) + "_0.distcp");
    const auto file = static_cast<FileIndex>(metadata.catalog.files.size() - 1);
    files.push_back(file_of(shares[w], file));
    content_.payload.push_back({files.back().name, files.back().bytes});
  }
  metadata_ = as_read(metadata);
  return files;
}

OutputFile TorchDistForm::file_of(const WriterShare& share, FileIndex file) {
  Catalog& catalog = content_.metadata.catalog;
  OutputFile result{.name = catalog.files[file], .bytes = 0, .parts = {}};
  std::vector<Item> items;
  TensorFrames frames;
  for (const auto& part : share.parts) {
    StoredTensor& stored = catalog.tensors[part.tensor];
    const auto frame = frames.of(stored.dtype, part.box.extent);
    const std::uint64_t begin = result.bytes + frame->head_bytes();
    stored.chunks.push_back({part.box, file, {result.bytes, frame->length()}});
    items.push_back({stored.dtype, part.box.extent, begin});
    result.parts.push_back({tensor_of_[part.tensor], part.box, begin});
    result.bytes += frame->length();
  }
  result.needs_checksums = true;
  result.put_around = [items = std::move(items)](std::span<const std::uint32_t> checksums,
                                                 const PutBytes& put) {
    put_items(items, checksums, put);
  };
  return result;
}

void TorchDistForm::complete(Store& store, const CommitTarget& target) {
  if (options_.manifest) {
    for (const PayloadFile& file : content_.payload) {
      content_.digests.push_back({file.name, digest_of_file(store, path_of(target, file.name))});
    }
  }
  ExportForm::complete(store, target);
}

Checkpoint TorchDistForm::opened(Store& store, const CommitTarget& target) {
  Location location;
  location.directory = target.saving();
  return {store, std::move(location), metadata_};
}

void TorchDistForm::commit(Store& store, CommitTarget& target) {
  content_.common = options_.common;
  content_.manifest = options_.manifest;
  for (const ProtocolStep& step : commit_protocol(store, target, content_)) step.run();
}

}  // namespace reprise
