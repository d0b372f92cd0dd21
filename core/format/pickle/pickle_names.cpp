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

/// A class that is only named.
constexpr NameRule constant(std::uint8_t grammars, std::string_view module, std::string_view name) {
  return {module, name, grammars};
}
/// An object that is no class and can't be called.
constexpr NameRule value(std::uint8_t grammars, std::string_view module, std::string_view name) {
  return {.module = module, .name = name, .grammars = grammars, .is = Is::kValue};
}
constexpr NameRule function(std::uint8_t grammars, std::string_view module, std::string_view name,
                            Args args) {
  return {.module = module, .name = name, .grammars = grammars, .call = args, .is = Is::kFunction};
}
/// A class that is called.
constexpr NameRule type(std::uint8_t grammars, std::string_view module, std::string_view name,
                        Args args, Hash hash = Hash::kYes) {
  return {.module = module, .name = name, .grammars = grammars, .call = args, .hash = hash};
}
/// Returns a rule that allows NEWOBJ without arguments, and a dict of attributes as state.
constexpr NameRule record(std::uint8_t grammars, std::string_view module, std::string_view name) {
  return {module, name, grammars, Args::kNever, Args::kEmpty, BuildState::kDict};
}
/// The same for a class whose instances Python can't hash: most dataclasses.
constexpr NameRule unhashed(NameRule rule) {
  rule.hash = Hash::kNo;
  return rule;
}
constexpr NameRule index(std::string_view module) {
  return {module,       "MetadataIndex",   kM,           Args::kNever,
          Args::kEmpty, BuildState::kDict, Items::kNone, Hash::kOfIndex};
}
constexpr NameRule properties(std::string_view module) {
  return {module,       "TensorProperties", kM,
          Args::kNever, Args::kEmpty,       BuildState::kTensorProperties,
          Items::kNone, Hash::kNo};
}
constexpr NameRule enumeration(std::uint8_t grammars, std::string_view module,
                               std::string_view name) {
  return {module, name, grammars, Args::kScalar};
}
constexpr NameRule path(std::string_view module, std::string_view name) {
  return {module, name, kM | kB, Args::kTexts};
}
constexpr NameRule numpy_type(std::string_view module, std::string_view name, Args args) {
  return {module, name, kB, args, args, BuildState::kNumpy};
}
constexpr NameRule numpy_function(std::string_view module, std::string_view name, Args args,
                                  Hash hash = Hash::kYes) {
  return {module,       name, kB,           args, Args::kNever, BuildState::kNumpy,
          Items::kNone, hash, Is::kFunction};
}

constexpr auto kNames = [] {
  std::array rules{
      // .metadata
      unhashed(record(kM, kDcp, "Metadata")),
      unhashed(record(kM, kDcp, "TensorStorageMetadata")),
      unhashed(record(kM, kDcp, "ChunkStorageMetadata")),
      unhashed(record(kM, kDcp, "BytesStorageMetadata")),
      index(kDcp),
      unhashed(record(kM, kDcp, "StorageMeta")),
      properties(kDcp),
      enumeration(kM, kDcp, "_MEM_FORMAT_ENCODING"),
      unhashed(record(kM, kFiles, "_StorageInfo")),
      unhashed(record(kM, kFiles, "_StoragePrefix")),
      unhashed(record(kM, kPlanner, "SavePlan")),
      unhashed(record(kM, kPlanner, "WriteItem")),
      unhashed(record(kM, kPlanner, "TensorWriteData")),
      record(kM, kPlanner, "BytesIOWriteData"),
      enumeration(kM, kPlanner, "WriteItemType"),
      enumeration(kM, kPlanner, "LoadItemType"),
      unhashed(record(kM, kOldDcp, "Metadata")),
      unhashed(record(kM, kOldDcp, "TensorStorageMetadata")),
      unhashed(record(kM, kOldDcp, "ChunkStorageMetadata")),
      unhashed(record(kM, kOldDcp, "BytesStorageMetadata")),
      index(kOldDcp),
      unhashed(record(kM, kOldFiles, "_StorageInfo")),
      properties(kSharded),
      enumeration(kM, kSharded, "MEM_FORMAT_ENCODING"),
      unhashed(record(kM, "torch.distributed._shard.metadata", "ShardMetadata")),
      unhashed(record(kM, kMegatronDcp, "MCoreMetadata")),
      unhashed(record(kM, kMegatronDcp, "MCoreSavePlan")),

      // Tensors
      function(kTB, "torch._utils", "_rebuild_tensor", Args::kTensor),
      function(kTB, "torch._utils", "_rebuild_tensor_v2", Args::kTensor),
      function(kTB, "torch._utils", "_rebuild_tensor_v3", Args::kTensor),
      function(kTB, "torch._utils", "_rebuild_parameter", Args::kTensor),
      function(kTB, "torch._utils", "_rebuild_parameter_with_state", Args::kTensor),
      function(kTB, "torch._utils", "_rebuild_qtensor", Args::kTensor),
      function(kTB, "torch._tensor", "_rebuild_from_type_v2", Args::kTensor),
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
      value(kAll, "torch", "float64"),
      value(kAll, "torch", "float32"),
      value(kAll, "torch", "float16"),
      value(kAll, "torch", "bfloat16"),
      value(kAll, "torch", "float8_e4m3fn"),
      value(kAll, "torch", "float8_e5m2"),
      value(kAll, "torch", "float8_e4m3fnuz"),
      value(kAll, "torch", "float8_e5m2fnuz"),
      value(kAll, "torch", "float8_e8m0fnu"),
      value(kAll, "torch", "float4_e2m1fn_x2"),
      value(kAll, "torch", "int64"),
      value(kAll, "torch", "int32"),
      value(kAll, "torch", "int16"),
      value(kAll, "torch", "int8"),
      value(kAll, "torch", "uint64"),
      value(kAll, "torch", "uint32"),
      value(kAll, "torch", "uint16"),
      value(kAll, "torch", "uint8"),
      value(kAll, "torch", "bool"),
      value(kAll, "torch", "complex128"),
      value(kAll, "torch", "complex64"),
      value(kAll, "torch", "complex32"),
      value(kAll, "torch", "bits16"),
      value(kAll, "torch", "bits8"),
      value(kAll, "torch", "bits4x2"),
      value(kAll, "torch", "bits2x4"),
      value(kAll, "torch", "bits1x8"),
      value(kAll, "torch", "qint8"),
      value(kAll, "torch", "quint8"),
      value(kAll, "torch", "qint32"),
      value(kAll, "torch", "quint4x2"),
      value(kAll, "torch", "quint2x4"),
      constant(kB, "torch", "dtype"),
      constant(kB, "torch", "layout"),
      constant(kB, "torch", "memory_format"),
      type(kAll, "torch", "Size", Args::kExtents),
      function(kAll, "torch.serialization", "_get_layout", Args::kLayout),
      type(kB, "torch", "device", Args::kDevice),
      NameRule{"torch._C", "Generator", kB, Args::kUnchecked, Args::kUnchecked, BuildState::kAny},

      // Python
      NameRule{"collections", "OrderedDict", kAll, Args::kEmpty, Args::kEmpty, BuildState::kDict,
               Items::kDict, Hash::kNo},
      NameRule{"collections", "defaultdict", kB, Args::kDefaultDict, Args::kEmpty,
               BuildState::kDict, Items::kDict, Hash::kNo},
      NameRule{"collections", "Counter", kB, Args::kMapping, Args::kEmpty, BuildState::kDict,
               Items::kDict, Hash::kNo},
      NameRule{"collections", "deque", kB, Args::kDeque, Args::kEmpty, BuildState::kDict,
               Items::kList, Hash::kNo},
      function(kM | kB, "builtins", "getattr", Args::kEnumMember),
      type(kB, "builtins", "set", Args::kHashables, Hash::kNo),
      type(kB, "builtins", "frozenset", Args::kHashables),
      type(kB, "builtins", "complex", Args::kComplex),
      type(kB, "builtins", "slice", Args::kSlice),
      type(kB, "builtins", "range", Args::kRange),
      type(kB, "builtins", "bytearray", Args::kBytes, Hash::kNo),
      type(kB, "builtins", "bytes", Args::kBytes),
      type(kB, "builtins", "list", Args::kIterable, Hash::kNo),
      type(kB, "builtins", "dict", Args::kMapping, Hash::kNo),
      type(kB, "builtins", "tuple", Args::kIterable),
      type(kB, "builtins", "int", Args::kInt),
      type(kB, "builtins", "float", Args::kFloat),
      type(kB, "builtins", "bool", Args::kBool),
      type(kB, "builtins", "str", Args::kStr),
      constant(kM | kB, "builtins", "object"),
      value(kB, "builtins", "Ellipsis"),
      value(kB, "builtins", "NotImplemented"),
      NameRule{"copyreg", "_reconstructor", kM | kB, Args::kReconstructor, Args::kNever,
               BuildState::kDict, Items::kNone, Hash::kYes, Is::kFunction},
      function(kTB, "_codecs", "encode", Args::kEncoded),
      NameRule{"_io", "BytesIO", kB, Args::kEmpty, Args::kEmpty, BuildState::kBytesIo},
      unhashed(record(kB, "argparse", "Namespace")),
      NameRule{"types", "SimpleNamespace", kB, Args::kEmpty, Args::kEmpty, BuildState::kDict,
               Items::kNone, Hash::kNo},
      enumeration(kB, "signal", "Signals"),
      type(kB, "datetime", "datetime", Args::kDateTime),
      type(kB, "datetime", "date", Args::kDate),
      type(kB, "datetime", "time", Args::kTime),
      type(kB, "datetime", "timedelta", Args::kTimeDelta),
      type(kB, "datetime", "timezone", Args::kTimeZone),
      NameRule{"uuid", "UUID", kB, Args::kNever, Args::kEmpty, BuildState::kUuid},
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
      NameRule{"numpy", "dtype", kB, Args::kNumpyDType, Args::kNever, BuildState::kNumpy},
      numpy_type("numpy", "ndarray", Args::kNever),
      numpy_function("numpy.core.multiarray", "_reconstruct", Args::kNumpyArray, Hash::kNo),
      numpy_function("numpy.core.multiarray", "scalar", Args::kNumpyScalar),
      numpy_function("numpy._core.multiarray", "_reconstruct", Args::kNumpyArray, Hash::kNo),
      numpy_function("numpy._core.multiarray", "scalar", Args::kNumpyScalar),
      numpy_function("numpy.core.numeric", "_frombuffer", Args::kNumpyBuffer, Hash::kNo),
      numpy_function("numpy._core.numeric", "_frombuffer", Args::kNumpyBuffer, Hash::kNo),
      numpy_type("numpy.dtypes", "BoolDType", Args::kEmpty),
      numpy_type("numpy.dtypes", "Int8DType", Args::kEmpty),
      numpy_type("numpy.dtypes", "Int16DType", Args::kEmpty),
      numpy_type("numpy.dtypes", "Int32DType", Args::kEmpty),
      numpy_type("numpy.dtypes", "Int64DType", Args::kEmpty),
      numpy_type("numpy.dtypes", "UInt8DType", Args::kEmpty),
      numpy_type("numpy.dtypes", "UInt16DType", Args::kEmpty),
      numpy_type("numpy.dtypes", "UInt32DType", Args::kEmpty),
      numpy_type("numpy.dtypes", "UInt64DType", Args::kEmpty),
      numpy_type("numpy.dtypes", "Float16DType", Args::kEmpty),
      numpy_type("numpy.dtypes", "Float32DType", Args::kEmpty),
      numpy_type("numpy.dtypes", "Float64DType", Args::kEmpty),
      numpy_function("numpy.random._pickle", "__generator_ctor", Args::kNumpyGenerator),
      numpy_function("numpy.random._pickle", "__bit_generator_ctor", Args::kNumpyGenerator),
      numpy_function("numpy.random._pickle", "__randomstate_ctor", Args::kNumpyGenerator),
      numpy_type("numpy.random._pcg64", "PCG64", Args::kUnchecked),
      numpy_type("numpy.random._mt19937", "MT19937", Args::kUnchecked),
      numpy_type("numpy.random._philox", "Philox", Args::kUnchecked),
      numpy_type("numpy.random.bit_generator", "__pyx_unpickle_SeedSequence", Args::kUnchecked),
      numpy_type("numpy.random.bit_generator", "SeedSequence", Args::kUnchecked),

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
      NameRule{kRerun, "Caller", kB, Args::kNever, Args::kPair},
      NameRule{kRerun, "Call", kB, Args::kNever, Args::kPair},
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
