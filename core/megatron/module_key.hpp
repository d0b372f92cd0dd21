#pragma once
// Parses the keys of a checkpoint of several modules (Megatron's MIMO), each with its own
// optimizer. Pure functions; nothing else parses these keys.
//
//   mimo.<m>.<model key>                                    a weight, if weights are prefixed
//   modality_submodules.<m>.<...>, language_model.<...>     a weight under the model's names
//   mimo.<m>.[chained_<i>.]optimizer.state.<slot>.<...>     a tensor of optimizer state
//   mimo.<m>.[chained_<i>.]optimizer.distributed.dp_group_idx_<g>.gbuf_idx_<...>      a bucket
//   mimo.<m>.[chained_<i>.]optimizer.distributed.dp_group_idx_<g>.<optimizer|grad_scaler|...>
//   mimo.<m>.optimizer.mimo.<m><s>.<param_groups|grad_scaler|param_state_sharding_type>
//   mimo.<m>.rng_state, mimo.<m>.expert_rng_state, also <m>.rng_state
//
// <s> is empty for the first of a module's chained optimizers, then ".1", ".2". Before the prefix
// was introduced, all optimizer keys were bare, for example optimizer.mimo.<m><s>.param_groups and
// optimizer.state.<slot>.modality_submodules.<m>.<...>. A bare optimizer.distributed.<...> does not
// say to which module it belongs.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

/// The parts that a module's optimizer stores in addition to its tensors.
enum class ModulePart : std::uint8_t { kParamGroups, kGradScaler, kShardingType };
inline constexpr std::array kModuleParts = {ModulePart::kParamGroups, ModulePart::kGradScaler,
                                            ModulePart::kShardingType};
/// Returns the last component of the part's key, such as "param_groups".
std::string_view name_of(ModulePart part);

/// How a key identifies its module.
enum class ModuleForm : std::uint8_t {
  kNamed,     ///< by the model's own names, such as modality_submodules.<m>
  kBare,      ///< by optimizer.mimo.<m>, without a prefix
  kPrefixed,  ///< by the prefix mimo.<m>.
};
/// Returns "by name", "bare" or "prefixed".
std::string_view name_of(ModuleForm form);

/// Name of the module whose weights are `language_model.<...>`. A model has exactly one such
/// module.
inline constexpr std::string_view kLanguageModule = "language";
/// A chain may have at most this many optimizers; keys with a higher position are not parsed.
inline constexpr std::int64_t kChainMax = 64;

struct ModuleKey {
  enum class Kind : std::uint8_t {
    kWeight,
    kState,        ///< optimizer state, tensor by tensor
    kBucket,       ///< optimizer state in buckets
    kGroupObject,  ///< object of a distributed optimizer, for one data-parallel group
    kPart,         ///< an object of the optimizer's metadata
    kRng,
    kExpertRng,
  };
  std::string module;  ///< module's name; empty for a bucket or group object of unknown module
  ModuleForm form = ModuleForm::kNamed;
  Kind kind = Kind::kWeight;
  std::optional<std::int64_t> chain;  ///< position in the chain, if the key has one
  std::optional<ModulePart> part;     ///< set for kPart, and for a kGroupObject that is a part
  std::int64_t group = 0;             ///< dp_group_idx; used for kBucket and kGroupObject

  friend bool operator==(const ModuleKey&, const ModuleKey&) = default;
};

/// Parses the key of a tensor, or of an object without coordinate and grid. Returns nothing if the
/// key does not fit any known form.
std::optional<ModuleKey> parse_module_key(std::string_view key);

/// Returns the key of a part, such as "mimo.vision.optimizer.mimo.vision.1.param_groups", or
/// "optimizer.mimo.vision.1.param_groups" without the prefix.
std::string module_part_key(ModuleForm form, std::string_view module, std::int64_t chain,
                            ModulePart part);
/// Returns the suffix of a chained optimizer: ".1", ".2" and so on; empty for the first.
std::string chain_suffix(std::int64_t chain);

/// Returns the name of a part in its module's state dict, such as "_mimo_param_groups.1".
std::string name_in_state_dict(ModulePart part, std::int64_t chain);
/// Returns a key as it is shown in messages. A part's key is followed by the part's name in the
/// state dict and by its module: "optimizer.mimo.a.grad_scaler (_mimo_grad_scaler of module a)".
/// Keys of tensors and of objects with coordinates are unchanged.
std::string readable_key(const std::string& key);
std::vector<std::string> readable_keys(std::span<const std::string> keys);

}  // namespace reprise
