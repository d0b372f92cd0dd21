#include "core/format/safetensors_tables.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/base/print.hpp"
#include "core/format/json_document.hpp"

namespace reprise {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kIndexBytesMax = std::uint64_t{64} << 20U;
constexpr std::int64_t kExtentMax = std::int64_t{1} << 62U;
/// Under this name torch notes in a file where its pieces belong.
constexpr const char* kShardingInfo = "DCP_SHARDING_INFO";
/// All names under which torch notes something about pieces begin so.
constexpr std::string_view kOfPieces = "DCP_";

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = !text.empty() && error == std::errc{} && end == text.data() + text.size();
  return whole ? std::optional(number) : std::nullopt;
}

std::string and_more(std::size_t count) {
  return count <= 1 ? "" : "; and " + with_commas(count - 1) + " more";
}

/// An entry of a file, and where it lies in the tensor.
struct Placed {
  const SafetensorsEntry* entry = nullptr;
  FileIndex file = kNoFile;
  Dims offset;
};

class Merger {
 public:
  explicit Merger(const SafetensorsSet& set)
      : set_(set), files_(set.files), index_(set.index ? &*set.index : nullptr) {}

  Metadata merge() {
    metadata_.form = set_.form;
    for (FileIndex i = 0; i < files_.size(); ++i) {
      metadata_.catalog.files.push_back(files_[i].name);
      if (files_[i].header) add_file(i);
    }
    for (const auto& [key, placed] : placed_) add_tensor(key, placed);
    if (index_ != nullptr) {
      check_index();
    } else {
      check_numbers();
    }
    note_pieces();
    note_tied();
    metadata_.texts = texts();
    return std::move(metadata_);
  }

 private:
  /// Returns the texts that all files have alike.
  std::map<std::string, std::string> texts() const {
    std::map<std::string, std::string> common;
    bool first = true;
    for (const SafetensorsFile& file : files_) {
      if (!file.header) continue;
      if (std::exchange(first, false)) common = file.header->metadata;
      std::erase_if(common, [&](const auto& text) {
        const auto found = file.header->metadata.find(text.first);
        return text.first.starts_with(kOfPieces) || found == file.header->metadata.end() ||
               found->second != text.second;
      });
    }
    return common;
  }

  void find(Severity severity, Code code, std::string message, const std::string& key,
            const std::string& file, std::optional<std::uint64_t> offset = {}) {
    metadata_.findings.push_back({severity, code, std::move(message), key, file, offset});
  }

  const std::string& shown(FileIndex file) const { return files_[file].display; }

  void add_file(FileIndex file) {
    const SafetensorsHeader& header = *files_[file].header;
    const auto offsets = saved_offsets_of(header, shown(file));
    const bool has_offsets = header.metadata.contains(kShardingInfo);
    for (const SafetensorsEntry& entry : header.entries) {
      Placed placed{&entry, file, Dims::filled(entry.shape.size(), 0)};
      if (has_offsets) {
        const auto noted = offsets.find(entry.key);
        if (noted == offsets.end()) {
          fail(placed, std::string(kShardingInfo) + " does not say where this piece belongs");
        }
        set_offset(noted->second, placed);
      }
      placed_[entry.key].push_back(placed);
    }
  }

  [[noreturn]] void fail(const Placed& placed, std::string message) const {
    throw Error(Code::kTornFile, std::move(message),
                {.key = placed.entry->key,
                 .file = shown(placed.file),
                 .offset = placed.entry->range.offset});
  }

  void set_offset(const std::vector<std::uint64_t>& noted, Placed& placed) const {
    const Dims& extent = placed.entry->shape;
    const std::size_t folded = placed.entry->folded.empty() ? 0 : placed.entry->folded.size() - 1;
    if (noted.size() != extent.size() + folded) {
      fail(placed, "the piece has other dimensions than its saved_offsets");
    }
    for (std::size_t d = 0; d < noted.size(); ++d) {
      const bool last = folded != 0 && d + 1 >= extent.size();
      if (last && noted[d] != 0) fail(placed, "it is cut along its last dimensions");
      if (last) continue;
      if (noted[d] > static_cast<std::uint64_t>(kExtentMax - extent[d])) {
        throw Error(Code::kLimit, "saved_offsets of more than 2^62",
                    {.key = placed.entry->key, .file = shown(placed.file)});
      }
      placed.offset[d] = static_cast<std::int64_t>(noted[d]);
      pieces_ = pieces_ || noted[d] != 0;
    }
  }

  /// True if the piece belongs to the same tensor as the first; tells why if not.
  bool fits(const Placed& first, const Placed& placed) {
    const SafetensorsEntry& one = *first.entry;
    const SafetensorsEntry& other = *placed.entry;
    const std::string also = ", but in " + shown(first.file) + " ";
    if (one.dtype != other.dtype) {
      find(Severity::kError, Code::kDtypeDrift,
           "it is " + std::string(name_of(other.dtype)) + also + std::string(name_of(one.dtype)),
           other.key, shown(placed.file), other.range.offset);
      return false;
    }
    if (one.shape.size() != other.shape.size() || one.folded != other.folded) {
      find(Severity::kError, Code::kShapeDrift,
           "its shape is " + to_string(other.shape) + also + to_string(one.shape), other.key,
           shown(placed.file), other.range.offset);
      return false;
    }
    if (first.file != placed.file && is_piece(first.file) && is_piece(placed.file)) return true;
    find(Severity::kError, Code::kChunkOverlap,
         "a tensor of this name is in " + shown(first.file) + ", too", other.key,
         shown(placed.file), other.range.offset);
    return false;
  }

  bool is_piece(FileIndex file) const {
    return files_[file].header->metadata.contains(kShardingInfo);
  }

  void add_tensor(const std::string& key, std::vector<Placed> placed) {
    // If several files have a key, the one that the index names is read.
    std::stable_partition(placed.begin(), placed.end(), [&](const Placed& one) {
      return index_ == nullptr || assigned(key) == files_[one.file].name;
    });
    const Placed& first = placed.front();
    StoredTensor tensor{.key = key,
                        .dtype = first.entry->dtype,
                        .shape = Dims::filled(first.entry->shape.size(), 0),
                        .folded = first.entry->folded};
    tensor.place = static_cast<std::uint32_t>(metadata_.catalog.tensors.size());
    for (const Placed& one : placed) {
      if (&one != &first && !fits(first, one)) continue;
      StoredChunk chunk{.box = {one.offset, one.entry->shape},
                        .file = one.file,
                        .range = one.entry->range,
                        .form = one.entry->view ? ItemForm::kView : ItemForm::kElements,
                        .view = one.entry->view};
      for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
        tensor.shape[d] = std::max(tensor.shape[d], chunk.box.offset[d] + chunk.box.extent[d]);
      }
      count(chunk);
      tensor.chunks.push_back(chunk);
    }
    if (too_many_elements(tensor)) {
      throw Error(Code::kLimit, "pieces of a tensor of more than 2^62 bytes",
                  {.key = key, .file = shown(first.file)});
    }
    pieces_ = pieces_ || tensor.chunks.size() > 1;
    metadata_.catalog.tensors.push_back(std::move(tensor));
  }

  /// Counts the bytes that are stored. Tensors of one storage share them.
  void count(const StoredChunk& chunk) {
    if (!chunk.view) {
      bytes_ += static_cast<double>(chunk.range.size);
    } else if (counted_.insert(chunk.view->record.get()).second) {
      bytes_ += static_cast<double>(chunk.view->record->range.size);
    }
  }

  static bool too_many_elements(const StoredTensor& tensor) {
    const auto elements = checked_volume(tensor.shape);
    return !elements || *elements > kExtentMax / static_cast<std::int64_t>(size_of(tensor.dtype));
  }

  std::string assigned(const std::string& key) const {
    const auto found = index_->shards.find(key);
    return found == index_->shards.end() ? "" : found->second;
  }

  void check_index() {
    std::map<std::string, FileIndex> by_name;
    for (FileIndex i = 0; i < files_.size(); ++i) by_name.emplace(files_[i].name, i);
    const std::string* absent = nullptr;
    std::string absent_from;
    std::size_t count = 0;
    for (const auto& [key, name] : index_->shards) {
      const auto file = by_name.find(name);
      // What can't be opened or read was told already.
      if (file == by_name.end() || !files_[file->second].header) continue;
      const auto placed = placed_.find(key);
      if (placed == placed_.end()) {
        if (count++ == 0) absent = &key;
        if (count == 1) absent_from = shown(file->second);
      } else if (std::ranges::none_of(
                     placed->second, [&](const Placed& one) { return one.file == file->second; })) {
        const Placed& there = placed->second.front();
        find(Severity::kError, Code::kCoverageGap,
             "the index assigns it to " + name + ", but it is here", key, shown(there.file),
             there.entry->range.offset);
      }
    }
    if (absent != nullptr) {
      find(Severity::kError, Code::kCoverageGap,
           "the index lists this tensor, but the file does not have it" + and_more(count), *absent,
           absent_from);
    }
    check_unlisted();
    check_total_size();
  }

  void check_unlisted() {
    const Placed* first = nullptr;
    std::size_t count = 0;
    for (const auto& [key, placed] : placed_) {
      if (index_->shards.contains(key)) continue;
      if (count++ == 0) first = &placed.front();
    }
    if (first == nullptr) return;
    find(Severity::kWarning, Code::kNotRequested,
         "the index does not list this tensor, so some programs don't load it" + and_more(count),
         first->entry->key, shown(first->file), first->entry->range.offset);
  }

  void check_total_size() {
    std::set<std::string> read;
    for (const SafetensorsFile& file : files_) {
      if (file.header) read.insert(file.name);
    }
    const bool all_read = std::ranges::all_of(
        index_->shards, [&](const auto& shard) { return read.contains(shard.second); });
    if (!all_read || !index_->total_size || *index_->total_size == bytes_) return;
    find(Severity::kWarning, Code::kExtentMismatch,
         "total_size is " + with_commas(static_cast<std::uint64_t>(*index_->total_size)) +
             ", but the tensors have " + counted(static_cast<std::uint64_t>(bytes_), "byte"),
         "", index_->display);
  }

  /// Without an index, the names say how many shards there are.
  void check_numbers() {
    constexpr std::uint64_t kShown = 3;
    std::map<std::pair<std::string, std::uint64_t>, std::set<std::uint64_t>> series;
    for (const SafetensorsFile& file : files_) {
      if (piece_number_of(file.name)) continue;
      if (const auto shard = shard_number_of(file.name)) {
        series[{shard->series, shard->count}].insert(shard->number);
      }
    }
    for (const auto& [name, numbers] : series) {
      if (set_.alone && name.second > 1) return note_alone(name.second);
      const std::uint64_t first = numbers.contains(0) ? 0 : 1;  // some writers count from 0
      const std::uint64_t end = first + name.second;
      const auto there = static_cast<std::uint64_t>(
          std::distance(numbers.lower_bound(first), numbers.lower_bound(end)));
      if (there != numbers.size()) {
        find(Severity::kError, Code::kExtentMismatch,
             "a file has number " + std::to_string(*numbers.rbegin()) + " of " +
                 with_commas(name.second),
             "", files_.front().display);
      }
      if (there == name.second) continue;
      std::vector<std::string> missing;
      for (std::uint64_t n = first; n < end && missing.size() < kShown; ++n) {
        if (!numbers.contains(n)) missing.push_back(std::to_string(n));
      }
      find(Severity::kError, Code::kNotFound,
           with_commas(name.second - there) + " of " + with_commas(name.second) +
               " shards are missing, such as number " + join(missing, ", "),
           "", files_.front().display);
    }
  }

  void note_alone(std::uint64_t count) {
    find(Severity::kNote, Code::kNotRequested,
         "this is one of " + with_commas(count) + " shards; name their directory to read all", "",
         files_.front().display);
  }

  void note_pieces() {
    if (set_.alone && piece_number_of(files_.front().name)) {
      find(Severity::kError, Code::kUnsupported,
           "one rank's pieces of tensors, which are nothing by themselves; name the directory", "",
           files_.front().display);
    }
    if (!pieces_) return;
    metadata_.form = StoredForm::kSafetensorsPieces;
    std::set<std::uint64_t> numbers;
    for (const SafetensorsFile& file : files_) {
      if (const auto number = piece_number_of(file.name)) numbers.insert(*number);
    }
    if (!numbers.empty() && *numbers.rbegin() > numbers.size()) {
      find(Severity::kWarning, Code::kNotFound,
           "the files go up to number " + with_commas(*numbers.rbegin()) + ", but only " +
               with_commas(numbers.size()) + " are there",
           "", files_.front().display);
    }
    find(Severity::kNote, Code::kUnsupported,
         "pieces of tensors, which torch writes without their whole shapes: what is missing at the "
         "end of a tensor can't be noticed",
         "", files_.front().display);
  }

  /// safetensors.torch.save_model notes which names it left out, as another has the same elements.
  void note_tied() {
    for (const SafetensorsFile& file : files_) {
      if (!file.header) continue;
      for (const auto& [name, kept] : file.header->metadata) {
        if (!placed_.contains(kept) || placed_.contains(name)) continue;
        find(Severity::kNote, Code::kNotStored, "it is tied to " + kept + ", which is stored", name,
             file.display);
      }
    }
  }

  const SafetensorsSet& set_;
  const std::vector<SafetensorsFile>& files_;
  const SafetensorsIndex* index_;  ///< null if there is none
  std::map<std::string, std::vector<Placed>> placed_;
  Metadata metadata_;
  mutable bool pieces_ = false;  ///< true if a file has less than all of a tensor
  double bytes_ = 0;
  std::set<const SharedRecord*> counted_;
};

}  // namespace

SafetensorsIndex read_safetensors_index(ByteSpan json, const std::string& display) {
  const ErrorPlace place{.file = display};
  const Json document = parse_json_object(json, place, kIndexBytesMax);
  const auto map = document.find("weight_map");
  if (map == document.end() || !map->is_object()) {
    throw Error(Code::kTornFile, "the index has no weight_map", place);
  }
  SafetensorsIndex index{.display = display};
  for (const auto& [key, file] : map->items()) {
    if (!file.is_string()) {
      throw Error(Code::kTornFile, "the weight_map has a value that is no file",
                  {.key = key.substr(0, 200), .file = display});
    }
    index.shards.emplace(key, file.get<std::string>());
  }
  const auto about = document.find("metadata");
  if (about != document.end() && about->is_object()) {
    const auto size = about->find("total_size");
    if (size != about->end() && size->is_number()) {
      const auto bytes = size->get<double>();
      constexpr double kBytesMax = 9e18;
      if (bytes >= 0 && bytes < kBytesMax) index.total_size = bytes;
    }
  }
  return index;
}

std::string write_safetensors_index(const std::map<std::string, std::string>& shards,
                                    std::uint64_t total_size) {
  Json index;
  index["metadata"]["total_size"] = total_size;
  index["weight_map"] = shards;
  return index.dump(2) + "\n";
}

std::map<std::string, std::vector<std::uint64_t>> saved_offsets_of(const SafetensorsHeader& header,
                                                                   const std::string& display) {
  std::map<std::string, std::vector<std::uint64_t>> all;
  const auto info = header.metadata.find(kShardingInfo);
  if (info == header.metadata.end()) return all;
  const ErrorPlace place{.file = display};
  const Json document = parse_json_object(as_bytes(info->second), place, kSafetensorsHeaderMax);
  for (const auto& [key, value] : document.items()) {
    const ErrorPlace of_key{.key = key.substr(0, 200), .file = display};
    const auto list = value.is_object() ? value.find("saved_offsets") : value.end();
    if (list == value.end() || !list->is_array()) {
      throw Error(Code::kTornFile, std::string(kShardingInfo) + " has no saved_offsets", of_key);
    }
    std::vector<std::uint64_t>& offsets = all[key];
    for (const Json& offset : *list) {
      if (!offset.is_number_unsigned()) {
        throw Error(Code::kTornFile, "saved_offsets are not all whole numbers", of_key);
      }
      offsets.push_back(offset.get<std::uint64_t>());
    }
  }
  return all;
}

std::optional<ShardNumber> shard_number_of(const std::string& name) {
  constexpr std::string_view kOf = "-of-";
  const bool safetensors = name.ends_with(kSafetensorsEnd);
  if (!safetensors && !name.ends_with(kTorchSaveEnd)) return std::nullopt;
  const std::string_view end = safetensors ? kSafetensorsEnd : kTorchSaveEnd;
  const std::string stem = name.substr(0, name.size() - end.size());
  const auto of = stem.rfind(kOf);
  if (of == std::string::npos || of == 0) return std::nullopt;
  const auto dash = stem.find_last_not_of("0123456789", of - 1);
  const std::size_t begin = dash == std::string::npos ? 0 : dash + 1;
  const auto number = number_in(std::string_view(stem).substr(begin, of - begin));
  const auto count = number_in(std::string_view(stem).substr(of + kOf.size()));
  if (!number || !count) return std::nullopt;
  return ShardNumber{stem.substr(0, begin), *number, *count};
}

std::optional<std::uint64_t> piece_number_of(const std::string& name) {
  constexpr std::string_view kShard = "shard-";
  if (!name.starts_with(kShard) || !name.ends_with(kSafetensorsEnd)) return std::nullopt;
  const auto end = name.find("-model-");
  if (end == std::string::npos || end < kShard.size()) return std::nullopt;
  return number_in(std::string_view(name).substr(kShard.size(), end - kShard.size()));
}

Metadata tables_of(const SafetensorsSet& set) { return Merger(set).merge(); }

}  // namespace reprise
