#include "core/format/pickle/pickle_names.hpp"

#include <algorithm>
#include <array>
#include <tuple>

namespace reprise::pickle {
namespace {

constexpr auto kM = static_cast<std::uint8_t>(Grammar::kMetadata);
constexpr auto kT = static_cast<std::uint8_t>(Grammar::kTensorItem);
constexpr auto kB = static_cast<std::uint8_t>(Grammar::kBytesItem);
constexpr std::uint8_t kTB = kT | kB;
constexpr std::uint8_t kAll = kM | kT | kB;

constexpr std::string_view kDcp = "torch.distributed.checkpoint.metadata";
constexpr std::string_view kPlanner = "torch.distributed.checkpoint.planner";
constexpr std::string_view kFiles = "torch.distributed.checkpoint.filesystem";
constexpr std::string_view kOldDcp = "torch.distributed._shard.checkpoint.metadata";
constexpr std::string_view kOldFiles = "torch.distributed._shard.checkpoint.filesystem";
constexpr std::string_view kSharded = "torch.distributed._shard.sharded_tensor.metadata";
constexpr std::string_view kMegatronDcp = "megatron.core.dist_checkpointing.strategies.torch";
constexpr std::string_view kMegatronEnums = "megatron.core.enums";
constexpr std::string_view kLayerEnums = "megatron.core.transformer.enums";
constexpr std::string_view kRerun = "megatron.core.rerun_state_machine";
constexpr std::string_view kOptimizer = "megatron.core.optimizer.optimizer_config";

constexpr NameRule constant(std::uint8_t grammars, std::string_view module, std::string_view name) {
  return {module, name, grammars};
}
constexpr NameRule function(std::uint8_t grammars, std::string_view module, std::string_view name,
                            Args args = Args::kAny) {
  return {module, name, grammars, args};
}
/// Returns a rule that allows NEWOBJ without arguments, and a dict of attributes as state.
constexpr NameRule record(std::uint8_t grammars, std::string_view module, std::string_view name) {
  return {module, name, grammars, Args::kNever, Args::kEmpty, BuildState::kDict};
}
constexpr NameRule enumeration(std::uint8_t grammars, std::string_view module,
                               std::string_view name) {
  return {module, name, grammars, Args::kScalar};
}
constexpr NameRule path(std::string_view module, std::string_view name) {
  return {module, name, kM | kB, Args::kTexts};
}
constexpr NameRule numpy_type(std::string_view module, std::string_view name) {
  return {module, name, kB, Args::kAny, Args::kAny, BuildState::kAny};
}

constexpr auto kNames = [] {
  std::array rules{
      // .metadata
      record(kM, kDcp, "Metadata"),
      record(kM, kDcp, "TensorStorageMetadata"),
      record(kM, kDcp, "ChunkStorageMetadata"),
      record(kM, kDcp, "BytesStorageMetadata"),
      record(kM, kDcp, "MetadataIndex"),
      record(kM, kDcp, "StorageMeta"),
      NameRule{kDcp, "TensorProperties", kM, Args::kNever, Args::kEmpty, BuildState::kTuple},
      enumeration(kM, kDcp, "_MEM_FORMAT_ENCODING"),
      record(kM, kFiles, "_StorageInfo"),
      record(kM, kFiles, "_StoragePrefix"),
      record(kM, kPlanner, "SavePlan"),
      record(kM, kPlanner, "WriteItem"),
      record(kM, kPlanner, "TensorWriteData"),
      record(kM, kPlanner, "BytesIOWriteData"),
      enumeration(kM, kPlanner, "WriteItemType"),
      enumeration(kM, kPlanner, "LoadItemType"),
      record(kM, kOldDcp, "Metadata"),
      record(kM, kOldDcp, "TensorStorageMetadata"),
      record(kM, kOldDcp, "ChunkStorageMetadata"),
      record(kM, kOldDcp, "BytesStorageMetadata"),
      record(kM, kOldDcp, "MetadataIndex"),
      record(kM, kOldFiles, "_StorageInfo"),
      NameRule{kSharded, "TensorProperties", kM, Args::kNever, Args::kEmpty, BuildState::kTuple},
      enumeration(kM, kSharded, "MEM_FORMAT_ENCODING"),
      record(kM, "torch.distributed._shard.metadata", "ShardMetadata"),
      record(kM, kMegatronDcp, "MCoreMetadata"),
      record(kM, kMegatronDcp, "MCoreSavePlan"),

      // Tensors
      function(kTB, "torch._utils", "_rebuild_tensor"),
      function(kTB, "torch._utils", "_rebuild_tensor_v2"),
      function(kTB, "torch._utils", "_rebuild_tensor_v3"),
      function(kTB, "torch._utils", "_rebuild_parameter"),
      function(kTB, "torch._utils", "_rebuild_parameter_with_state"),
      function(kTB, "torch._utils", "_rebuild_qtensor"),
      function(kTB, "torch._tensor", "_rebuild_from_type_v2"),
      constant(kTB, "torch", "Tensor"),
      constant(kTB, "torch.nn.parameter", "Parameter"),
      constant(kTB, "torch", "FloatStorage"),
      constant(kTB, "torch", "DoubleStorage"),
      constant(kTB, "torch", "HalfStorage"),
      constant(kTB, "torch", "BFloat16Storage"),
      constant(kTB, "torch", "LongStorage"),
      constant(kTB, "torch", "IntStorage"),
      constant(kTB, "torch", "ShortStorage"),
      constant(kTB, "torch", "CharStorage"),
      constant(kTB, "torch", "ByteStorage"),
      constant(kTB, "torch", "BoolStorage"),
      constant(kTB, "torch", "ComplexFloatStorage"),
      constant(kTB, "torch", "ComplexDoubleStorage"),
      constant(kTB, "torch", "QInt8Storage"),
      constant(kTB, "torch", "QUInt8Storage"),
      constant(kTB, "torch", "QInt32Storage"),
      constant(kTB, "torch.storage", "UntypedStorage"),
      constant(kTB, "torch.storage", "TypedStorage"),

      // Element types and other constants of torch
      constant(kAll, "torch", "float64"),
      constant(kAll, "torch", "float32"),
      constant(kAll, "torch", "float16"),
      constant(kAll, "torch", "bfloat16"),
      constant(kAll, "torch", "float8_e4m3fn"),
      constant(kAll, "torch", "float8_e5m2"),
      constant(kAll, "torch", "float8_e4m3fnuz"),
      constant(kAll, "torch", "float8_e5m2fnuz"),
      constant(kAll, "torch", "float8_e8m0fnu"),
      constant(kAll, "torch", "float4_e2m1fn_x2"),
      constant(kAll, "torch", "int64"),
      constant(kAll, "torch", "int32"),
      constant(kAll, "torch", "int16"),
      constant(kAll, "torch", "int8"),
      constant(kAll, "torch", "uint64"),
      constant(kAll, "torch", "uint32"),
      constant(kAll, "torch", "uint16"),
      constant(kAll, "torch", "uint8"),
      constant(kAll, "torch", "bool"),
      constant(kAll, "torch", "complex128"),
      constant(kAll, "torch", "complex64"),
      constant(kAll, "torch", "complex32"),
      constant(kAll, "torch", "bits16"),
      constant(kAll, "torch", "bits8"),
      constant(kAll, "torch", "bits4x2"),
      constant(kAll, "torch", "bits2x4"),
      constant(kAll, "torch", "bits1x8"),
      constant(kAll, "torch", "qint8"),
      constant(kAll, "torch", "quint8"),
      constant(kAll, "torch", "qint32"),
      constant(kAll, "torch", "quint4x2"),
      constant(kAll, "torch", "quint2x4"),
      constant(kB, "torch", "dtype"),
      constant(kB, "torch", "layout"),
      constant(kB, "torch", "memory_format"),
      function(kAll, "torch", "Size", Args::kExtents),
      function(kAll, "torch.serialization", "_get_layout", Args::kText),
      function(kB, "torch", "device"),
      NameRule{"torch._C", "Generator", kB, Args::kAny, Args::kAny, BuildState::kAny},

      // Python
      NameRule{"collections", "OrderedDict", kAll, Args::kEmpty, Args::kEmpty, BuildState::kDict,
               Items::kDict},
      NameRule{"collections", "defaultdict", kB, Args::kAny, Args::kAny, BuildState::kDict,
               Items::kDict},
      NameRule{"collections", "Counter", kB, Args::kAny, Args::kAny, BuildState::kDict,
               Items::kDict},
      NameRule{"collections", "deque", kB, Args::kAny, Args::kAny, BuildState::kDict, Items::kList},
      function(kM | kB, "builtins", "getattr", Args::kEnumMember),
      function(kB, "builtins", "set"),
      function(kB, "builtins", "frozenset"),
      function(kB, "builtins", "complex"),
      function(kB, "builtins", "slice"),
      function(kB, "builtins", "range"),
      function(kB, "builtins", "bytearray"),
      function(kB, "builtins", "bytes"),
      function(kB, "builtins", "list"),
      function(kB, "builtins", "dict"),
      function(kB, "builtins", "tuple"),
      function(kB, "builtins", "int"),
      function(kB, "builtins", "float"),
      function(kB, "builtins", "bool"),
      function(kB, "builtins", "str"),
      constant(kM | kB, "builtins", "object"),
      constant(kB, "builtins", "Ellipsis"),
      constant(kB, "builtins", "NotImplemented"),
      NameRule{"copyreg", "_reconstructor", kM | kB, Args::kAny, Args::kNever, BuildState::kDict},
      function(kTB, "_codecs", "encode"),
      NameRule{"_io", "BytesIO", kB, Args::kEmpty, Args::kEmpty, BuildState::kTuple},
      record(kB, "argparse", "Namespace"),
      NameRule{"types", "SimpleNamespace", kB, Args::kEmpty, Args::kEmpty, BuildState::kDict},
      enumeration(kB, "signal", "Signals"),
      function(kB, "datetime", "datetime"),
      function(kB, "datetime", "date"),
      function(kB, "datetime", "time"),
      function(kB, "datetime", "timedelta"),
      function(kB, "datetime", "timezone"),
      NameRule{"uuid", "UUID", kB, Args::kNever, Args::kEmpty, BuildState::kDict},
      path("pathlib", "Path"),
      path("pathlib", "PosixPath"),
      path("pathlib", "WindowsPath"),
      path("pathlib", "PurePath"),
      path("pathlib", "PurePosixPath"),
      path("pathlib", "PureWindowsPath"),
      path("pathlib._local", "Path"),
      path("pathlib._local", "PosixPath"),
      path("pathlib._local", "WindowsPath"),
      path("pathlib._local", "PurePath"),
      path("pathlib._local", "PurePosixPath"),
      path("pathlib._local", "PureWindowsPath"),

      // NumPy
      numpy_type("numpy", "dtype"),
      numpy_type("numpy", "ndarray"),
      numpy_type("numpy.core.multiarray", "_reconstruct"),
      numpy_type("numpy.core.multiarray", "scalar"),
      numpy_type("numpy._core.multiarray", "_reconstruct"),
      numpy_type("numpy._core.multiarray", "scalar"),
      numpy_type("numpy.core.numeric", "_frombuffer"),
      numpy_type("numpy._core.numeric", "_frombuffer"),
      numpy_type("numpy.dtypes", "BoolDType"),
      numpy_type("numpy.dtypes", "Int8DType"),
      numpy_type("numpy.dtypes", "Int16DType"),
      numpy_type("numpy.dtypes", "Int32DType"),
      numpy_type("numpy.dtypes", "Int64DType"),
      numpy_type("numpy.dtypes", "UInt8DType"),
      numpy_type("numpy.dtypes", "UInt16DType"),
      numpy_type("numpy.dtypes", "UInt32DType"),
      numpy_type("numpy.dtypes", "UInt64DType"),
      numpy_type("numpy.dtypes", "Float16DType"),
      numpy_type("numpy.dtypes", "Float32DType"),
      numpy_type("numpy.dtypes", "Float64DType"),
      numpy_type("numpy.random._pickle", "__generator_ctor"),
      numpy_type("numpy.random._pickle", "__bit_generator_ctor"),
      numpy_type("numpy.random._pickle", "__randomstate_ctor"),
      numpy_type("numpy.random._pcg64", "PCG64"),
      numpy_type("numpy.random._mt19937", "MT19937"),
      numpy_type("numpy.random._philox", "Philox"),
      numpy_type("numpy.random.bit_generator", "__pyx_unpickle_SeedSequence"),
      numpy_type("numpy.random.bit_generator", "SeedSequence"),

      // Megatron
      enumeration(kB, kMegatronEnums, "ModelType"),
      enumeration(kB, kMegatronEnums, "Fp8Recipe"),
      enumeration(kB, kMegatronEnums, "Fp4Recipe"),
      enumeration(kB, kLayerEnums, "ModelType"),
      enumeration(kB, kLayerEnums, "LayerType"),
      enumeration(kB, kLayerEnums, "AttnType"),
      enumeration(kB, kLayerEnums, "AttnMaskType"),
      enumeration(kB, kLayerEnums, "AttnBackend"),
      enumeration(kB, kLayerEnums, "CudaGraphScope"),
      enumeration(kB, kLayerEnums, "CudaGraphModule"),
      enumeration(kB, kLayerEnums, "InferenceCudaGraphScope"),
      enumeration(kB, "megatron.model.enums", "ModelType"),
      enumeration(kB, "megatron.model.enums", "LayerType"),
      enumeration(kB, "megatron.model.enums", "AttnType"),
      enumeration(kB, "megatron.model.enums", "AttnMaskType"),
      enumeration(kB, "megatron.legacy.model.enums", "ModelType"),
      enumeration(kB, "megatron.legacy.model.enums", "LayerType"),
      enumeration(kB, "megatron.legacy.model.enums", "AttnType"),
      enumeration(kB, "megatron.legacy.model.enums", "AttnMaskType"),
      enumeration(kB, kRerun, "RerunDiagnostic"),
      enumeration(kB, kRerun, "RerunMode"),
      enumeration(kB, kRerun, "RerunState"),
      enumeration(kB, kRerun, "RerunValidationStatus"),
      NameRule{kRerun, "Caller", kB, Args::kNever, Args::kAny},
      NameRule{kRerun, "Call", kB, Args::kNever, Args::kAny},
      record(kB, kRerun, "QuickStats"),
      record(kB, kOptimizer, "OptimizerConfig"),
      record(kB, kOptimizer, "AdamOptimizerConfig"),
      record(kB, kOptimizer, "SGDOptimizerConfig"),
      record(kB, kOptimizer, "ParamKey"),
      record(kB, "megatron.core.optimizer", "OptimizerConfig"),
  };
  std::sort(rules.begin(), rules.end(), [](const NameRule& a, const NameRule& b) {
    return std::tie(a.module, a.name) < std::tie(b.module, b.name);
  });
  return rules;
}();

static_assert(std::adjacent_find(kNames.begin(), kNames.end(),
                                 [](const NameRule& a, const NameRule& b) {
                                   return a.module == b.module && a.name == b.name;
                                 }) == kNames.end());

}  // namespace

bool NameRule::changeable() const {
  constexpr std::array<std::string_view, 6> kClasses{
      "Namespace", "SimpleNamespace", "bytearray", "dict", "list", "set"};
  return items != Items::kNone ||
         std::find(kClasses.begin(), kClasses.end(), name) != kClasses.end();
}

std::span<const NameRule> all_names() { return kNames; }

const NameRule* rule_of(std::string_view module, std::string_view name) {
  const auto wanted = std::tie(module, name);
  const auto found = std::lower_bound(
      kNames.begin(), kNames.end(), wanted,
      [](const NameRule& rule, const auto& key) { return std::tie(rule.module, rule.name) < key; });
  return found != kNames.end() && std::tie(found->module, found->name) == wanted ? &*found
                                                                                 : nullptr;
}

}  // namespace reprise::pickle
