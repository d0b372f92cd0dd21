#include "core/checkpoint/rank_files.hpp"

#include <algorithm>
#include <charconv>
#include <exception>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/hash.hpp"
#include "core/base/out_of_memory.hpp"
#include "core/base/print.hpp"
#include "core/checkpoint/copied_file.hpp"
#include "core/checkpoint/finding.hpp"
#include "core/checkpoint/universal_parameters.hpp"
#include "core/format/metadata_tables.hpp"
#include "core/format/pickle/pickle_reader.hpp"
#include "core/format/rank_tables.hpp"
#include "core/format/torch_checkpointing.hpp"
#include "core/format/torch_save.hpp"
#include "core/ports/store_path.hpp"
#include "core/ports/whole_file.hpp"

namespace reprise {
namespace {

constexpr std::string_view kMetadataPickle = "metadata.pkl";
constexpr std::string_view kEnd = ".pt";
constexpr std::string_view kZero = "zero";
constexpr std::string_view kWeights = "fp32";
constexpr std::string_view kOfModel = "_model_states.pt";
constexpr std::uint64_t kMetadataBytesMax = std::uint64_t{1} << 30U;
constexpr std::int32_t kRanksMax = 1 << 20;
constexpr std::string_view kParamShapes = "param_shapes.";
constexpr std::string_view kModelRanks = "mp_world_size";
constexpr std::size_t kShown = 6;

/// Takes the number at the end of `name` off; nothing if there is none.
std::optional<std::int32_t> take_number(std::string_view& name) {
  const std::size_t begin = name.find_last_not_of("0123456789") + 1;
  std::int32_t number = 0;
  const auto [end, error] = std::from_chars(name.data() + begin, name.data() + name.size(), number);
  if (begin == name.size() || error != std::errc{} || number > kRanksMax) return std::nullopt;
  name = name.substr(0, begin);
  return number;
}

bool take_end(std::string_view& name, std::string_view end) {
  if (!name.ends_with(end)) return false;
  name.remove_suffix(end.size());
  return true;
}

/// One file of one rank.
struct Part {
  std::string item;
  std::int32_t rank = 0;
  std::int32_t ranks = 0;  ///< 0 if the name does not say how many there are
  std::string name;

  /// Returns the parameter in "zero/layer.weight/fp32.pt"; empty for other files.
  std::string parameter() const {
    const auto first = name.find('/');
    const auto last = name.rfind('/');
    return first == last ? "" : name.substr(first + 1, last - first - 1);
  }
  /// Returns the state in "zero/layer.weight/fp32.pt".
  std::string state() const {
    const auto last = name.rfind('/') + 1;
    return name.substr(last, name.size() - last - kEnd.size());
  }
};

/// Reads "model_world_size_4_rank_0.pt".
std::optional<Part> part_of_world(const std::string& file) {
  std::string_view name = file;
  if (!take_end(name, kEnd)) return std::nullopt;
  const auto rank = take_number(name);
  if (!rank || !take_end(name, "_rank_")) return std::nullopt;
  const auto ranks = take_number(name);
  if (!ranks || !take_end(name, "_world_size_") || name.empty()) return std::nullopt;
  return Part{std::string(name), *rank, *ranks, file};
}

/// Reads "model_0.pt".
std::optional<Part> part_of_item(const std::string& file) {
  std::string_view name = file;
  if (!take_end(name, kEnd)) return std::nullopt;
  const auto rank = take_number(name);
  if (!rank || !take_end(name, "_") || name.empty()) return std::nullopt;
  return Part{std::string(name), *rank, 0, file};
}

template <class PartOf>
std::vector<Part> parts_in(Store& store, const std::string& directory, PartOf part_of) {
  std::vector<Part> parts;
  const auto found = store.stat(directory);
  if (!directory.empty() && (!found || !found->directory)) return parts;
  for (const Entry& entry : store.list(directory)) {
    if (entry.directory) continue;
    if (auto part = part_of(entry.name)) parts.push_back(std::move(*part));
  }
  return parts;
}

class RanksReader {
 public:
  RanksReader(Store& store, const Location& location)
      : store_(store),
        location_(location),
        universal_(location.form == StoredForm::kRankFiles &&
                   holds_universal(store, location.directory)) {}

  OpenedFiles read() {
    if (location_.form == StoredForm::kTorchCheckpointing) {
      choose_by_metadata();
    } else if (universal_) {
      choose_universal();
    } else {
      choose_by_names();
    }
    std::map<std::int32_t, MetadataTables> tables;
    for (const Part& part : parts_) {
      MetadataTables& table = tables[part.rank];
      table.rank = part.rank;
      read_part(part, table);
    }
    if (!any_ && failure_) std::rethrow_exception(failure_);
    std::vector<MetadataTables> in_order;
    for (auto& [rank, table] : tables) in_order.push_back(std::move(table));
    if (universal_) tell_universal();
    note_untold();
    if (made_->size() != 0) made_file_ = names_.add("values within files of ranks");
    for (MetadataTables& table : in_order) {
      for (StoredObject& object : table.objects) object.file = made_file_;
    }
    Metadata metadata = merge_rank_tables(std::move(in_order), std::move(names_), Notes());
    metadata.form = location_.form;
    metadata.version = version_;
    metadata.findings = std::move(findings_);
    metadata.made_file = made_file_;
    metadata.made = std::move(made_);
    note_unplaced(metadata);
    // If one rank wrote for all, the ranks need no metadata of their own.
    if (metadata.ranks.size() == 1) metadata.ranks.clear();
    return {std::move(metadata), hash_.digest()};
  }

 private:
  std::string path_of(const std::string& name) const {
    return join_path(location_.directory, name);
  }
  std::string shown(const std::string& name) const {
    return store_.display(name.empty() ? location_.directory : path_of(name));
  }

  void find(Severity severity, Code code, std::string message, const std::string& key,
            const std::string& file, std::optional<std::uint64_t> offset = {}) {
    findings_.push_back({severity, code, std::move(message), key, file, offset});
  }

  void choose_by_names() {
    parts_ = parts_in(store_, location_.directory, part_of_world);
    std::map<std::string, std::map<std::int32_t, std::set<std::int32_t>>> there;  // item, world
    std::map<std::int32_t, const Part*> worlds;  // the first file of each
    for (const Part& part : parts_) {
      there[part.item][part.ranks].insert(part.rank);
      worlds.emplace(part.ranks, &part);
      if (part.rank < part.ranks) continue;
      find(Severity::kError, Code::kLayoutMismatch,
           "a file of rank " + std::to_string(part.rank) + ", but its name says that there are " +
               counted(static_cast<std::uint64_t>(part.ranks), "rank"),
           "", shown(part.name));
    }
    if (worlds.size() > 1) {
      find(Severity::kError, Code::kLayoutMismatch,
           "its name is that of one of " +
               counted(static_cast<std::uint64_t>(worlds.rbegin()->first), "rank") + ", but " +
               worlds.begin()->second->name + " is there, too: they are of different checkpoints",
           "", shown(worlds.rbegin()->second->name));
    }
    for (const auto& [item, of_item] : there) {
      for (const auto& [ranks, numbers] : of_item) tell_missing(item, ranks, numbers);
    }
  }

  void tell_missing(const std::string& item, std::int32_t ranks,
                    const std::set<std::int32_t>& there) {
    std::vector<std::string> missing;
    std::uint64_t count = 0;
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
      if (there.contains(rank)) continue;
      if (++count <= kShown) missing.push_back(std::to_string(rank));
    }
    if (count == 0) return;
    find(Severity::kError, Code::kNotFound,
         item + ": the files of " + with_commas(count) + " of " +
             with_commas(static_cast<std::uint64_t>(ranks)) + " ranks are missing: rank " +
             join(missing, ", ") + (count > kShown ? " and others" : ""),
         "", store_.display(location_.directory));
  }

  void choose_by_metadata() {
    const std::string name(kMetadataPickle);
    const std::string display = shown(name);
    const Bytes pickle = read_all(store_, path_of(name), kMetadataBytesMax);
    hash_.bytes(pickle);
    about_ = taken_in(display, pickle.size(),
                      [&] { return read_torch_checkpointing(pickle, {.file = display}); });
    version_ = about_->version;
    // Each file that it names is looked for, so that few bytes could cost much time.
    constexpr std::uint64_t kFilesMin = std::uint64_t{1} << 18U;
    const std::uint64_t files =
        about_->items.size() * static_cast<std::uint64_t>(about_->world_size);
    if (files > kFilesMin && files / 64 > store_.list(location_.directory).size()) {
      throw Error(
          Code::kLimit,
          "it says that there are " + with_commas(files) + " files, far more than there are",
          {.file = display});
    }
    for (const auto& [item, known] : about_->items) {
      std::set<std::int32_t> there;
      for (std::int32_t rank = 0; rank < about_->world_size; ++rank) {
        Part part{item, rank, about_->world_size, about_->file_of(item, rank)};
        check_store_path(part.name);
        const auto entry = store_.stat(path_of(part.name));
        if (!entry || entry->directory) continue;
        there.insert(rank);
        parts_.push_back(std::move(part));
      }
      tell_missing(item, about_->world_size, there);
    }
    // Items without a resharder are not in the metadata, but in files like the others.
    std::map<std::string, std::set<std::int32_t>> others;
    std::set<std::string> named;
    for (const Part& part : parts_) named.insert(part.name);
    for (Part& part : parts_in(store_, location_.directory, part_of_item)) {
      if (named.contains(part.name)) continue;
      if (part.rank >= about_->world_size) {
        find(Severity::kWarning, Code::kNotRequested,
             "stale: a file of rank " + std::to_string(part.rank) + ", but " +
                 std::to_string(about_->world_size) + " ranks saved this checkpoint",
             "", shown(part.name));
        continue;
      }
      if (about_->items.contains(part.item)) continue;
      others[part.item].insert(part.rank);
      parts_.push_back(std::move(part));
    }
    for (const auto& [item, ranks] : others) {
      // One rank may write what is the same on all.
      if (ranks.size() > 1) tell_missing(item, about_->world_size, ranks);
    }
  }

  /// DeepSpeed keeps each state of a parameter in a file: zero/<param>/<state>.pt.
  void choose_universal() {
    for (const Entry& entry : store_.list(location_.directory)) {
      if (entry.directory || !entry.name.starts_with("mp_rank_")) continue;
      std::string_view name = entry.name;
      if (!take_end(name, kOfModel)) continue;
      parts_.push_back({std::string(name), 0, 0, entry.name});
      if (const auto rank = take_number(name)) universal_says_.model_ranks.insert(*rank);
    }
    const std::string zero(kZero);
    for (const Entry& entry : store_.list(path_of(zero))) {
      const std::string within = join_path(zero, entry.name);
      std::string_view name = entry.name;
      if (!entry.directory) {
        if (take_end(name, kEnd)) parts_.push_back({std::string(name), 0, 0, within});
        continue;
      }
      for (const Entry& file : store_.list(path_of(within))) {
        std::string_view state = file.name;
        if (file.directory || !take_end(state, kEnd)) continue;
        universal_says_.states[entry.name][std::string(state)];
        parts_.push_back(
            {entry.name + "." + std::string(state), 0, 0, join_path(within, file.name)});
      }
    }
  }

  /// Keeps what a value of a model's file says of parameters.
  void hear(const Part& part, const PickledState::Object& value) {
    std::string_view name = value.key;
    if (!part.parameter().empty()) {
      if (name == part.item + ".vocab_tensor") {
        universal_says_.vocabularies.insert(part.parameter());
      }
      return;
    }
    if (!part.item.starts_with("mp_rank_") || !name.starts_with(part.item + ".")) return;
    name.remove_prefix(part.item.size() + 1);
    const bool counts = name == kModelRanks;
    if (!counts && !name.starts_with(kParamShapes)) return;
    const Value read = decode_value(value.pickle, {.file = shown(part.name)}, nullptr).value;
    if (counts) {
      if (const auto* ranks = read.as<std::int64_t>(); ranks != nullptr) {
        universal_says_.model_ranks_in_all = *ranks;
      }
      return;
    }
    // One dict of names and shapes for each group of parameters.
    const auto dot = name.find('.', kParamShapes.size());
    if (dot == std::string_view::npos) return;
    const std::string parameter(name.substr(dot + 1));
    if (const auto shape = shape_in(read)) {
      universal_says_.named[parameter].push_back(*shape);
    } else {
      find(Severity::kError, Code::kUnsupported,
           "param_shapes has something else than a torch.Size, so that nothing says if this "
           "parameter is whole",
           parameter, shown(part.name));
    }
  }

  void tell_universal() {
    for (Finding& finding : judge_universal(universal_says_)) {
      finding.file = shown(finding.file);
      findings_.push_back(std::move(finding));
    }
  }

  /// Compares the rank in a file's name with the one that saved the DTensors in it.
  void compare_ranks(const Part& part, const std::set<std::int64_t>& writers) {
    if (universal_) return;
    if (writers.empty() && (part.ranks > 1)) untold_.insert(part.item);
    for (const std::int64_t writer : writers) {
      if (writer == part.rank) continue;
      // torch_checkpointing counts ranks within the group that saves, and its metadata says where
      // parts belong.
      const bool by_name = location_.form == StoredForm::kRankFiles;
      std::string other = part.item + "_" + std::to_string(writer) + std::string(kEnd);
      if (by_name) {
        other = part.item + "_world_size_" + std::to_string(part.ranks) + "_rank_" +
                std::to_string(writer) + std::string(kEnd);
      }
      return find(by_name ? Severity::kError : Severity::kWarning, Code::kLayoutMismatch,
                  "the DTensors in it say that rank " + std::to_string(writer) +
                      " saved them, whose file is " + other + ": files were renamed or swapped",
                  "", shown(part.name));
    }
  }

  void note_untold() {
    if (untold_.empty()) return;
    find(Severity::kNote, Code::kNotStored,
         "only the names of these files say which rank wrote them, so that swapped ones could not "
         "be detected: those of " +
             join(untold_, ", "),
         "", store_.display(location_.directory));
  }

  void read_part(const Part& part, MetadataTables& table) {
    const std::string display = shown(part.name);
    hash_.text(part.name);
    try {
      WholeFile whole(store_, path_of(part.name));
      hash_.number(whole.size());
      TorchSaveFile file =
          taken_in(display, whole.size(), [&] { return read_torch_save(whole, part.item); });
      hash_.number(file.hash);
      any_ = true;
      const FileIndex index = names_.add(part.name);
      std::set<std::string> seen;
      std::set<std::int64_t> writers;
      ++files_of_[part.item];
      for (TorchSaveFile::Tensor& tensor : file.tensors) {
        seen.insert(tensor.key);
        if (tensor.saved_by) writers.insert(*tensor.saved_by);
        const std::string parameter = universal_ ? part.parameter() : "";
        if (!parameter.empty() && tensor.key == part.item + ".param") {
          tensor.key = part.item;
          tensor.path = {part.item};
        }
        if (!parameter.empty() && tensor.key == part.item) {
          universal_says_.states[parameter][part.state()] = tensor.shape;
        }
        take(part, index, std::move(tensor), table);
      }
      tell_lost(part, seen);
      compare_ranks(part, writers);
      for (PickledState::Object& value : file.objects) {
        if (universal_) hear(part, value);
        // Not below the tensor, which has the name of the whole file.
        if (universal_ && !part.parameter().empty()) value.path = {value.key};
        table.planner_data.push_back({value.key, std::move(value.path)});
        if (value.dropped_by_dcp) continue;
        table.objects.push_back({.key = std::move(value.key),
                                 .range = made_->add(std::move(value.pickle)),
                                 .place = place_of(table)});
      }
      for (Finding& finding : file.findings) {
        // Each rank ties the same tensors.
        if (finding.severity == Severity::kError) findings_.push_back(std::move(finding));
      }
    } catch (const Error& error) {
      if (!failure_) failure_ = std::current_exception();
      universal_says_.unread.insert(part.item);
      findings_.push_back(finding_from(error.within({.file = display})));
    }
  }

  static std::uint32_t place_of(const MetadataTables& table) {
    return static_cast<std::uint32_t>(table.tensors.size() + table.objects.size());
  }

  /// Names within the item, as the metadata has them.
  static std::string name_within(const Part& part, const std::string& key) {
    return key.size() > part.item.size() ? key.substr(part.item.size() + 1) : "";
  }

  /// Tells of tensors that the metadata says the rank has, and its file has not.
  void tell_lost(const Part& part, const std::set<std::string>& seen) {
    if (!about_ || !about_->items.contains(part.item)) return;
    for (const auto& [name, groups] : about_->items.at(part.item).tensors) {
      const std::string key = name.empty() ? part.item : part.item + "." + name;
      const bool expected = std::ranges::any_of(
          groups, [&](const auto& group) { return group.ranks.contains(part.rank); });
      if (!expected || seen.contains(key)) continue;
      find(Severity::kError, Code::kCoverageGap,
           "metadata.pkl says that rank " + std::to_string(part.rank) +
               " has a part of this tensor, but its file does not",
           key, shown(part.name));
    }
  }

  void take(const Part& part, FileIndex file, TorchSaveFile::Tensor tensor, MetadataTables& table) {
    const std::string display = shown(part.name);
    std::vector<LocalShard> shards;
    if (about_) shards = about_->shards_of(part.item, name_within(part, tensor.key), part.rank);
    if (tensor.shard) {
      const LocalShard own{*tensor.shard, Dims::filled(tensor.shape.size(), 0)};
      if (!shards.empty() && !(shards == std::vector{own})) {
        return find(Severity::kError, Code::kShapeDrift,
                    "metadata.pkl says that this part is " + to_string(shards.front().place.box) +
                        " of " + to_string(shards.front().place.shape) + ", the file that it is " +
                        to_string(own.place.box) + " of " + to_string(own.place.shape),
                    tensor.key, display, tensor.range.offset);
      }
      shards = {own};
    }
    if (shards.empty()) {
      if (may_be_part(part, tensor)) unplaced_.emplace(tensor.key, part.item);
      shards = {{{tensor.shape, Box::whole(tensor.shape)}, Dims::filled(tensor.shape.size(), 0)}};
    }
    table.planner_data.push_back({tensor.key, std::move(tensor.path)});
    StoredTensor stored{.key = tensor.key,
                        .dtype = tensor.dtype,
                        .shape = shards.front().place.shape,
                        .chunks = {},
                        .original_shape = {},
                        .folded = tensor.folded,
                        .place = place_of(table)};
    for (const LocalShard& shard : shards) {
      if (!(shard.place.shape == stored.shape) || !lies_in(shard, tensor)) {
        return find(Severity::kError, Code::kShapeDrift,
                    "metadata.pkl says that " + to_string(shard.place.box) +
                        " is in this tensor of shape " + to_string(tensor.shape),
                    tensor.key, display, tensor.range.offset);
      }
      if (shard.place.box.empty() && !stored.shape.empty() && volume(stored.shape) != 0) continue;
      stored.chunks.push_back({.box = shard.place.box,
                               .file = file,
                               .range = range_of(shard, tensor),
                               .form = ItemForm::kView,
                               .view = tensor.view});
    }
    if (stored.chunks.empty()) return;
    table.tensors.push_back(std::move(stored));
  }

  /// True if what a rank has of a tensor may be a part. Random states never are.
  bool may_be_part(const Part& part, const TorchSaveFile::Tensor& tensor) const {
    return !universal_ && (about_ || part.ranks > 1) && !is_random_state(tensor);
  }

  /// True for the bytes of a generator that have a name such as "rng" or "cuda_rng_state".
  static bool is_random_state(const TorchSaveFile::Tensor& tensor) {
    if (tensor.dtype != DType::kUInt8 || tensor.shape.size() != 1) return false;
    return std::ranges::any_of(tensor.path, [](const PathStep& step) {
      const auto* name = std::get_if<std::string>(&step);
      return name != nullptr &&
             (*name == "rng" || name->starts_with("rng_") || name->ends_with("_rng") ||
              name->find("_rng_") != std::string::npos);
    });
  }

  static bool lies_in(const LocalShard& shard, const TorchSaveFile::Tensor& tensor) {
    if (shard.place.box.ndim() != tensor.shape.size() ||
        shard.local_offset.size() != tensor.shape.size()) {
      return false;
    }
    for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
      const std::int64_t extent = shard.place.box.extent[d];
      if (extent > tensor.shape[d] || shard.local_offset[d] > tensor.shape[d] - extent)
        return false;
    }
    return true;
  }

  static ByteRange range_of(const LocalShard& shard, const TorchSaveFile::Tensor& tensor) {
    const std::uint64_t width = size_of(tensor.dtype);
    std::int64_t first = 0;
    std::int64_t reach = 1;
    for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
      if (shard.place.box.extent[d] == 0) return {tensor.range.offset, 0};
      first += shard.local_offset[d] * tensor.view->strides[d];
      reach += (shard.place.box.extent[d] - 1) * tensor.view->strides[d];
    }
    return {tensor.range.offset + static_cast<std::uint64_t>(first) * width,
            static_cast<std::uint64_t>(reach) * width};
  }

  /// Lists the tensors of which nothing says where they belong, unless all ranks have the same.
  void note_unplaced(Metadata& metadata) const {
    struct Content {
      std::set<std::tuple<std::uint64_t, std::uint32_t, std::string>> seen = {};
      std::size_t ranks = 0;
      bool known = true;
    };
    std::map<std::string_view, Content> contents;
    for (const StoredTensor& tensor : metadata.catalog.tensors) {
      const std::string_view name = name_of(tensor);
      if (!unplaced_.contains(std::string(name))) continue;
      const StoredChunk& chunk = tensor.chunks.front();
      const SharedRecord& record = *chunk.view->record;
      Content& content = contents[name];
      ++content.ranks;
      content.seen.emplace(record.range.size, record.crc,
                           std::string(name_of(tensor.dtype)) + to_string(tensor.shape) +
                               to_string(chunk.view->strides));
      // A record that has 0 as its checksum, or more than this tensor, proves nothing.
      content.known &= record.crc != 0 && record.range == chunk.range;
    }
    for (const auto& [name, content] : contents) {
      const std::size_t files = files_of_.at(unplaced_.at(std::string(name)));
      const bool same = content.seen.size() == 1 && content.known && content.ranks == files;
      if (files > 1 && !same) metadata.unplaced.emplace_back(name);
    }
  }

  Store& store_;
  const Location& location_;
  bool universal_;  ///< DeepSpeed's universal form
  std::vector<Part> parts_;
  std::optional<TorchCheckpointing> about_;
  std::string version_;
  UniversalParameters universal_says_;
  std::map<std::string, std::size_t> files_of_;  ///< how many files of an item were read
  std::set<std::string> untold_;                 ///< items whose files don't say who wrote them
  FileNames names_;
  std::shared_ptr<MadeItems> made_ = std::make_shared<MadeItems>();
  FileIndex made_file_ = kNoFile;
  std::map<std::string, std::string> unplaced_;  ///< tensors and their items
  Findings findings_;
  Hasher hash_;
  bool any_ = false;
  std::exception_ptr failure_;  ///< the first
};

}  // namespace

bool holds_files_of_ranks(Store& store, const std::string& directory) {
  return !parts_in(store, directory, part_of_world).empty();
}

bool holds_torch_checkpointing(Store& store, const std::string& directory) {
  return !parts_in(store, directory, part_of_item).empty() &&
         store.stat(join_path(directory, std::string(kMetadataPickle))).has_value();
}

bool holds_universal(Store& store, const std::string& directory) {
  const std::string zero = join_path(directory, std::string(kZero));
  const auto found = store.stat(zero);
  if (!found || !found->directory) return false;
  const std::string weights = std::string(kWeights) + std::string(kEnd);
  return std::ranges::any_of(store.list(zero), [&](const Entry& entry) {
    return entry.directory && store.stat(join_path(join_path(zero, entry.name), weights));
  });
}

OpenedFiles open_files_of_ranks(Store& store, const Location& location) {
  return RanksReader(store, location).read();
}

}  // namespace reprise
