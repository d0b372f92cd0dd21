#pragma once
// Builds and reads the keys of a module's part of a checkpoint. Keys now begin with the module's
// prefix. Old checkpoints have bare keys, which lack this prefix.
//
//                prefixed                                    bare
//   weights      mimo.<m>.<key>                              modality_submodules.<m>.<key>; module
//                                                            `language`: language_model.<key>
//   slots        mimo.<m>.optimizer.state.<slot>.<key>       optimizer.state.<slot>.<bare weight>
//   buckets and  mimo.<m>.[chained_<i>.]optimizer.           [chained_<i>.]optimizer.
//   their objects  distributed.dp_group_idx_<g>.<...>          distributed.dp_group_idx_<g>.<...>
//   settings     mimo.<m>.optimizer.mimo.<m><s>.<part>       optimizer.mimo.<m><s>.<part>
//   streams      mimo.<m>.rng_state                          <m>.rng_state
//
// Bare keys of buckets do not name their module, so only one module of a checkpoint can have bare
// buckets.

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/state/catalog.hpp"
#include "sim/job/modules/module_config.hpp"

namespace reprise::sim {

enum class KeyForm : std::uint8_t {
  kPrefixed,
  kBare,
  kMixed,  ///< only the keys of settings are bare; loads refuse this form
};
/// Returns "prefixed", "bare" or "mixed".
std::string_view name_of(KeyForm form);
std::optional<KeyForm> key_form_named(std::string_view name);

/// Prefixes of a module's keys; empty for a job that is one model.
struct ModuleKeys {
  std::string before;    ///< prefix of all keys except those of settings and streams
  std::string within;    ///< prefix of a weight's key, also of one inside a slot's key
  std::string settings;  ///< prefix of the keys that settings_key() returns
  std::string streams;   ///< prefix of "rng_state" and "expert_rng_state"
};

/// Returns the prefixes of a module's keys in the given form. `prefix` maps a module's name to its
/// prefix.
ModuleKeys keys_of(KeyForm form, std::string_view module,
                   std::string (*prefix)(std::string_view) = module_prefix);

/// Throws UNSUPPORTED, naming the modules, if `form` is bare and several modules have buckets: a
/// bare bucket key does not say to which module the bucket belongs.
void require_tellable(KeyForm form, std::span<const ModuleConfig> modules);

/// Returns the form of the keys in a checkpoint with modules; nothing if no key has either form.
/// Throws UNSUPPORTED, with one key of each form, if the checkpoint has keys of both forms.
std::optional<KeyForm> stored_form(const Catalog& catalog);

/// Returns the module that owns a stored key of a tensor, or of an object without coordinates. Bare
/// keys of buckets belong to the only module of `stored` that has buckets. Returns "" if no module
/// owns the key.
std::string owner_of(std::string_view key, std::span<const ModuleConfig> stored);
/// True if the key belongs to some module's optimizer.
bool is_of_optimizer(std::string_view key);

}  // namespace reprise::sim
