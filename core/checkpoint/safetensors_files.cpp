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
#include "core/checkpoint/rank_files.hpp"
#include "core/format/safetensors_tables.hpp"
#include "core/format/torch_save.hpp"
#include "core/format/zip/archive.hpp"
#include "core/ports/store_path.hpp"
#include "core/ports/whole_file.hpp"

namespace reprise {
namespace {

constexpr std::uint64_t kIndexBytesMax = std::uint64_t{64} << 20U;

/// The names of files that make one checkpoint together.
struct Naming {
  std::string_view end;
  std::string_view index_end;
  std::string_view model_index;
  std::string_view model;
  std::string_view adapter;
  std::string_view called;
};
constexpr Naming kOfSafetensors = {kSafetensorsEnd,   kSafetensorsIndexEnd, kSafetensorsModelIndex,
                                   kSafetensorsModel, kAdapterFile,         "safetensors files"};
constexpr Naming kOfTorchSave = {kTorchSaveEnd,   kTorchSaveIndexEnd,  kTorchSaveModelIndex,
                                 kTorchSaveModel, "adapter_model.bin", "files of torch.save"};

/// Programs save files with these endings beside a model, such as its optimizer's.
constexpr std::array<std::string_view, 5> kOtherEnds = {".pt", ".pth", ".bin", ".ckpt",
                                                        ".safetensors"};

/// Begins the name of the file that seems to have the values of a file of torch.save.
constexpr std::string_view kValuesOf = "values within ";

/// Names in a directory, sorted.
struct Names {
  std::vector<std::string> files;
  std::vector<std::string> indexes;
};

Names names_in(Store& store, const std::string& directory, const Naming& naming) {
  Names names;
  for (const Entry& entry : store.list(directory)) {
    if (entry.directory) continue;
    if (entry.name.ends_with(naming.end)) names.files.push_back(entry.name);
    if (entry.name.ends_with(naming.index_end)) names.indexes.push_back(entry.name);
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
  SetReader(Store& store, const Location& location)
      : store_(store),
        location_(location),
        naming_(location.form == StoredForm::kTorchSave ? kOfTorchSave : kOfSafetensors) {
    set_.form = location.form;
  }

  OpenedFiles read() {
    choose();
    for (const std::string& name : chosen_) read_file(name);
    const bool any = std::ranges::any_of(
        set_.files, [](const SafetensorsFile& file) { return file.header.has_value(); });
    if (!any && failure_) std::rethrow_exception(failure_);
    Metadata metadata = tables_of(set_);
    metadata.findings.insert(metadata.findings.begin(), findings_.begin(), findings_.end());
    if (set_.form == StoredForm::kTorchSave) add_values(metadata);
    return {std::move(metadata), hash_.digest()};
  }

 private:
  std::string path_of(const std::string& name) const {
    return join_path(location_.directory, name);
  }

  void choose() {
    const bool index_named = location_.file.ends_with(naming_.index_end);
    if (!location_.file.empty() && !index_named) {
      chosen_ = {location_.file};
      set_.alone = true;
      return note_number();
    }
    const Names names = names_in(store_, location_.directory, naming_);
    const auto index = index_named ? std::optional(location_.file) : index_among(names.indexes);
    if (index) {
      read_index(*index);
    } else {
      choose_among(names.files);
    }
    tell_others();
  }

  /// A file such as model_3.pt may be that of epoch 3, or rank 3's part.
  void note_number() {
    const std::string stem = location_.file.substr(0, location_.file.rfind('.'));
    const auto digits =
        stem.size() - std::min(stem.size(), stem.find_last_not_of("0123456789") + 1);
    if (set_.form != StoredForm::kTorchSave || digits == 0 || digits == stem.size() ||
        stem[stem.size() - digits - 1] != '_') {
      return;
    }
    findings_.push_back({Severity::kNote, Code::kNotRequested,
                         "if the number in its name is a rank's, this is one rank's part, and "
                         "nothing in it says so",
                         "", store_.display(path_of(location_.file))});
  }

  std::optional<std::string> index_among(const std::vector<std::string>& indexes) const {
    if (indexes.empty()) return std::nullopt;
    if (std::ranges::find(indexes, naming_.model_index) != indexes.end())
      return std::string(naming_.model_index);
    if (indexes.size() == 1) return indexes.front();
    throw Error(Code::kNotFound,
                "there are several indexes of " + std::string(naming_.called) + ": " +
                    join_first(indexes) + "; name one of them",
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
    for (const std::string_view only : {naming_.model, naming_.adapter}) {
      if (std::ranges::find(files, only) == files.end()) continue;
      chosen_ = {std::string(only)};
      return;
    }
    // Other files of torch.save have names like those of a model's: its optimizer's, its random
    // states'.
    const bool shards_alone = set_.form == StoredForm::kTorchSave;
    std::ranges::copy_if(files, std::back_inserter(chosen_), [&](const auto& name) {
      return shards_alone ? is_shard_of_model(name) : piece_number_of(name).has_value();
    });
    if (chosen_.empty() && !shards_alone) chosen_ = files;
  }

  /// Tells of files that are not read, so that nobody takes them for verified.
  void tell_others() {
    std::vector<std::string> shards;
    std::vector<std::string> others;
    for (const Entry& entry : store_.list(location_.directory)) {
      const std::string& name = entry.name;
      const bool by_name = std::ranges::any_of(
          kOtherEnds, [&name](std::string_view end) { return name.ends_with(end); });
      if (entry.directory || !by_name || std::ranges::find(chosen_, name) != chosen_.end())
        continue;
      const bool shard = shard_number_of(name) || piece_number_of(name);
      (shard && name.ends_with(naming_.end) ? shards : others).push_back(name);
    }
    const std::string directory = store_.display(location_.directory);
    if (!shards.empty()) {
      findings_.push_back(
          {Severity::kWarning, Code::kNotRequested,
           "stale: shards that belong to none of the files that were read: " + join_first(shards),
           "", directory});
    }
    if (set_.index && std::ranges::find(others, naming_.model) != others.end()) {
      findings_.push_back({Severity::kWarning, Code::kNotRequested,
                           std::string(naming_.model) +
                               " is there besides the index: it was not read here, and others, "
                               "such as transformers, read it in place of the shards",
                           "", directory});
    }
    if (!others.empty()) {
      findings_.push_back(
          {Severity::kNote, Code::kNotRequested,
           "other files, which were not read; name one to read it: " + join_first(others), "",
           directory});
    }
  }

  void read_file(const std::string& name) {
    SafetensorsFile file{.name = name, .display = store_.display(path_of(name)), .header = {}};
    hash_.text(name);
    try {
      WholeFile whole(store_, path_of(name));
      file.size = whole.size();
      hash_.number(file.size);
      if (set_.form == StoredForm::kTorchSave) {
        file.header =
            take(taken_in(file.display, file.size, [&] { return read_torch_save(whole); }));
      } else {
        file.header = read_header(whole, &hash_);
        const ErrorPlace place{.file = file.display, .offset = 0};
        for (Finding& finding : check_safetensors_layout(*file.header, file.size, place)) {
          findings_.push_back(std::move(finding));
        }
      }
    } catch (const Error& error) {
      if (!failure_) failure_ = std::current_exception();
      findings_.push_back(finding_from(error.within({.file = file.display})));
    }
    set_.files.push_back(std::move(file));
  }

  /// Takes in a file of torch.save, and returns its tensors as a header has them.
  SafetensorsHeader take(TorchSaveFile file) {
    hash_.number(file.hash);
    std::ranges::move(file.findings, std::back_inserter(findings_));
    SafetensorsHeader header;
    for (TorchSaveFile::Tensor& tensor : file.tensors) {
      if (tensor.shard && !(tensor.shard->box == Box::whole(tensor.shard->shape))) {
        findings_.push_back({Severity::kError, Code::kUnsupported,
                             "one rank's part, " + to_string(tensor.shard->box) + " of " +
                                 to_string(tensor.shard->shape) +
                                 ", which is nothing by itself; if the files of all ranks are "
                                 "named <item>_world_size_<n>_rank_<r>.pt, name their directory",
                             tensor.key, store_.display(path_of(location_.file)),
                             tensor.range.offset});
      }
      paths_.push_back({tensor.key, std::move(tensor.path)});
      header.entries.push_back({.key = std::move(tensor.key),
                                .dtype = tensor.dtype,
                                .shape = tensor.shape,
                                .folded = std::move(tensor.folded),
                                .range = tensor.range,
                                .view = std::move(tensor.view)});
    }
    std::ranges::move(file.objects, std::back_inserter(values_));
    return header;
  }

  /// Adds the values that are no tensors.
  void add_values(Metadata& metadata) {
    Catalog& catalog = metadata.catalog;
    if (!values_.empty()) {
      auto made = std::make_shared<MadeItems>();
      metadata.made_file = static_cast<FileIndex>(catalog.files.size());
      catalog.files.push_back(std::string(kValuesOf) + set_.files.front().name);
      auto place = static_cast<std::uint32_t>(catalog.tensors.size());
      for (PickledState::Object& value : values_) {
        paths_.push_back({value.key, std::move(value.path)});
        if (value.dropped_by_dcp) metadata.without_place.push_back(value.key);
        catalog.objects.push_back({.key = std::move(value.key),
                                   .file = metadata.made_file,
                                   .range = made->add(std::move(value.pickle)),
                                   .place = place++});
      }
      metadata.made = std::move(made);
    }
    std::ranges::stable_sort(catalog.objects, {}, &StoredObject::key);
    std::ranges::sort(metadata.without_place);
    refuse_twice(metadata);
    metadata.planner_data = std::move(paths_);
  }

  /// Keys are unique in a file, but not in all shards.
  void refuse_twice(Metadata& metadata) {
    Catalog& catalog = metadata.catalog;
    std::set<std::string> twice;
    const StoredObject* before = nullptr;  // objects are sorted by key
    for (const StoredObject& object : catalog.objects) {
      const bool again = before != nullptr && before->key == object.key;
      if (again || catalog.tensor(object.key) != nullptr) twice.insert(object.key);
      before = &object;
    }
    if (twice.empty()) return;
    std::erase_if(catalog.objects, [&](const auto& object) { return twice.contains(object.key); });
    for (const std::string& key : twice) {
      metadata.findings.push_back({Severity::kError, Code::kChunkOverlap,
                                   "two files have a value of this name, which is not read", key,
                                   store_.display(location_.directory)});
    }
  }

  static bool is_shard_of_model(const std::string& name) {
    const auto number = shard_number_of(name);
    return number && number->series == "pytorch_model-";
  }

  Store& store_;
  const Location& location_;
  const Naming& naming_;
  std::vector<PlannerEntry> paths_;
  std::vector<PickledState::Object> values_;
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
  const Names names = names_in(store, directory, kOfSafetensors);
  return !names.files.empty() || !names.indexes.empty();
}

bool holds_torch_save(Store& store, const std::string& directory) {
  const auto found = store.stat(directory);
  if (!directory.empty() && (!found || !found->directory)) return false;
  const Names names = names_in(store, directory, kOfTorchSave);
  return !names.indexes.empty() || std::ranges::any_of(names.files, [](const std::string& name) {
    const auto number = shard_number_of(name);
    return name == kTorchSaveModel || name == kOfTorchSave.adapter ||
           (number && number->series == "pytorch_model-");
  });
}

bool is_adapter(const Checkpoint& checkpoint) {
  const auto& files = checkpoint.catalog().files;
  return checkpoint.location().form == StoredForm::kSafetensors && files.size() == 1 &&
         files.front() == kAdapterFile;
}

OpenedFiles open_files(Store& store, const Location& location) {
  if (location.form == StoredForm::kRankFiles || location.form == StoredForm::kTorchCheckpointing) {
    return open_files_of_ranks(store, location);
  }
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
