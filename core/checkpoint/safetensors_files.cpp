#include "core/checkpoint/safetensors_files.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/base/hash.hpp"
#include "core/base/out_of_memory.hpp"
#include "core/base/print.hpp"
#include "core/checkpoint/checkpoint.hpp"
#include "core/checkpoint/copied_file.hpp"
#include "core/checkpoint/finding.hpp"
#include "core/format/safetensors_tables.hpp"
#include "core/format/zip/archive.hpp"
#include "core/ports/store_path.hpp"
#include "core/ports/whole_file.hpp"

namespace reprise {
namespace {

constexpr std::uint64_t kIndexBytesMax = std::uint64_t{64} << 20U;

/// Names in a directory, sorted.
struct Names {
  std::vector<std::string> files;
  std::vector<std::string> indexes;
};

Names names_in(Store& store, const std::string& directory) {
  Names names;
  for (const Entry& entry : store.list(directory)) {
    if (entry.directory) continue;
    if (entry.name.ends_with(kSafetensorsEnd)) names.files.push_back(entry.name);
    if (entry.name.ends_with(kSafetensorsIndexEnd)) names.indexes.push_back(entry.name);
  }
  return names;
}

/// Reads the header of a file, or of the part of it from `begin` on.
SafetensorsHeader read_header(ItemSource& source, Hasher* hash) {
  std::array<std::byte, kSafetensorsLengthBytes> first{};
  const std::uint64_t size = source.size();
  if (size >= first.size()) source.read_at(0, first);
  const std::uint64_t bytes = safetensors_header_bytes(first, size, source.place_at(0));
  return taken_in(source.place_at(0).file, bytes, [&] {
    const Bytes json = read_range(source, {kSafetensorsLengthBytes, bytes});
    if (hash != nullptr) hash->bytes(json);
    return read_safetensors_header(json, source.place_at(kSafetensorsLengthBytes));
  });
}

class SetReader {
 public:
  SetReader(Store& store, const Location& location) : store_(store), location_(location) {}

  OpenedSafetensors read() {
    choose();
    for (const std::string& name : chosen_) read_file(name);
    const bool any = std::ranges::any_of(
        set_.files, [](const SafetensorsFile& file) { return file.header.has_value(); });
    if (!any && failure_) std::rethrow_exception(failure_);
    Metadata metadata = tables_of(set_);
    metadata.findings.insert(metadata.findings.begin(), findings_.begin(), findings_.end());
    return {std::move(metadata), hash_.digest()};
  }

 private:
  std::string path_of(const std::string& name) const {
    return join_path(location_.directory, name);
  }

  void choose() {
    const bool index_named = location_.file.ends_with(kSafetensorsIndexEnd);
    if (!location_.file.empty() && !index_named) {
      chosen_ = {location_.file};
      set_.alone = true;
      return;
    }
    const Names names = names_in(store_, location_.directory);
    const auto index = index_named ? std::optional(location_.file) : index_among(names.indexes);
    if (index) {
      read_index(*index);
    } else {
      choose_among(names.files);
    }
    tell_others(names.files);
  }

  std::optional<std::string> index_among(const std::vector<std::string>& indexes) const {
    if (indexes.empty()) return std::nullopt;
    if (std::ranges::find(indexes, kSafetensorsModelIndex) != indexes.end())
      return std::string(kSafetensorsModelIndex);
    if (indexes.size() == 1) return indexes.front();
    throw Error(Code::kNotFound,
                "there are several indexes of safetensors files: " + join_first(indexes) +
                    "; name one of them",
                {.file = store_.display(location_.directory)});
  }

  void read_index(const std::string& name) {
    const std::string display = store_.display(path_of(name));
    const Bytes json = read_all(store_, path_of(name), kIndexBytesMax);
    hash_.bytes(json);
    set_.index =
        taken_in(display, json.size(), [&] { return read_safetensors_index(json, display); });
    std::map<std::string, std::string> first_keys;  // by file
    for (const auto& [key, file] : set_.index->shards) first_keys.emplace(file, key);
    for (const auto& [file, key] : first_keys) {
      try {
        if (file.empty()) throw Error(Code::kPathEscape, "a file without a name");
        check_store_path(file);
        if (const auto entry = store_.stat(path_of(file)); entry && !entry->directory) {
          chosen_.push_back(file);
          continue;
        }
        findings_.push_back({Severity::kError, Code::kNotFound,
                             "the file is missing, but the index says that it has this tensor", key,
                             store_.display(path_of(file))});
      } catch (const Error& error) {
        findings_.push_back(finding_from(error.within({.key = key, .file = display})));
      }
    }
  }

  void choose_among(const std::vector<std::string>& files) {
    for (const std::string_view only : {kSafetensorsModel, kAdapterFile}) {
      if (std::ranges::find(files, only) == files.end()) continue;
      chosen_ = {std::string(only)};
      return;
    }
    std::ranges::copy_if(files, std::back_inserter(chosen_),
                         [](const auto& name) { return piece_number_of(name).has_value(); });
    if (chosen_.empty()) chosen_ = files;
  }

  /// Tells of files that are not read, so that nobody takes them for verified.
  void tell_others(const std::vector<std::string>& files) {
    std::vector<std::string> shards;
    std::vector<std::string> others;
    for (const std::string& name : files) {
      if (std::ranges::find(chosen_, name) != chosen_.end()) continue;
      const bool shard = shard_number_of(name) || piece_number_of(name);
      (shard ? shards : others).push_back(name);
    }
    const std::string directory = store_.display(location_.directory);
    if (!shards.empty()) {
      findings_.push_back(
          {Severity::kWarning, Code::kNotRequested,
           "stale: shards that belong to none of the files that were read: " + join_first(shards),
           "", directory});
    }
    if (!others.empty()) {
      findings_.push_back({Severity::kNote, Code::kNotRequested,
                           "other safetensors files, which were not read; name one to read it: " +
                               join_first(others),
                           "", directory});
    }
  }

  void read_file(const std::string& name) {
    SafetensorsFile file{.name = name, .display = store_.display(path_of(name)), .header = {}};
    hash_.text(name);
    try {
      WholeFile whole(store_, path_of(name));
      file.size = whole.size();
      hash_.number(file.size);
      file.header = read_header(whole, &hash_);
      const ErrorPlace place{.file = file.display, .offset = 0};
      for (Finding& finding : check_safetensors_layout(*file.header, file.size, place)) {
        findings_.push_back(std::move(finding));
      }
    } catch (const Error& error) {
      if (!failure_) failure_ = std::current_exception();
      findings_.push_back(finding_from(error.within({.file = file.display})));
    }
    set_.files.push_back(std::move(file));
  }

  Store& store_;
  const Location& location_;
  std::vector<std::string> chosen_;
  SafetensorsSet set_;
  Findings findings_;
  Hasher hash_;
  std::exception_ptr failure_;  ///< the first
};

bool is_as_long_as_elements(const StoredTensor& tensor, const StoredChunk& chunk) {
  const auto elements = checked_volume(chunk.box.extent);
  return chunk.file != kNoFile && elements && tensor.original_shape.size() == 0 &&
         static_cast<std::uint64_t>(*elements) == chunk.range.size / size_of(tensor.dtype) &&
         chunk.range.size % size_of(tensor.dtype) == 0;
}

/// The safetensors data within payload files.
class Within {
 public:
  Within(Checkpoint& checkpoint, Metadata& metadata)
      : checkpoint_(checkpoint), metadata_(metadata) {}

  void find(const StoredTensor& tensor, StoredChunk& chunk) {
    const Part& part = part_of(chunk.file, chunk.range.offset);
    if (!part.there || part.begin != chunk.range.offset) return;
    const std::string key(name_of(tensor));
    const auto entry = part.entries.find(key);
    const auto offset = part.offsets.find(key);
    const bool there =
        entry != part.entries.end() && offset != part.offsets.end() &&
        entry->second.dtype == tensor.dtype && entry->second.shape == chunk.box.extent &&
        entry->second.folded == tensor.folded && begins_at(chunk.box.offset, offset->second);
    if (there) {
      chunk.form = ItemForm::kElements;
      chunk.range = {part.begin + entry->second.range.offset, entry->second.range.size};
      return;
    }
    metadata_.findings.push_back(
        {Severity::kError, Code::kCoverageGap,
         "torch wrote its tensors as safetensors, under their names alone, and this chunk is not "
         "among them: another chunk of this tensor took its place",
         tensor.key, checkpoint_.display(chunk.file), chunk.range.offset});
    chunk.file = kNoFile;
  }

  bool any() const {
    return std::ranges::any_of(parts_, [](const auto& part) { return part.second.there; });
  }

 private:
  /// The safetensors data of one file. torch writes all tensors of a file at once.
  struct Part {
    bool there = false;
    std::uint64_t begin = 0;
    std::map<std::string, SafetensorsEntry> entries = {};
    std::map<std::string, std::vector<std::uint64_t>> offsets = {};
  };

  static bool begins_at(const Dims& offset, const std::vector<std::uint64_t>& noted) {
    if (noted.size() < offset.size()) return false;
    for (std::size_t d = 0; d < offset.size(); ++d) {
      if (static_cast<std::uint64_t>(offset[d]) != noted[d]) return false;
    }
    return true;
  }

  /// Returns the part of the file, which is looked for at the first offset that is asked for.
  const Part& part_of(FileIndex file, std::uint64_t begin) {
    const auto [found, is_new] = parts_.try_emplace(file);
    if (is_new) read(file, begin, found->second);
    return found->second;
  }

  void read(FileIndex file, std::uint64_t begin, Part& part) {
    const std::string display = checkpoint_.display(file);
    try {
      const std::uint64_t size = checkpoint_.file(file).size();
      if (begin > size || size - begin < kItemKindBytes) return;
      const auto source = checkpoint_.slice("", file, {begin, size - begin});
      std::array<std::byte, kItemKindBytes> first{};
      source->read_at(0, first);
      if (item_kind_of(first) != ItemKind::kSafetensors) return;
      const SafetensorsHeader header = read_header(*source, nullptr);
      part.offsets = saved_offsets_of(header, display);
      const ErrorPlace place{.file = display, .offset = begin};
      for (Finding& finding : check_safetensors_layout(header, source->size(), place)) {
        // The other kinds are found by the catalog's ranges.
        if (finding.code == Code::kCoverageGap) metadata_.findings.push_back(std::move(finding));
      }
      for (const SafetensorsEntry& entry : header.entries) part.entries.emplace(entry.key, entry);
      part.begin = begin;
      part.there = true;
    } catch (const Error& error) {
      if (error.code() == Code::kNotFound || error.code() == Code::kIo) return;
      metadata_.findings.push_back(finding_from(error.within({.file = display, .offset = begin})));
    }
  }

  Checkpoint& checkpoint_;
  Metadata& metadata_;
  std::map<FileIndex, Part> parts_;
};

}  // namespace

bool holds_safetensors(Store& store, const std::string& directory) {
  const auto found = store.stat(directory);
  if (!directory.empty() && (!found || !found->directory)) return false;
  const Names names = names_in(store, directory);
  return !names.files.empty() || !names.indexes.empty();
}

bool is_adapter(const Checkpoint& checkpoint) {
  const auto& files = checkpoint.catalog().files;
  return checkpoint.location().safetensors && files.size() == 1 && files.front() == kAdapterFile;
}

OpenedSafetensors open_safetensors(Store& store, const Location& location) {
  return SetReader(store, location).read();
}

bool may_hold_safetensors(const Catalog& catalog) {
  return std::ranges::any_of(catalog.tensors, [](const StoredTensor& tensor) {
    return std::ranges::any_of(tensor.chunks, [&](const StoredChunk& chunk) {
      return is_as_long_as_elements(tensor, chunk);
    });
  });
}

void find_safetensors_within(Checkpoint& checkpoint, Metadata& metadata) {
  Within within(checkpoint, metadata);
  for (StoredTensor& tensor : metadata.catalog.tensors) {
    for (StoredChunk& chunk : tensor.chunks) {
      if (is_as_long_as_elements(tensor, chunk)) within.find(tensor, chunk);
    }
  }
  if (!within.any()) return;
  metadata.notes.emplace_back(
      "torch wrote the tensors as safetensors (SerializationFormat.SAFETENSORS), and can't load "
      "them "
      "itself; reprise reshard makes a checkpoint that it can load");
}

}  // namespace reprise
