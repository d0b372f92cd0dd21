// Writes `.metadata` so that torch 2.4 to 2.15 and megatron-core can load it. Uses pickle protocol
// 4 and plain classes. Stores the names of classes and attributes in the memo.

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/check.hpp"
#include "core/format/metadata.hpp"
#include "core/format/pickle/pickle_emit.hpp"
#include "core/geometry/folded_shape.hpp"

namespace reprise {
namespace {

using pickle::Emitter;
using pickle::Protocol;

constexpr std::string_view kModule = "torch.distributed.checkpoint.metadata";

/// Returns the positions of tensors, and after them of objects, in the order of their recorded
/// places. At equal places, tensors come first.
std::vector<std::size_t> order_of(const Catalog& catalog) {
  std::vector<std::pair<std::uint32_t, std::size_t>> places;
  places.reserve(catalog.tensors.size() + catalog.objects.size());
  for (const auto& tensor : catalog.tensors) places.emplace_back(tensor.place, places.size());
  for (const auto& object : catalog.objects) places.emplace_back(object.place, places.size());
  std::sort(places.begin(), places.end());
  std::vector<std::size_t> order;
  order.reserve(places.size());
  for (const auto& [place, at] : places) order.push_back(at);
  return order;
}

class MetadataWriter {
 public:
  explicit MetadataWriter(const Metadata& metadata)
      : metadata_(metadata),
        order_(order_of(metadata.catalog)),
        keys_(order_.size()),
        files_(metadata.catalog.files.size()) {}

  Bytes write() {
    begin_object(kModule, "Metadata");
    attribute("state_dict_metadata");
    write_keys();
    attribute("planner_data");
    write_planner();
    attribute("storage_data");
    write_storages();
    attribute("storage_meta");
    write_storage_meta();
    if (has_original_shapes()) {
      attribute("mcore_data");
      write_mcore();
    }
    attribute("version");
    out_.text("1.0.0");
    end_object();
    return out_.finish();
  }

 private:
  void begin_object(std::string_view module, std::string_view name) {
    out_.global(module, name);
    out_.ops(")\x81}(");
  }
  void attribute(std::string_view name) { out_.lasting_text(name); }
  void end_object() { out_.ops("ub"); }
  void integers(std::span<const std::int64_t> values) {
    if (values.size() > 3) out_.mark();
    for (const std::int64_t value : values) out_.integer(value);
    out_.tuple(values.size());
  }
  void size(std::span<const std::int64_t> values);
  void size(const Dims& dims) { size(std::span(dims.begin(), dims.size())); }
  void size(const Dims& extents, const FoldedExtents& folded) {
    if (folded.empty()) return size(extents);
    size(unfolded(extents, folded));
  }
  void offset_of(const StoredTensor& tensor, const StoredChunk& chunk) {
    if (tensor.folded.empty()) return size(chunk.box.offset);
    size(unfolded_offset(chunk.box.offset, tensor.folded));
  }
  void write_keys();
  void write_tensor(const StoredTensor& tensor);
  void write_object();
  void write_properties(const StoredTensor& tensor);
  void write_layout();
  void write_memory_format(std::uint8_t format);
  void write_planner();
  void write_path(std::uint32_t key, const PlannerEntry& entry);
  void write_storages();
  void write_storage(std::uint32_t key, const StoredTensor& tensor, std::size_t position);
  void write_storage(std::uint32_t key, const StoredObject& object);
  void begin_index(std::uint32_t key);
  void write_place(FileIndex file, ByteRange range);
  void write_storage_meta();
  bool has_original_shapes() const;
  void write_mcore();
  const Metadata& metadata_;
  std::vector<std::size_t> order_;  ///< see order_of()
  /// Index in the memo of the key of each tensor and, after those, of each object.
  std::vector<std::uint32_t> keys_;
  std::vector<std::optional<std::uint32_t>> files_;  ///< index in the memo of each file's name
  Emitter out_{Protocol::kFour};
  std::optional<std::uint32_t> layout_;
  std::map<std::uint8_t, std::uint32_t> memory_formats_;
  std::map<std::pair<DType, TensorTraits>, std::uint32_t> properties_;
};

void MetadataWriter::size(std::span<const std::int64_t> values) {
  out_.global("torch", "Size");
  integers(values);
  out_.tuple(1);
  out_.op('R');
}

void MetadataWriter::write_keys() {
  const Catalog& catalog = metadata_.catalog;
  const std::size_t tensors = catalog.tensors.size();
  out_.op('}');
  out_.mark();
  for (const std::size_t at : order_) {
    const bool is_tensor = at < tensors;
    keys_[at] =
        out_.shared_text(is_tensor ? catalog.tensors[at].key : catalog.objects[at - tensors].key);
    if (is_tensor) {
      write_tensor(catalog.tensors[at]);
    } else {
      write_object();
    }
  }
  out_.op('u');
}

/// Writes an object without state: the opcode NEWOBJ without BUILD.
void MetadataWriter::write_object() {
  out_.global(kModule, "BytesStorageMetadata");
  out_.ops(")\x81");
}

void MetadataWriter::write_tensor(const StoredTensor& tensor) {
  begin_object(kModule, "TensorStorageMetadata");
  attribute("properties");
  write_properties(tensor);
  attribute("size");
  size(tensor.shape, tensor.folded);
  attribute("chunks");
  out_.op(']');
  out_.mark();
  for (const StoredChunk& chunk : tensor.chunks) {
    begin_object(kModule, "ChunkStorageMetadata");
    attribute("offsets");
    offset_of(tensor, chunk);
    attribute("sizes");
    size(chunk.box.extent, tensor.folded);
    end_object();
  }
  out_.op('e');
  end_object();
}

/// Writes dtype, layout, requires_grad, memory format and pin_memory, five fields that every
/// version accepts. Strides follow as a sixth field if that is asked for and the tensor was saved
/// with them: torch before 2.15 unpacks exactly five. Each tensor gets an object of its own,
/// because torch may modify it in place.
void MetadataWriter::write_properties(const StoredTensor& tensor) {
  TensorTraits traits = tensor.traits;
  if (!metadata_.write_strides) traits.strides.reset();
  out_.global(kModule, "TensorProperties");
  out_.ops(")\x81");
  const std::pair key{tensor.dtype, traits};
  const auto known = properties_.find(key);
  if (known != properties_.end()) {
    out_.get(known->second);
  } else {
    out_.mark();
    out_.global("torch", name_of(tensor.dtype));
    write_layout();
    out_.boolean(traits.requires_grad);
    write_memory_format(traits.memory_format);
    out_.boolean(traits.pin_memory);
    if (traits.strides) integers(*traits.strides);
    out_.op('t');
    properties_.emplace(key, out_.memoize());
  }
  out_.op('b');
}

void MetadataWriter::write_layout() {
  if (layout_) return out_.get(*layout_);
  out_.global("torch.serialization", "_get_layout");
  out_.text("torch.strided");
  out_.tuple(1);
  out_.op('R');
  layout_ = out_.memoize();
}

void MetadataWriter::write_memory_format(std::uint8_t format) {
  const auto known = memory_formats_.find(format);
  if (known != memory_formats_.end()) return out_.get(known->second);
  out_.global(kModule, "_MEM_FORMAT_ENCODING");
  out_.integer(format);
  out_.tuple(1);
  out_.op('R');
  memory_formats_.emplace(format, out_.memoize());
}

/// Writes the planner entries in order, then one entry for each key that lacks one.
void MetadataWriter::write_planner() {
  const auto last = std::max_element(keys_.begin(), keys_.end());
  std::vector<bool> missing(last == keys_.end() ? 0 : *last + 1);  // by index in the memo
  for (const std::uint32_t key : keys_) missing[key] = true;
  const auto take = [&](std::uint32_t key) {
    const bool taken = key < missing.size() && missing[key];
    if (taken) missing[key] = false;
    return taken;
  };
  out_.op('}');
  out_.mark();
  for (const PlannerEntry& entry : metadata_.planner_data) {
    const auto key = out_.index_of(entry.key);
    if (key && take(*key)) write_path(*key, entry);
  }
  for (const std::size_t at : order_) {
    if (!take(keys_[at])) continue;
    out_.get(keys_[at]);
    out_.get(keys_[at]);
    out_.tuple(1);
  }
  out_.op('u');
}

void MetadataWriter::write_path(std::uint32_t key, const PlannerEntry& entry) {
  out_.get(key);
  if (entry.path.size() > 3) out_.mark();
  for (const PathStep& step : entry.path) {
    const auto* text = std::get_if<std::string>(&step);
    if (text == nullptr) {
      out_.integer(std::get<std::int64_t>(step));
    } else if (*text == entry.key) {
      out_.get(key);
    } else {
      out_.shared_text(*text);
    }
  }
  out_.tuple(entry.path.size());
}

void MetadataWriter::write_storages() {
  const Catalog& catalog = metadata_.catalog;
  out_.op('}');
  out_.mark();
  for (std::size_t t = 0; t < catalog.tensors.size(); ++t) {
    const StoredTensor& tensor = catalog.tensors[t];
    std::set<Dims> written;  // chunks at equal offsets share an entry; not needed for one chunk
    for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
      const StoredChunk& chunk = tensor.chunks[i];
      if (chunk.file == kNoFile) continue;
      if (tensor.chunks.size() > 1 && !written.insert(chunk.box.offset).second) continue;
      write_storage(keys_[t], tensor, i);
    }
  }
  for (std::size_t i = 0; i < catalog.objects.size(); ++i) {
    const StoredObject& object = catalog.objects[i];
    if (object.file != kNoFile) write_storage(keys_[catalog.tensors.size() + i], object);
  }
  out_.op('u');
}

void MetadataWriter::write_storage(std::uint32_t key, const StoredTensor& tensor,
                                   std::size_t position) {
  begin_index(key);
  out_.integer(static_cast<std::int64_t>(position));
  attribute("offset");
  offset_of(tensor, tensor.chunks[position]);
  end_object();
  write_place(tensor.chunks[position].file, tensor.chunks[position].range);
}

/// Objects lack the attribute `offset`; it is not None.
void MetadataWriter::write_storage(std::uint32_t key, const StoredObject& object) {
  begin_index(key);
  out_.none();
  end_object();
  write_place(object.file, object.range);
}

/// The object must be complete as a key, because its hash needs fqn.
void MetadataWriter::begin_index(std::uint32_t key) {
  begin_object(kModule, "MetadataIndex");
  attribute("fqn");
  out_.get(key);
  attribute("index");
}

void MetadataWriter::write_place(FileIndex file, ByteRange range) {
  begin_object("torch.distributed.checkpoint.filesystem", "_StorageInfo");
  attribute("relative_path");
  if (auto& known = files_.at(file)) {
    out_.get(*known);
  } else {
    known = out_.shared_text(metadata_.catalog.files[file]);
  }
  attribute("offset");
  out_.integer(static_cast<std::int64_t>(range.offset));
  attribute("length");
  out_.integer(static_cast<std::int64_t>(range.size));
  end_object();
}

/// Writes checkpoint_id as text. A pickled path object would tie the file to a version of Python.
void MetadataWriter::write_storage_meta() {
  const auto text_or_none = [this](const std::string& value) {
    if (value.empty()) return out_.none();
    out_.text(value);
  };
  begin_object(kModule, "StorageMeta");
  attribute("checkpoint_id");
  text_or_none(metadata_.checkpoint_id);
  attribute("save_id");
  text_or_none(metadata_.save_id);
  attribute("load_id");
  out_.none();
  attribute("modules");
  out_.op(']');
  end_object();
}

bool MetadataWriter::has_original_shapes() const {
  return std::any_of(metadata_.catalog.tensors.begin(), metadata_.catalog.tensors.end(),
                     [](const StoredTensor& tensor) { return !tensor.original_shape.empty(); });
}

void MetadataWriter::write_mcore() {
  out_.op('}');
  out_.mark();
  for (std::size_t t = 0; t < metadata_.catalog.tensors.size(); ++t) {
    const StoredTensor& tensor = metadata_.catalog.tensors[t];
    out_.get(keys_[t]);
    out_.op('}');
    if (tensor.original_shape.empty()) continue;
    attribute("nd_reformulated_orig_global_shape");
    integers(unfolded(tensor.original_shape, {}));
    out_.op('s');
  }
  out_.op('u');
}

}  // namespace

Bytes write_metadata(const Metadata& metadata) { return MetadataWriter(metadata).write(); }

}  // namespace reprise
