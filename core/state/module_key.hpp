#pragma once
// The keys of a checkpoint of several modules (Megatron's MIMO), each with its own optimizer, taken
// apart. Pure; the one parser of them.
//
//   mimo.<m>.<model key>                                    a weight, where weights are prefixed
//   modality_submodules.<m>.<...>, language_model.<...>     a weight by the model's own names
//   mimo.<m>.[chained_<i>.]optimizer.state.<slot>.<...>     a tensor of optimizer state, and
//   mimo.<m>.[chained_<i>.]optimizer.distributed.dp_group_idx_<g>.gbuf_idx_<...>      a bucket of
//   it mimo.<m>.[chained_<i>.]optimizer.distributed.dp_group_idx_<g>.<optimizer|grad_scaler|...>
//   mimo.<m>.optimizer.mimo.<m><s>.<param_groups|grad_scaler|param_state_sharding_type>
//   mimo.<m>.rng_state, mimo.<m>.expert_rng_state, also <m>.rng_state
//
// <s> is empty for the first of a module's chained optimizers, ".1", ".2" for the next. Before the
// prefix existed all keys of optimizers were bare: optimizer.mimo.<m><s>.param_groups beside
// optimizer.state.<slot>.modality_submodules.<m>.<...>. A bare optimizer.distributed.<...> does not
// tell whose it is.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

/// What a module's optimizer stores besides its tensors.
enum class ModulePart : std::uint8_t { kParamGroups, kGradScaler, kShardingType };
inline constexpr std::array kModuleParts = {ModulePart::kParamGroups, ModulePart::kGradScaler,
                                            ModulePart::kShardingType};
/// The last part of its key: "param_groups".
std::string_view name_of(ModulePart part);

/// By what a key tells its module.
enum class ModuleForm : std::uint8_t {
  kNamed,     ///< the names that the model gives its parts
  kBare,      ///< optimizer.mimo.<m>
  kPrefixed,  ///< mimo.<m>.
};
/// "by name", "bare", "prefixed".
std::string_view name_of(ModuleForm form);

/// Name of the module whose weights are `language_model.<...>`; a model has exactly one.
inline constexpr std::string_view kLanguageModule = "language";
/// Longest chain of optimizers that is believed.
inline constexpr std::int64_t kChainMax = 64;

struct ModuleKey {
  enum class Kind : std::uint8_t {
    kWeight,
    kState,        ///< optimizer state, tensor by tensor
    kBucket,       ///< optimizer state in buckets
    kGroupObject,  ///< of a distributed optimizer's data-parallel group
    kPart,         ///< an object of the optimizer's metadata
    kRng,
    kExpertRng,
  };
  std::string module;  ///< empty: a bucket or an object of a group that is somebody's
  ModuleForm form = ModuleForm::kNamed;
  Kind kind = Kind::kWeight;
  std::optional<std::int64_t> chain;  ///< where the key says which optimizer of a chain
  std::optional<ModulePart> part;     ///< of kPart, and of a kGroupObject that is one
  std::int64_t group = 0;             ///< dp_group_idx of kBucket and kGroupObject

  friend bool operator==(const ModuleKey&, const ModuleKey&) = default;
};

/// `key`: of a tensor, or of an object without coordinate and grid. Nothing if it tells no module.
std::optional<ModuleKey> parse_module_key(std::string_view key);

/// The key of such a part: "mimo.vision.optimizer.mimo.vision.1.param_groups", or the bare one.
std::string module_part_key(ModuleForm form, std::string_view module, std::int64_t chain,
                            ModulePart part);
/// ".1"; empty for the first.
std::string chain_suffix(std::int64_t chain);

/// Such a part's name within its module's state dict: "_mimo_param_groups.1".
std::string name_in_state_dict(ModulePart part, std::int64_t chain);
/// Returns a key as people are told of it: with the module and the name in its state dict behind
/// the key of such a part, "optimizer.mimo.a.grad_scaler (_mimo_grad_scaler of module a)". Any
/// other key, of a tensor or of an object with its coordinates, is returned as it is.
std::string told_key(const std::string& key);
std::vector<std::string> told_keys(std::span<const std::string> keys);

}  // namespace reprise
