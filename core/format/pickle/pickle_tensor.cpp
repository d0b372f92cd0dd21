#include "core/format/pickle/pickle_tensor.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "core/geometry/folded_shape.hpp"
#include "core/geometry/piece.hpp"
#include "reprise/error.hpp"

namespace reprise {
namespace pickle {
namespace {

/// Length of the longest storage key that is accepted; torch uses numbers as keys.
constexpr std::size_t kStorageKeyMax = 256;
/// Upper limit on the number of flags in a tensor's dict of flags; torch has two flags. Without a
/// limit, a hostile file could cause unbounded work: many tensors could share one huge dict.
constexpr std::size_t kFlagsMax = 64;

struct StorageClass {
  std::string_view name;
  DType dtype;
};
constexpr std::array<StorageClass, 12> kStorageClasses{{
    {"FloatStorage", DType::kFloat32},
    {"DoubleStorage", DType::kFloat64},
    {"HalfStorage", DType::kFloat16},
    {"BFloat16Storage", DType::kBFloat16},
    {"LongStorage", DType::kInt64},
    {"IntStorage", DType::kInt32},
    {"ShortStorage", DType::kInt16},
    {"CharStorage", DType::kInt8},
    {"ByteStorage", DType::kUInt8},
    {"BoolStorage", DType::kBool},
    {"ComplexFloatStorage", DType::kComplex64},
    {"ComplexDoubleStorage", DType::kComplex128},
}};

/// Returns the storage class of that name; null if there is none.
const StorageClass* storage_class_named(std::string_view name) {
  const auto* found = std::ranges::find(kStorageClasses, name, &StorageClass::name);
  return found == kStorageClasses.end() ? nullptr : found;
}

class TensorReader {
 public:
  TensorReader(const Graph& graph, const PickleSource& where) : graph_(graph), where_(where) {}

  TensorDescription read(NodeId node) {
    const std::string_view function = tensor_call(graph_, node);
    if (function.empty()) fail(Code::kTornFile, "the pickle holds no tensor");
    return read_call(function, graph_.tuple(graph_.instance(node).args));
  }

 private:
  TensorDescription read_call(std::string_view function, std::span<const NodeId> args);
  TensorDescription read_rebuilt(std::span<const NodeId> args, int version);
  /// Reads a storage. `dtype` is kNoNode if the storage's class implies the dtype.
  void read_storage(NodeId node, NodeId dtype, TensorDescription& tensor);
  DType dtype_of(NodeId node);
  std::span<const NodeId> numbers(NodeId node, const char* what);
  void read_view(NodeId size_node, NodeId stride_node, TensorDescription& tensor);
  std::int64_t count(NodeId node, const char* what);
  void read_flags(NodeId metadata, TensorDescription& tensor);
  void check_fits(const TensorDescription& tensor);

  [[noreturn]] void fail(Code code, std::string message) const {
    throw error_at(where_, 0, code, std::move(message));
  }

  const Graph& graph_;
  const PickleSource& where_;
};

TensorDescription TensorReader::read_call(std::string_view function, std::span<const NodeId> args) {
  if (function == "_rebuild_tensor_v2") return read_rebuilt(args, 2);
  if (function == "_rebuild_tensor_v3") return read_rebuilt(args, 3);
  if (function == "_rebuild_tensor") return read_rebuilt(args, 1);
  if (function.starts_with("_rebuild_parameter") && args.size() >= 3 &&
      !tensor_call(graph_, args[0]).empty() &&
      !tensor_call(graph_, args[0]).starts_with("_rebuild_para")) {
    return read(args[0]);
  }
  if (function == "_rebuild_from_type_v2" && args.size() == 4 &&
      graph_.kind(args[0]) == Kind::kName && graph_.kind(args[2]) == Kind::kTuple &&
      graph_.global(args[0]).name.starts_with("_rebuild_tensor")) {
    return read_call(graph_.global(args[0]).name, graph_.tuple(args[2]));
  }
  fail(Code::kUnsupported,
       "a tensor rebuilt by " + std::string(function) + " with these arguments is not supported");
}

TensorDescription TensorReader::read_rebuilt(std::span<const NodeId> args, int version) {
  const std::size_t least = version == 1 ? 4 : version == 2 ? 6 : 7;
  if (args.size() < least || args.size() > least + 1) {
    fail(Code::kTornFile, "a tensor with " + std::to_string(args.size()) + " arguments: garbled");
  }
  TensorDescription tensor;
  read_storage(args[0], version == 3 ? args[6] : kNoNode, tensor);
  tensor.storage_offset = count(args[1], "a tensor's storage offset");
  read_view(args[2], args[3], tensor);
  if (version > 1) {
    if (graph_.kind(args[4]) != Kind::kBool) {
      fail(Code::kTornFile, "a tensor whose requires_grad is not a bool: garbled");
    }
    tensor.requires_grad = graph_.boolean(args[4]);
    if (args.size() > least) read_flags(args[least], tensor);
  }
  check_fits(tensor);
  return tensor;
}

void TensorReader::read_storage(NodeId node, NodeId dtype, TensorDescription& tensor) {
  if (graph_.kind(node) != Kind::kStorage) fail(Code::kTornFile, "a tensor without a storage");
  const auto id = graph_.tuple(graph_[node].low);
  const std::string_view type = graph_.global(id[1]).name;
  const std::string_view key = graph_.text(id[2]);
  if (key.size() > kStorageKeyMax) fail(Code::kLimit, "a storage with an overly long key");
  const StorageClass* known = storage_class_named(type);
  if (known == nullptr && (type != "UntypedStorage" || dtype == kNoNode)) {
    fail(Code::kUnsupported,
         "a tensor in a storage of class " + std::string(type) + ", which is not supported");
  }
  tensor.dtype = dtype == kNoNode ? known->dtype : dtype_of(dtype);
  tensor.storage_key = key;
  const std::size_t unit = known == nullptr ? 1 : size_of(known->dtype);
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(count(id[4], "a storage's size"), unit, &bytes)) {
    fail(Code::kLimit, "a storage of more than 2^63 bytes: garbled");
  }
  const auto element = static_cast<std::int64_t>(size_of(tensor.dtype));
  if (bytes % element != 0) {
    fail(Code::kExtentMismatch, "a storage of " + std::to_string(bytes) +
                                    " bytes for elements of " + std::to_string(element) + " bytes");
  }
  tensor.storage_elements = bytes / element;
}

DType TensorReader::dtype_of(NodeId node) {
  if (graph_.kind(node) != Kind::kName) fail(Code::kTornFile, "a tensor without a dtype: garbled");
  const auto dtype = dtype_named(graph_.global(node).name);
  if (!dtype || graph_.global(node).module != "torch") {
    fail(Code::kUnsupported,
         "elements of type " + std::string(graph_.global(node).name) + ", which is not supported");
  }
  return *dtype;
}

std::span<const NodeId> TensorReader::numbers(NodeId node, const char* what) {
  if (graph_.kind(node) == Kind::kInstance) {
    const Instance& size = graph_.instance(node);
    const GlobalName& type = graph_.global(size.type);
    const auto args = graph_.tuple(size.args);
    if (type.module == "torch" && type.name == "Size" && args.size() == 1) node = args[0];
  }
  if (graph_.kind(node) != Kind::kTuple) {
    fail(Code::kTornFile, std::string(what) + " is not a tuple: garbled");
  }
  return graph_.tuple(node);
}

/// Sets shape and strides. If there are more than kMaxNdim dimensions, folds the last of them.
void TensorReader::read_view(NodeId size_node, NodeId stride_node, TensorDescription& tensor) {
  constexpr auto kSize = "a tensor's size";
  constexpr auto kStrides = "a tensor's strides";
  const auto sizes = numbers(size_node, kSize);
  const auto strides = numbers(stride_node, kStrides);
  if (sizes.size() != strides.size()) {
    fail(Code::kTornFile, "a tensor of " + std::to_string(sizes.size()) + " dimensions with " +
                              std::to_string(strides.size()) + " strides: garbled");
  }
  if (sizes.size() > kTorchNdimMax) {
    fail(Code::kUnsupported, "a tensor of " + std::to_string(sizes.size()) +
                                 " dimensions; at most " + std::to_string(kTorchNdimMax) +
                                 " are supported");
  }
  const std::size_t kept = sizes.size() > kMaxNdim ? kMaxNdim - 1 : sizes.size();
  for (std::size_t d = 0; d < kept; ++d) {
    tensor.shape.push_back(count(sizes[d], kSize));
    tensor.strides.push_back(count(strides[d], kStrides));
  }
  if (kept == sizes.size()) return;
  std::vector<std::int64_t> last;  // strides of the folded dimensions
  for (std::size_t d = kept; d < sizes.size(); ++d) {
    tensor.folded.push_back(count(sizes[d], kSize));
    last.push_back(count(strides[d], kStrides));
  }
  const auto stride = folded_stride(tensor.folded, last);
  const auto product = checked_volume(tensor.folded);
  if (!product || (*product != 0 && !stride)) {
    fail(Code::kUnsupported, "a tensor of " + std::to_string(sizes.size()) +
                                 " dimensions, the last of which don't lie together in memory, is "
                                 "not supported: make it contiguous before saving");
  }
  tensor.shape.push_back(*product);
  tensor.strides.push_back(stride.value_or(1));
}

std::int64_t TensorReader::count(NodeId node, const char* what) {
  if (graph_.kind(node) != Kind::kInteger || graph_.integer(node) < 0) {
    fail(Code::kTornFile, std::string(what) + " is not a non-negative integer: garbled");
  }
  return graph_.integer(node);
}

void TensorReader::read_flags(NodeId metadata, TensorDescription& tensor) {
  if (graph_.kind(metadata) == Kind::kNone) return;
  if (graph_.kind(metadata) != Kind::kDict)
    fail(Code::kTornFile, "tensor flags that are not a dict");
  std::size_t seen = 0;
  graph_.each_pair(graph_.chain(metadata), [&](NodeId key, NodeId value) {
    if (++seen > kFlagsMax)
      fail(Code::kUnsupported, "a tensor with too many flags is not supported");
    const bool set = graph_.kind(value) != Kind::kBool || graph_.boolean(value);
    const std::string name(graph_.kind(key) == Kind::kText ? graph_.text(key) : "?");
    if (name == "conj")
      tensor.flips.conjugate = set;  // if a key is repeated, the last value applies
    if (name == "neg") tensor.flips.negate = set;
    if (!set) return;
    if ((name != "conj" && name != "neg") || !can_flip(tensor.dtype, tensor.flips)) {
      fail(Code::kUnsupported, "a tensor with the flag '" + name.substr(0, 64) +
                                   "' set is not supported: resolve it before saving");
    }
  });
}

void TensorReader::check_fits(const TensorDescription& tensor) {
  std::int64_t volume = 1;
  std::int64_t last = tensor.storage_offset;
  bool overflow = false;
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    if (tensor.shape[d] == 0) return;  // there are no elements, so there is no range to check
  }
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    std::int64_t reach = 0;
    overflow |= __builtin_mul_overflow(volume, tensor.shape[d], &volume);
    overflow |= __builtin_mul_overflow(tensor.shape[d] - 1, tensor.strides[d], &reach);
    overflow |= __builtin_add_overflow(last, reach, &last);
  }
  if (overflow || last >= tensor.storage_elements) {
    fail(Code::kExtentMismatch, "a tensor of size " + to_string(tensor.shape) + ", strides " +
                                    to_string(tensor.strides) + " at element " +
                                    std::to_string(tensor.storage_offset) +
                                    " extends beyond its storage of " +
                                    std::to_string(tensor.storage_elements) + " elements");
  }
}

}  // namespace

std::string_view storage_class_of(DType dtype) {
  const auto* found = std::ranges::find(kStorageClasses, dtype, &StorageClass::dtype);
  return found == kStorageClasses.end() ? std::string_view{} : found->name;
}

std::string_view tensor_call(const Graph& graph, NodeId node) {
  if (graph.kind(node) != Kind::kInstance || !graph.instance(node).called) return {};
  const GlobalName& name = graph.global(graph.instance(node).type);
  const bool listed =
      name.rule != nullptr && (name.module == "torch._utils" || name.module == "torch._tensor");
  return listed ? name.name : std::string_view{};
}

TensorDescription describe_tensor(const Graph& graph, NodeId node, const PickleSource& where) {
  return TensorReader(graph, where).read(node);
}

}  // namespace pickle

TensorDescription decode_tensor(ByteSpan input, const PickleSource& where) {
  const pickle::Reading reading = pickle::read_graph(input, pickle::Grammar::kTensorItem, where);
  return pickle::describe_tensor(reading.graph, reading.root, where);
}

Bytes gather(const TensorDescription& tensor, ByteSpan storage, const PickleSource& where) {
  if (storage.size() < static_cast<std::uint64_t>(tensor.storage_bytes())) {
    throw pickle::error_at(where, 0, Code::kExtentMismatch,
                           "storage " + tensor.storage_key + " has " +
                               std::to_string(storage.size()) + " bytes where " +
                               std::to_string(tensor.storage_bytes()) + " are claimed");
  }
  for (const std::int64_t extent : tensor.shape) {
    if (extent == 0) return {};
  }
  const std::size_t element = size_of(tensor.dtype);
  Bytes data(static_cast<std::size_t>(volume(tensor.shape)) * element);
  const auto first = static_cast<std::size_t>(tensor.storage_offset) * element;
  copy_strided({storage.data() + first, tensor.strides},
               {data.data(), contiguous_strides(tensor.shape)}, tensor.shape, element);
  if (tensor.flips.any()) flip_signs(tensor.dtype, data, tensor.flips);
  return data;
}

}  // namespace reprise
