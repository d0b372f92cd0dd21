#include "core/format/pickle/pickle_writer.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "core/base/check.hpp"
#include "core/format/pickle/pickle_emit.hpp"
#include "core/format/pickle/pickle_tensor.hpp"
#include "core/geometry/folded_shape.hpp"
#include "reprise/error.hpp"

namespace reprise {
namespace {

using pickle::Emitter;
using pickle::Protocol;

void emit_dims(Emitter& out, std::span<const std::int64_t> dims) {
  if (dims.size() > 3) out.mark();
  for (const std::int64_t value : dims) out.integer(value);
  out.tuple(dims.size());
  if (!dims.empty()) out.memoize();
}

struct TensorForm {
  DType dtype;
  std::vector<std::int64_t> shape;
  bool requires_grad = false;
};

/// Returns what contiguous_strides() does, of any number of dimensions.
std::vector<std::int64_t> strides_of(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t d = shape.size(); d-- > 1;) {
    strides[d - 1] = strides[d] * std::max<std::int64_t>(shape[d], 1);
  }
  return strides;
}

void emit_tensor_function(Emitter& out, DType dtype) {
  const bool typed = !pickle::storage_class_of(dtype).empty();
  out.global("torch._utils", typed ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
}

/// Writes a tuple of the arguments of the function that rebuilds a tensor.
void emit_tensor_arguments(Emitter& out, const TensorForm& form, std::string_view key) {
  const auto& [dtype, shape, requires_grad] = form;
  const std::string_view typed = pickle::storage_class_of(dtype);
  const std::int64_t elements = *checked_volume(shape);
  const auto element = static_cast<std::int64_t>(size_of(dtype));
  out.mark();
  out.mark();
  out.shared_text("storage");
  out.global(typed.empty() ? "torch.storage" : "torch",
             typed.empty() ? std::string_view("UntypedStorage") : typed);
  out.text(key);
  out.memoize();
  out.shared_text("cpu");
  out.integer(typed.empty() ? elements * element : elements);
  out.op('t');
  out.memoize();
  out.op('Q');
  out.integer(0);
  emit_dims(out, shape);
  emit_dims(out, strides_of(shape));
  out.boolean(requires_grad);
  out.global("collections", "OrderedDict");
  out.empty_tuple();
  out.op('R');
  out.memoize();
  if (typed.empty()) out.global("torch", name_of(dtype));
  out.op('t');
  out.memoize();
}

/// Writes exactly what torch.save writes for a contiguous CPU tensor. Stores every object in the
/// memo. A class or text that occurs again in the same value is written as a reference to the memo.
void emit_tensor(Emitter& out, const TensorForm& form, std::string_view key) {
  emit_tensor_function(out, form.dtype);
  emit_tensor_arguments(out, form, key);
  out.op('R');
  out.memoize();
}

TensorForm form_of(const TensorValue& value) {
  return {value.dtype, unfolded(value.shape, {}), value.requires_grad};
}

/// True for the object that the reader makes from a tensor with attributes, or of a class other
/// than torch.Tensor. Its arguments are the class, the tensor and the attributes.
bool is_typed_tensor(const Object& object) {
  return object.type == Name{"torch._tensor", "_rebuild_from_type_v2"} && object.args.size() == 3 &&
         object.args[1].as<TensorValue>() != nullptr;
}

class ValueWriter {
 public:
  explicit ValueWriter(std::vector<ByteSpan>* storages) : storages_(storages) {}

  Bytes write(const Value& value) {
    emit(value);
    return out_.finish();
  }

 private:
  void emit(const Value& value) {
    std::visit([this](const auto& held) { emit(held); }, value.variant());
  }
  void emit(NoneType) { out_.none(); }
  void emit(bool value) { out_.boolean(value); }
  void emit(std::int64_t value) { out_.integer(value); }
  void emit(const BigInt& value) { out_.big_integer(value.digits); }
  void emit(double value) { out_.floating(value); }
  void emit(const std::string& value);
  void emit(const Bytes& value) { out_.bytes(value); }
  void emit(const List& value);
  void emit(const Tuple& value) { emit_tuple(value.items); }
  void emit(const Set& value);
  void emit(const Dict& value);
  void emit(const Name& value) { out_.global(value.module, value.name); }
  void emit(const Object& value);
  void emit(const TensorValue& value);
  void emit_typed_tensor(const Object& value);

  /// Adds the tensor's elements as a storage, and returns the storage's key.
  std::string store(const TensorValue& value);
  void emit_tuple(const List& items);
  void emit_items(const List& items);
  void emit_entries(const Dict& entries);

  Emitter out_{Protocol::kTwo};
  std::vector<ByteSpan>* storages_;
  std::size_t storage_count_ = 0;
};

void ValueWriter::emit(const std::string& value) {
  // Short text, such as the key of a dict, is often repeated; long text rarely is.
  if (value.size() <= 64) {
    out_.shared_text(value);
  } else {
    out_.text(value);
  }
}

void ValueWriter::emit_items(const List& items) {
  if (items.empty()) return;
  out_.mark();
  for (const Value& item : items) emit(item);
  out_.op('e');
}

void ValueWriter::emit_entries(const Dict& entries) {
  if (entries.empty()) return;
  out_.mark();
  for (const auto& [key, value] : entries) {
    emit(key);
    emit(value);
  }
  out_.op('u');
}

void ValueWriter::emit(const List& value) {
  out_.op(']');
  emit_items(value);
}

void ValueWriter::emit(const Dict& value) {
  out_.op('}');
  emit_entries(value);
}

void ValueWriter::emit(const Set& value) {
  out_.global("builtins", value.frozen ? "frozenset" : "set");
  emit(value.items);
  out_.tuple(1);
  out_.op('R');
}

void ValueWriter::emit_tuple(const List& items) {
  if (items.size() > 3) out_.mark();
  for (const Value& item : items) emit(item);
  out_.tuple(items.size());
}

void ValueWriter::emit(const Object& value) {
  CHECK(value.state.size() <= 1, value.type.name);
  if (is_typed_tensor(value)) return emit_typed_tensor(value);
  emit(value.type);
  emit_tuple(value.args);
  out_.op(value.how == Object::How::kCall ? 'R' : '\x81');
  emit_items(value.list_items);
  emit_entries(value.dict_items);
  if (!value.state.empty()) {
    emit(value.state.front());
    out_.op('b');
  }
}

void ValueWriter::emit_typed_tensor(const Object& value) {
  const auto* tensor = value.args[1].as<TensorValue>();
  emit(value.type);
  out_.mark();
  emit_tensor_function(out_, tensor->dtype);
  emit(value.args[0]);
  emit_tensor_arguments(out_, form_of(*tensor), store(*tensor));
  emit(value.args[2]);
  out_.tuple(4);
  out_.op('R');
}

std::string ValueWriter::store(const TensorValue& value) {
  CHECK(storages_ != nullptr, "a value with tensors needs storages");
  CHECK(value.data.size() == static_cast<std::size_t>(volume(value.shape)) * size_of(value.dtype),
        value.data.size(), value.shape, value.dtype);
  storages_->emplace_back(value.data);
  return std::to_string(storage_count_++);
}

void ValueWriter::emit(const TensorValue& value) {
  emit_tensor(out_, form_of(value), store(value));
}

}  // namespace

Bytes encode_value(const Value& value, std::vector<ByteSpan>* storages) {
  return ValueWriter(storages).write(value);
}

Bytes encode_tensor_pickle(DType dtype, const Dims& shape, const FoldedExtents& folded) {
  Emitter out(Protocol::kTwo);
  emit_tensor(out, {dtype, unfolded(shape, folded)}, "0");
  return out.finish();
}

Bytes encode_state_dict(std::span<const NamedTensor> tensors) {
  Emitter out(Protocol::kTwo);
  out.op('}');
  out.memoize();
  if (!tensors.empty()) out.mark();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    out.text(tensors[i].key);
    out.memoize();
    emit_tensor(out, {tensors[i].dtype, unfolded(tensors[i].shape, {})}, std::to_string(i));
  }
  if (!tensors.empty()) out.op('u');
  return out.finish();
}

}  // namespace reprise
