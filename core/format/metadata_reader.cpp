// Reads one `.metadata`: turns objects of torch.distributed.checkpoint into tables.
//
//   Metadata            state_dict_metadata  {key: TensorStorageMetadata | BytesStorageMetadata}
//                       planner_data         {key: path} | None
//                       storage_data         {MetadataIndex: _StorageInfo}
//                       storage_meta         StorageMeta
//                       version              '1.0.0'
//                       mcore_data           {key: {nd_reformulated_orig_global_shape: ...}}
//                       all_local_plans      [SavePlan]; not read
//   TensorStorageMetadata  properties, size, chunks [ChunkStorageMetadata(offsets, sizes)]
//   MetadataIndex          fqn, index (a hint), offset (of the chunk; absent for objects)
//   _StorageInfo           relative_path, offset, length, transform_descriptors

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/format/metadata_objects.hpp"
#include "core/format/metadata_tables.hpp"
#include "core/format/tensor_item.hpp"
#include "core/geometry/folded_shape.hpp"
#include "reprise/error.hpp"

namespace reprise {
namespace {

using pickle::Kind;
using pickle::kNoNode;
using pickle::NodeId;

/// Maximum length of a path. File systems have the same limit.
constexpr std::size_t kPathBytesMax = 4096;

/// Assigns a number to each text; equal texts get equal numbers. Uses a sorted map, because a
/// hostile file can contain many texts with equal hashes. A file may refer to one text a million
/// times, so each node is looked up only once.
class Texts {
 public:
  explicit Texts(const pickle::Graph& graph) : graph_(graph), by_node_(graph.size(), kUnknown) {}

  std::uint32_t number_of(NodeId text) {
    std::uint32_t& number = by_node_[text];
    if (number == kUnknown) {
      const auto next = static_cast<std::uint32_t>(by_text_.size());
      number = by_text_.try_emplace(graph_.text(text), next).first->second;
    }
    return number;
  }

 private:
  static constexpr std::uint32_t kUnknown = 0xffffffff;

  const pickle::Graph& graph_;
  std::map<std::string_view, std::uint32_t> by_text_;
  std::vector<std::uint32_t> by_node_;
};

class TextIndex {
 public:
  explicit TextIndex(Texts& texts) : texts_(texts) {}

  /// Returns false if the text has been added before.
  bool add(NodeId text, std::uint32_t value) {
    const std::uint32_t number = texts_.number_of(text);
    if (number >= values_.size()) values_.resize(number + 1);
    if (values_[number]) return false;
    values_[number] = value;
    return true;
  }
  std::optional<std::uint32_t> find(NodeId text) {
    const std::uint32_t number = texts_.number_of(text);
    return number < values_.size() ? values_[number] : std::nullopt;
  }

 private:
  Texts& texts_;
  std::vector<std::optional<std::uint32_t>> values_;  ///< indexed by the numbers of `texts_`
};

void check_path(const pickle::Objects& objects, NodeId node, std::string_view path) {
  const auto escapes = [&](const char* why) {
    objects.fail(Code::kPathEscape,
                 "the storage path '" + std::string(path.substr(0, 200)) + "' " + why +
                     "; a checkpoint names files inside its own directory only",
                 node);
  };
  if (path.empty()) escapes("is empty");
  if (path.front() == '/') escapes("is absolute");
  if (path.find('\\') != std::string_view::npos) escapes("has a backslash");
  if (path.find('\0') != std::string_view::npos) escapes("has a NUL");
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") escapes("has an empty, '.' or '..' part");
    begin = end + 1;
  }
}

/// True if the pickle begins with a frame, as every pickle of this size does that Python writes in
/// protocol 4 or later, and as torch's are.
bool is_framed(ByteSpan file) {
  constexpr std::byte kFrame{0x95};
  return file.size() > 2 && file[2] == kFrame;
}

class TablesReader {
 public:
  TablesReader(const pickle::Reading& reading, const PickleSource& where, ByteSpan file,
               FileNames& names, Notes& notes)
      : graph_(reading.graph),
        objects_(reading.graph, where),
        root_(reading.root),
        names_(names),
        notes_(notes),
        chunk_budget_(file.size() / 16),
        text_budget_(8 * file.size() + 65536),
        texts_(reading.graph),
        tensor_index_(texts_),
        object_index_(texts_),
        planner_index_(texts_),
        file_index_(texts_) {
    if (!is_framed(file)) tables_.forms.add(Form::kWithoutFrames);
  }

  MetadataTables read() {
    const std::string_view type = objects_.type_name(root_);
    if (type != "Metadata" && type != "MCoreMetadata") {
      objects_.fail(Code::kTornFile,
                    "the pickle does not hold checkpoint metadata but " +
                        std::string(type.empty() ? name_of(graph_.kind(root_)) : type));
    }
    const auto [keys, planner, storage, meta, version, mcore, plans] =
        objects_.attributes<7>(root_, {"state_dict_metadata", "planner_data", "storage_data",
                                       "storage_meta", "version", "mcore_data", "all_local_plans"});
    if (keys != kNoNode && graph_.kind(keys) == Kind::kDict) {
      const std::size_t count = graph_.count(graph_.chain(keys)) / 2;
      tables_.tensors.reserve(std::min(count, chunk_budget_ / 4));  // a tensor has 64 bytes or more
    }
    objects_.each_entry(keys, "state_dict_metadata",
                        [this](NodeId key, NodeId value) { read_key(key, value); });
    if (!objects_.missing(mcore)) {
      objects_.each_entry(mcore, "mcore_data",
                          [this](NodeId key, NodeId value) { read_mcore(key, value); });
    }
    if (!objects_.missing(storage)) {
      objects_.each_entry(storage, "storage_data",
                          [this](NodeId index, NodeId info) { read_storage(index, info); });
    }
    if (!objects_.missing(planner)) read_planner_data(planner);
    if (!objects_.missing(meta)) read_storage_meta(meta);
    if (!objects_.missing(version)) tables_.version = text(version, "version");
    tables_.has_local_plans = !objects_.missing(plans);
    tables_.forms.add(objects_.missing(version) ? Form::kNoVersion : Form::kVersion);
    if (type == "MCoreMetadata") tables_.forms.add(Form::kMegatronMetadata);
    if (!objects_.missing(mcore)) tables_.forms.add(Form::kShapesOfFlattened);
    if (tables_.has_local_plans) read_kind_of_plans(plans);
    return std::move(tables_);
  }

 private:
  template <class Read>
  void of_key(NodeId key, const Read& read);
  void read_key(NodeId key, NodeId value);
  void read_tensor(NodeId key, NodeId value);
  StoredChunk read_chunk(NodeId node, const StoredTensor& tensor);
  void fold_last(StoredTensor& tensor, NodeId key);
  void fold_last(const StoredTensor& tensor, const FoldedExtents& offset,
                 const FoldedExtents& extent, Box& box);
  void read_properties(NodeId properties, StoredTensor& tensor);
  void read_traits(std::span<const NodeId> fields, StoredTensor& tensor);
  bool is_memory_format(NodeId node) const;
  std::uint32_t next_place() const;
  void read_mcore(NodeId key, NodeId value);
  void read_storage(NodeId index, NodeId info);
  void place_chunks(StoredTensor& tensor, std::uint32_t position, const Dims& offset,
                    FileIndex file, ByteRange range);
  std::span<const std::uint32_t> chunks_at(const StoredTensor& tensor, std::uint32_t position,
                                           const Dims& offset);
  FileIndex read_file(NodeId path);
  void refuse_transforms(NodeId transforms);
  void read_planner_data(NodeId planner);
  void read_planner(NodeId key, NodeId path);
  void read_storage_meta(NodeId meta);
  void read_kind_of_plans(NodeId plans);
  std::string read_checkpoint_id(NodeId id);

  /// Copies the text and charges it to the budget, because the same text may be referred to any
  /// number of times.
  std::string text(NodeId node, const char* what);
  void charge_text(std::size_t bytes, NodeId at);
  /// Limits the length of a key or path, because messages repeat it for each faulty chunk.
  void check_length(NodeId text, const char* what, std::size_t limit);
  void check_volume(const Dims& extents, NodeId key);
  std::string shown(NodeId key) const { return std::string(graph_.text(key).substr(0, 200)); }

  const pickle::Graph& graph_;
  pickle::Objects objects_;
  NodeId root_;
  FileNames& names_;
  Notes& notes_;
  std::size_t chunk_budget_;
  std::size_t text_budget_;
  MetadataTables tables_;
  pickle::NodeId current_key_ = kNoNode;
  Texts texts_;
  TextIndex tensor_index_;
  TextIndex object_index_;
  TextIndex planner_index_;
  TextIndex file_index_;
  /// For each tensor, its chunks sorted by offset; empty until needed.
  std::vector<std::vector<std::uint32_t>> by_offset_;
};

std::string TablesReader::text(NodeId node, const char* what) {
  const std::string_view found = objects_.text(node, what);
  charge_text(found.size(), node);
  return std::string(found);
}

void TablesReader::charge_text(std::size_t bytes, NodeId at) {
  const std::size_t cost = bytes + 16;
  if (cost > text_budget_) {
    objects_.fail(Code::kLimit,
                  "the metadata repeats text far more often than its size can justify", at);
  }
  text_budget_ -= cost;
}

void TablesReader::check_length(NodeId text, const char* what, std::size_t limit) {
  const std::size_t length = objects_.text(text, what).size();
  if (length <= limit) return;
  objects_.fail(Code::kUnsupported,
                std::string(what) + " of " + std::to_string(length) + " bytes; at most " +
                    std::to_string(limit) + " are supported",
                text);
}

void TablesReader::check_volume(const Dims& extents, NodeId key) {
  constexpr std::size_t kLargestElement = 16;  // in bytes
  if (!too_large(kLargestElement, extents)) return;
  objects_.fail(
      Code::kLimit,
      "tensor " + shown(key) + " has extents " + to_string(extents) + ", more than 2^62 bytes",
      key);
}

/// Calls `read`, whose errors then name the key.
template <class Read>
void TablesReader::of_key(NodeId key, const Read& read) {
  try {
    read();
  } catch (const Error& error) {
    throw error.within({.key = std::string(graph_.text(key).substr(0, kKeyBytesMax))});
  }
}

void TablesReader::read_key(NodeId key, NodeId value) {
  check_length(key, "a key of state_dict_metadata", kKeyBytesMax);
  current_key_ = key;
  const std::string_view type = objects_.type_name(value);
  if (tensor_index_.find(key) || object_index_.find(key)) {
    objects_.fail(Code::kTornFile, "the key " + shown(key) + " occurs twice", key);
  }
  if (type == "TensorStorageMetadata") {
    tensor_index_.add(key, static_cast<std::uint32_t>(tables_.tensors.size()));
    of_key(key, [&] { read_tensor(key, value); });
  } else if (type == "BytesStorageMetadata") {
    object_index_.add(key, static_cast<std::uint32_t>(tables_.objects.size()));
    tables_.objects.push_back({text(key, "a key"), kNoFile, {}, next_place()});
  } else {
    objects_.fail(Code::kTornFile, "the key " + shown(key) + " is neither tensor nor bytes", key);
  }
}

void TablesReader::read_tensor(NodeId key, NodeId value) {
  const auto [properties, size, chunks] =
      objects_.attributes<3>(value, {"properties", "size", "chunks"});
  StoredTensor tensor;
  tensor.key = text(key, "a key");
  tensor.place = next_place();
  tensor.shape = objects_.extents(size, "a tensor's size", &tensor.folded);
  fold_last(tensor, key);
  read_properties(properties, tensor);
  check_volume(tensor.shape, key);
  objects_.each_item(chunks, "a tensor's list of chunks", [&](NodeId chunk) {
    if (chunk_budget_ == 0) {
      objects_.fail(Code::kLimit, "the metadata repeats chunks out of proportion to its size", key);
    }
    --chunk_budget_;
    tensor.chunks.push_back(read_chunk(chunk, tensor));
  });
  tables_.tensors.push_back(std::move(tensor));
}

/// Makes the last dimension of the shape stand for all that are folded into it.
void TablesReader::fold_last(StoredTensor& tensor, NodeId key) {
  if (tensor.folded.empty()) return;
  const auto product = checked_volume(tensor.folded);
  if (product) tensor.shape[kMaxNdim - 1] = *product;
  if (!can_stand_for(tensor.shape, tensor.folded)) {
    objects_.fail(Code::kLimit,
                  "tensor " + shown(key) + " has extents " + shape_text(tensor.folded) +
                      ", more than 2^62 bytes",
                  key);
  }
}

/// Folds the box of a chunk like the shape of its tensor, along whose folded dimensions it must not
/// be cut.
void TablesReader::fold_last(const StoredTensor& tensor, const FoldedExtents& offset,
                             const FoldedExtents& extent, Box& box) {
  if (tensor.folded.empty()) return;
  const bool whole = std::ranges::all_of(offset, [](auto at) { return at == 0; });
  if (!whole || extent != tensor.folded) {
    objects_.fail(Code::kUnsupported,
                  "tensor " + shown(current_key_) + " has " +
                      std::to_string(kMaxNdim - 1 + tensor.folded.size()) +
                      " dimensions and is cut along one after the first " +
                      std::to_string(kMaxNdim - 1) + ", which is not supported",
                  current_key_);
  }
  box.extent[kMaxNdim - 1] = tensor.shape[kMaxNdim - 1];
}

StoredChunk TablesReader::read_chunk(NodeId node, const StoredTensor& tensor) {
  if (objects_.type_name(node) != "ChunkStorageMetadata") {
    objects_.fail(Code::kTornFile, "tensor " + shown(current_key_) + " has a chunk that is none",
                  current_key_);
  }
  const auto [offsets, sizes] = objects_.attributes<2>(node, {"offsets", "sizes"});
  StoredChunk chunk;
  FoldedExtents offset;
  FoldedExtents extent;
  chunk.box.offset = objects_.extents(offsets, "a chunk's offsets", &offset);
  chunk.box.extent = objects_.extents(sizes, "a chunk's sizes", &extent);
  if (chunk.box.offset.size() != tensor.shape.size() ||
      chunk.box.extent.size() != tensor.shape.size() || offset.size() != tensor.folded.size() ||
      extent.size() != tensor.folded.size()) {
    objects_.fail(Code::kTornFile,
                  "tensor " + shown(current_key_) + " of shape " + to_string(tensor.shape) +
                      " has a chunk at " + to_string(chunk.box.offset) + " of size " +
                      to_string(chunk.box.extent) + ": the numbers of dimensions differ",
                  current_key_);
  }
  fold_last(tensor, offset, extent, chunk.box);
  check_volume(chunk.box.extent, current_key_);
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    std::int64_t end = 0;
    if (__builtin_add_overflow(chunk.box.offset[d], chunk.box.extent[d], &end)) {
      objects_.fail(Code::kLimit, "tensor " + shown(current_key_) + " has a chunk beyond 2^63",
                    current_key_);
    }
  }
  return chunk;
}

/// Returns the number of tensors and objects read so far.
std::uint32_t TablesReader::next_place() const {
  return static_cast<std::uint32_t>(tables_.tensors.size() + tables_.objects.size());
}

/// True if the node is a member of torch's enum of memory formats. A pickle refers to the member by
/// its number, or by its name in some Python versions.
bool TablesReader::is_memory_format(NodeId node) const {
  constexpr std::int64_t kMost = 2;
  const std::string_view type = objects_.type_name(node);
  if (type == "getattr") return true;  // unknown enums and members have already been refused
  if (!type.ends_with("MEM_FORMAT_ENCODING")) return false;
  const auto args = graph_.tuple(graph_.instance(node).args);
  return args.size() == 1 && graph_.kind(args[0]) == Kind::kInteger &&
         graph_.integer(args[0]) >= 0 && graph_.integer(args[0]) <= kMost;
}

void TablesReader::read_properties(NodeId properties, StoredTensor& tensor) {
  const auto wrong = [this](const std::string& what) {
    objects_.fail(Code::kTornFile, "tensor " + shown(current_key_) + " has " + what, current_key_);
  };
  if (objects_.type_name(properties) != "TensorProperties") wrong("no properties");
  const NodeId state = graph_.instance(properties).state;
  constexpr std::size_t kFields = 5;
  constexpr std::size_t kFieldsWithStrides = 6;  // since torch 2.15
  const auto fields = state != kNoNode && graph_.kind(state) == Kind::kTuple
                          ? graph_.tuple(state)
                          : std::span<const NodeId>{};
  if (fields.size() != kFields && fields.size() != kFieldsWithStrides) {
    wrong("properties without the five or six fields that torch writes");
  }
  if (!is_memory_format(fields[3])) wrong("a memory format that torch does not know");
  if (graph_.kind(fields[0]) != Kind::kName) wrong("no dtype");
  const pickle::GlobalName& name = graph_.global(fields[0]);
  const auto dtype = name.module == "torch" ? dtype_named(name.name) : std::nullopt;
  if (!dtype) {
    objects_.fail(Code::kUnsupported,
                  "tensor " + shown(current_key_) + " has elements of type " +
                      std::string(name.name) + ", which is not supported",
                  current_key_);
  }
  if (objects_.type_name(fields[1]) == "_get_layout") {
    const auto layout = graph_.text(graph_.tuple(graph_.instance(fields[1]).args)[0]);
    if (layout != "torch.strided") {
      objects_.fail(Code::kUnsupported,
                    "tensor " + shown(current_key_) + " has the layout " +
                        std::string(layout.substr(0, 64)) + "; only torch.strided is handled",
                    current_key_);
    }
  }
  tensor.dtype = *dtype;
  tables_.forms.add(fields.size() == kFields ? Form::kNoStrides : Form::kStrides);
  read_traits(fields, tensor);
}

/// Reads optional properties. Unfamiliar forms get the default, because nothing depends on them.
void TablesReader::read_traits(std::span<const NodeId> fields, StoredTensor& tensor) {
  constexpr std::size_t kStrides = 5;
  constexpr std::int64_t kFormatMax = 2;
  const auto flag = [this](NodeId node) {
    return graph_.kind(node) == Kind::kBool && graph_.boolean(node);
  };
  TensorTraits& traits = tensor.traits;
  traits.requires_grad = flag(fields[2]);
  traits.pin_memory = flag(fields[4]);
  if (objects_.type_name(fields[3]) == "_MEM_FORMAT_ENCODING") {
    const auto args = graph_.tuple(graph_.instance(fields[3]).args);
    const bool number = args.size() == 1 && graph_.kind(args[0]) == Kind::kInteger;
    const std::int64_t format = number ? graph_.integer(args[0]) : 0;
    if (format >= 0 && format <= kFormatMax)
      traits.memory_format = static_cast<std::uint8_t>(format);
  }
  if (fields.size() <= kStrides || graph_.kind(fields[kStrides]) != Kind::kTuple) return;
  const auto strides = graph_.tuple(fields[kStrides]);
  if (strides.size() != all_extents(tensor).size()) return;
  traits.strides.emplace();
  for (const NodeId stride : strides) {
    if (graph_.kind(stride) != Kind::kInteger) return traits.strides.reset();
    traits.strides->push_back(graph_.integer(stride));
  }
}

void TablesReader::read_mcore(NodeId key, NodeId value) {
  objects_.text(key, "a key of mcore_data");
  const auto found = tensor_index_.find(key);
  const auto [shape] = objects_.attributes<1>(value, {"nd_reformulated_orig_global_shape"});
  if (objects_.missing(shape)) return;
  const Dims original = objects_.extents(shape, "nd_reformulated_orig_global_shape");
  check_volume(original, key);
  if (!found) {
    notes_.add("mcore_data without a tensor",
               "mcore_data mentions " + shown(key) + ", which is not a tensor here");
    return;
  }
  StoredTensor& tensor = tables_.tensors[*found];
  if (!tensor.folded.empty()) {
    objects_.fail(Code::kUnsupported,
                  "tensor " + shown(key) + " is stored flattened, in " +
                      std::to_string(all_extents(tensor).size()) + " dimensions; at most " +
                      std::to_string(kMaxNdim) + " are supported",
                  key);
  }
  tensor.original_shape = original;
}

void TablesReader::read_storage(NodeId index, NodeId info) {
  if (objects_.type_name(index) != "MetadataIndex" || objects_.type_name(info) != "_StorageInfo") {
    objects_.fail(Code::kTornFile, "an entry of storage_data is not index and storage");
  }
  const auto [fqn, offset] = objects_.attributes<2>(index, {"fqn", "offset"});
  const auto [path, begin, length, transforms] =
      objects_.attributes<4>(info, {"relative_path", "offset", "length", "transform_descriptors"});
  objects_.text(fqn, "a storage entry's key");
  of_key(fqn, [&, fqn = fqn, offset = offset, path = path, begin = begin, length = length,
               transforms = transforms] {
    const FileIndex file = read_file(path);
    const ByteRange range{static_cast<std::uint64_t>(objects_.count(begin, "a storage offset")),
                          static_cast<std::uint64_t>(objects_.count(length, "a storage length"))};
    if (!objects_.missing(transforms)) refuse_transforms(transforms);
    const auto tensor = tensor_index_.find(fqn);
    if (tensor && !objects_.missing(offset)) {
      FoldedExtents last;
      Dims start = objects_.extents(offset, "a storage entry's offset", &last);
      StoredTensor& stored = tables_.tensors[*tensor];
      // All chunks of a folded tensor start at 0 in the dimensions that are folded.
      const bool fits = last.size() == stored.folded.size() &&
                        std::ranges::all_of(last, [](auto at) { return at == 0; });
      if (!fits) start = Dims::filled(kMaxNdim, -1);
      place_chunks(stored, *tensor, start, file, range);
      return;
    }
    const auto object = object_index_.find(fqn);
    if (!object || !objects_.missing(offset)) {
      notes_.add("storage without an entry", "storage of " + shown(fqn) + " belongs to no chunk");
      return;
    }
    StoredObject& stored = tables_.objects[*object];
    if (stored.file != kNoFile) {
      objects_.fail(Code::kTornFile, "object " + shown(fqn) + " has two storages", fqn);
    }
    stored.file = file;
    stored.range = range;
  });
}

std::span<const std::uint32_t> TablesReader::chunks_at(const StoredTensor& tensor,
                                                       std::uint32_t position, const Dims& offset) {
  if (by_offset_.size() < tables_.tensors.size()) by_offset_.resize(tables_.tensors.size());
  auto& order = by_offset_[position];
  if (order.size() != tensor.chunks.size()) {
    for (std::uint32_t i = 0; i < tensor.chunks.size(); ++i) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return tensor.chunks[a].box.offset < tensor.chunks[b].box.offset;
    });
  }
  struct ByOffset {
    const StoredTensor& tensor;
    bool operator()(std::uint32_t i, const Dims& o) const {
      return tensor.chunks[i].box.offset < o;
    }
    bool operator()(const Dims& o, std::uint32_t i) const {
      return o < tensor.chunks[i].box.offset;
    }
  };
  const auto [first, last] = std::equal_range(order.begin(), order.end(), offset, ByOffset{tensor});
  return {first, last};
}

void TablesReader::place_chunks(StoredTensor& tensor, std::uint32_t position, const Dims& offset,
                                FileIndex file, ByteRange range) {
  const auto found = chunks_at(tensor, position, offset);
  if (found.empty()) {
    notes_.add("storage without a chunk", "storage of " + tensor.key.substr(0, 200) + " at " +
                                              to_string(offset) + " belongs to no chunk");
    return;
  }
  if (found.size() > 1) {
    notes_.add("chunks that start at one place", std::to_string(found.size()) + " chunks of " +
                                                     tensor.key.substr(0, 200) + " start at " +
                                                     to_string(offset) + " and share one storage");
  }
  if (tensor.chunks[found.front()].file != kNoFile) {
    objects_.fail(Code::kTornFile, "tensor " + tensor.key.substr(0, 200) +
                                       " has two storages for the chunk at " + to_string(offset));
  }
  for (const std::uint32_t i : found) {
    tensor.chunks[i].file = file;
    tensor.chunks[i].range = range;
  }
}

FileIndex TablesReader::read_file(NodeId path) {
  const std::string_view name = objects_.text(path, "a storage's relative_path");
  if (const auto known = file_index_.find(path)) return *known;
  check_length(path, "a storage's relative_path", kPathBytesMax);
  check_path(objects_, path, name);
  const FileIndex file = names_.add(name);
  file_index_.add(path, file);
  return file;
}

void TablesReader::refuse_transforms(NodeId transforms) {
  objects_.each_item(transforms, "transform_descriptors", [&](NodeId transform) {
    objects_.fail(Code::kUnsupported,
                  "items are stored through the stream transform " +
                      std::string(objects_.text(transform, "a transform").substr(0, 64)) +
                      ", which is not read here: load it with torch, and save it without "
                      "_extensions",
                  transform);
  });
}

void TablesReader::read_planner_data(NodeId planner) {
  const bool dict =
      graph_.kind(planner) == Kind::kDict || objects_.type_name(planner) == "OrderedDict";
  if (!dict) {
    objects_.fail(Code::kUnsupported, "planner_data is not a dict but " +
                                          std::string(name_of(graph_.kind(planner))) +
                                          ": what a custom planner stores there is not supported");
  }
  objects_.each_entry(planner, "planner_data",
                      [this](NodeId key, NodeId path) { read_planner(key, path); });
}

void TablesReader::read_planner(NodeId key, NodeId path) {
  const auto own = [&](const char* what) {
    objects_.fail(Code::kUnsupported,
                  "planner_data holds " + std::string(what) +
                      ": what a custom planner stores there is not supported",
                  key);
  };
  PlannerEntry entry;
  if (graph_.kind(key) != Kind::kText) own("a key that is not a string");
  if (graph_.kind(path) != Kind::kTuple && graph_.kind(path) != Kind::kList) {
    own("an entry that is not a path");
  }
  if (!planner_index_.add(key, 0)) {
    objects_.fail(Code::kTornFile, "planner_data has the key " + shown(key) + " twice", key);
  }
  entry.key = text(key, "a key of planner_data");
  objects_.each_item(path, "a path of planner_data", [&](NodeId step) {
    if (graph_.kind(step) == Kind::kInteger && graph_.integer(step) >= 0) {
      charge_text(0, key);  // each step costs memory, and many paths can share one node
      entry.path.emplace_back(graph_.integer(step));
    } else if (graph_.kind(step) == Kind::kText) {
      entry.path.emplace_back(text(step, "a step of a path of planner_data"));
    } else {
      own("a path with a step that is neither a string nor an index");
    }
  });
  tables_.planner_data.push_back(std::move(entry));
}

void TablesReader::read_storage_meta(NodeId meta) {
  const std::string_view type = objects_.type_name(meta);
  if (type != "StorageMeta") {  // torch sets an attribute of it, which most other types refuse
    objects_.fail(Code::kTornFile,
                  "storage_meta is not a StorageMeta: " +
                      std::string(type.empty() ? name_of(graph_.kind(meta)) : type));
  }
  const auto [id, save_id, modules] =
      objects_.attributes<3>(meta, {"checkpoint_id", "save_id", "modules"});
  tables_.forms.add(modules == kNoNode ? Form::kNoModules : Form::kModules);
  if (!objects_.missing(id)) tables_.checkpoint_id = read_checkpoint_id(id);
  if (!objects_.missing(save_id)) tables_.save_id = text(save_id, "save_id");
}

/// Reads only of which class the plans are.
void TablesReader::read_kind_of_plans(NodeId plans) {
  if (graph_.kind(plans) != Kind::kList) return;
  objects_.each_item(plans, "all_local_plans", [this](NodeId plan) {
    const std::string_view type = objects_.type_name(plan);
    if (type == "SavePlan") tables_.forms.add(Form::kPlans);
    if (type == "MCoreSavePlan") tables_.forms.add(Form::kMegatronPlans);
  });
}

std::string TablesReader::read_checkpoint_id(NodeId id) {
  if (graph_.kind(id) != Kind::kInstance) return text(id, "checkpoint_id");
  std::string joined;  // parts of a pathlib path; the first may be "/"
  for (const NodeId part : graph_.tuple(graph_.instance(id).args)) {
    if (!joined.empty() && joined.back() != '/') joined += '/';
    joined += text(part, "a part of checkpoint_id");
  }
  return joined;
}

}  // namespace

MetadataTables read_tables(ByteSpan file, const std::string& name, FileNames& names, Notes& notes) {
  const PickleSource where{name};
  const pickle::Reading reading = pickle::read_graph(file, pickle::Grammar::kMetadata, where);
  return TablesReader(reading, where, file, names, notes).read();
}

}  // namespace reprise
