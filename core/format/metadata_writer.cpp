// Writes `.metadata` so that torch 2.4 to 2.15 and megatron-core can load it. Uses pickle protocol
// 4 and plain classes. Stores the names of classes and attributes in the memo.

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <type_traits>
#include <utility>

#include "core/base/check.hpp"
#include "core/format/metadata.hpp"
#include "core/format/pickle/pickle_emit.hpp"
#include "core/geometry/folded_shape.hpp"

namespace reprise {
namespace {

using pickle::Emitter;
using pickle::Protocol;

constexpr std::string_view kModule = "torch.distributed.checkpoint.metadata";

class MetadataWriter {
 public:
  explicit MetadataWriter(const Metadata& metadata) : metadata_(metadata) {}

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
    out_.empty_tuple();
    out_.op('\x81');
    out_.op('}');
    out_.mark();
  }
  void attribute(std::string_view name) { out_.shared_text(name); }
  void end_object() {
    out_.op('u');
    out_.op('b');
  }
  void integers(std::span<const std::int64_t> values) {
    if (values.size() > 3) out_.mark();
    for (const std::int64_t value : values) out_.integer(value);
    out_.tuple(values.size());
  }
  void size(std::span<const std::int64_t> values);
  void size(const Dims& dims) { size(std::span(dims.begin(), dims.size())); }
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
  void write_path(std::string_view key, const std::vector<PathStep>* path);
  void write_storages();
  void write_storage(const StoredTensor& tensor, std::size_t position);
  void write_storage(const StoredObject& object);
  void begin_index(std::string_view key);
  void write_place(FileIndex file, ByteRange range);
  void write_storage_meta();
  bool has_original_shapes() const;
  void write_mcore();
  /// Writes the text of a key at its first use, and a reference to the memo at later uses.
  void key_text(std::string_view key) { out_.shared_text(key); }

  const Metadata& metadata_;
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

/// Visits tensors and objects in the order of their recorded positions. At equal positions, tensors
/// come first.
template <class Visit>
void each_in_order(const Catalog& catalog, const Visit& visit) {
  std::vector<std::pair<std::uint32_t, std::size_t>> order;
  const std::size_t tensors = catalog.tensors.size();
  for (const auto& tensor : catalog.tensors) order.emplace_back(tensor.place, order.size());
  for (const auto& object : catalog.objects) order.emplace_back(object.place, order.size());
  std::sort(order.begin(), order.end());
  for (const auto& [place, index] : order) {
    if (index < tensors) {
      visit(catalog.tensors[index]);
    } else {
      visit(catalog.objects[index - tensors]);
    }
  }
}

void MetadataWriter::write_keys() {
  out_.op('}');
  out_.mark();
  each_in_order(metadata_.catalog, [this](const auto& item) {
    key_text(item.key);
    if constexpr (std::is_same_v<std::decay_t<decltype(item)>, StoredTensor>) {
      write_tensor(item);
    } else {
      write_object();
    }
  });
  out_.op('u');
}

/// Writes an object without state: the opcode NEWOBJ without BUILD.
void MetadataWriter::write_object() {
  out_.global(kModule, "BytesStorageMetadata");
  out_.empty_tuple();
  out_.op('\x81');
}

void MetadataWriter::write_tensor(const StoredTensor& tensor) {
  begin_object(kModule, "TensorStorageMetadata");
  attribute("properties");
  write_properties(tensor);
  attribute("size");
  size(unfolded(tensor.shape, tensor.folded));
  attribute("chunks");
  out_.op(']');
  out_.mark();
  for (const StoredChunk& chunk : tensor.chunks) {
    begin_object(kModule, "ChunkStorageMetadata");
    attribute("offsets");
    offset_of(tensor, chunk);
    attribute("sizes");
    if (tensor.folded.empty()) {
      size(chunk.box.extent);
    } else {
      size(unfolded(chunk.box.extent, tensor.folded));
    }
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
  out_.empty_tuple();
  out_.op('\x81');
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
  const Catalog& catalog = metadata_.catalog;
  std::set<std::string_view> missing;
  each_in_order(catalog, [&](const auto& item) { missing.insert(item.key); });
  out_.op('}');
  out_.mark();
  for (const PlannerEntry& entry : metadata_.planner_data) {
    if (missing.erase(entry.key) != 0) write_path(entry.key, &entry.path);
  }
  each_in_order(catalog, [&](const auto& item) {
    if (missing.contains(item.key)) write_path(item.key, nullptr);
  });
  out_.op('u');
}

void MetadataWriter::write_path(std::string_view key, const std::vector<PathStep>* path) {
  key_text(key);
  if (path == nullptr) {
    key_text(key);
    return out_.tuple(1);
  }
  if (path->size() > 3) out_.mark();
  for (const PathStep& step : *path) {
    if (const auto* position = std::get_if<std::int64_t>(&step)) {
      out_.integer(*position);
    } else {
      out_.shared_text(std::get<std::string>(step));
    }
  }
  out_.tuple(path->size());
}

void MetadataWriter::write_storages() {
  out_.op('}');
  out_.mark();
  for (const StoredTensor& tensor : metadata_.catalog.tensors) {
    std::set<Dims> written;  // chunks at equal offsets share an entry
    for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
      const StoredChunk& chunk = tensor.chunks[i];
      if (chunk.file == kNoFile || !written.insert(chunk.box.offset).second) continue;
      write_storage(tensor, i);
    }
  }
  for (const StoredObject& object : metadata_.catalog.objects) {
    if (object.file != kNoFile) write_storage(object);
  }
  out_.op('u');
}

void MetadataWriter::write_storage(const StoredTensor& tensor, std::size_t position) {
  begin_index(tensor.key);
  out_.integer(static_cast<std::int64_t>(position));
  attribute("offset");
  offset_of(tensor, tensor.chunks[position]);
  end_object();
  write_place(tensor.chunks[position].file, tensor.chunks[position].range);
}

/// Objects lack the attribute `offset`; it is not None.
void MetadataWriter::write_storage(const StoredObject& object) {
  begin_index(object.key);
  out_.none();
  end_object();
  write_place(object.file, object.range);
}

/// The object must be complete as a key, because its hash needs fqn.
void MetadataWriter::begin_index(std::string_view key) {
  begin_object(kModule, "MetadataIndex");
  attribute("fqn");
  key_text(key);
  attribute("index");
}

void MetadataWriter::write_place(FileIndex file, ByteRange range) {
  begin_object("torch.distributed.checkpoint.filesystem", "_StorageInfo");
  attribute("relative_path");
  out_.shared_text(metadata_.catalog.files.at(file));
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
  for (const StoredTensor& tensor : metadata_.catalog.tensors) {
    key_text(tensor.key);
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
