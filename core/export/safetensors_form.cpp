#include "core/export/safetensors_form.hpp"

#include <algorithm>
#include <span>

#include "core/base/utf8.hpp"
#include "core/format/metadata_tables.hpp"
#include "core/format/safetensors_header.hpp"
#include "core/format/safetensors_tables.hpp"
#include "core/ports/store_path.hpp"
#include "core/ports/whole_file.hpp"

namespace reprise {
namespace {

/// True for what a JSON text can have. Surrogates, which torch may write, are no text.
bool is_text(const std::string& key) {
  const auto at = std::adjacent_find(key.begin(), key.end(), [](char a, char b) {
    return static_cast<unsigned char>(a) == 0xED && static_cast<unsigned char>(b) >= 0xA0;
  });
  return is_utf8(key) && at == key.end();
}

std::string shard_name(std::size_t index, std::size_t count) {
  if (count == 1) return std::string(kSafetensorsModel);
  const auto padded_number = [](std::size_t number) {
    const std::string digits = std::to_string(number);
    return std::string(5 - std::min<std::size_t>(5, digits.size()), '0') + digits;
  };
  return "model-" + padded_number(index + 1) + "-of-" + padded_number(count) + ".safetensors";
}

OutputFile shard_of(const std::vector<MappedTensor>& tensors,
                    const std::vector<std::uint32_t>& indices,
                    const std::map<std::string, std::string>& texts) {
  SafetensorsHeader header{.metadata = texts};
  for (const auto t : indices) {
    header.entries.push_back(
        {.key = tensors[t].key, .dtype = tensors[t].dtype, .shape = tensors[t].shape});
  }
  OutputFile file;
  file.put_around = [text = write_safetensors_header(header)](auto /*checksums*/,
                                                              const PutBytes& put) {
    put(0, std::as_bytes(std::span(text)));
  };
  file.bytes = header.data_begin;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const ByteRange range = header.entries[i].range;
    file.parts.push_back({indices[i], Box::whole(tensors[indices[i]].shape), range.offset});
    file.bytes += range.size;
  }
  return file;
}

}  // namespace

void SafetensorsForm::require_holds(const MappedTensor& tensor) const {
  if (tensor.key == kSafetensorsMetadataKey || tensor.key.size() > kKeyBytesMax ||
      !is_text(tensor.key)) {
    throw Error(Code::kUnsupported, "a safetensors file can't have this key", {.key = tensor.key});
  }
  if (!safetensors_name_of(tensor.dtype)) {
    throw Error(Code::kUnsupported, "safetensors has no type " + std::string(name_of(tensor.dtype)),
                {.key = tensor.key});
  }
}

std::vector<OutputFile> SafetensorsForm::lay_out(const std::vector<MappedTensor>& tensors) {
  std::vector<std::vector<std::uint32_t>> shards;
  std::uint64_t bytes = 0;
  for (std::uint32_t t = 0; t < tensors.size(); ++t) {
    const std::uint64_t more = bytes_of(tensors[t]);
    if (shards.empty() || (bytes + more > shard_bytes_max_ && bytes != 0)) {
      shards.emplace_back();
      bytes = 0;
    }
    shards.back().push_back(t);
    bytes += more;
    bytes_ += more;
  }
  std::vector<OutputFile> files;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    files.push_back(shard_of(tensors, shards[i], texts_));
    files.back().name = shard_name(i, shards.size());
    for (const auto t : shards[i]) shard_of_[tensors[t].key] = files.back().name;
  }
  has_index_ = files.size() > 1;
  return files;
}

std::vector<std::string> SafetensorsForm::small_files() const {
  if (!has_index_) return {};
  return {std::string(kSafetensorsModelIndex)};
}

void SafetensorsForm::complete(Store& store, const CommitTarget& target) {
  if (has_index_) {
    const std::string text = write_safetensors_index(shard_of_, bytes_);
    write_durably(store, path_of(target, std::string(kSafetensorsModelIndex)),
                  std::as_bytes(std::span(text)));
  }
  ExportForm::complete(store, target);
}

Checkpoint SafetensorsForm::opened(Store& store, const CommitTarget& target) {
  return Checkpoint::open_any(store, target.saving());
}

void SafetensorsForm::commit(Store& store, CommitTarget& target) {
  publish_directory(store, target);
}

}  // namespace reprise
