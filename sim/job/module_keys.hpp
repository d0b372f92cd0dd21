#pragma once
// Under which keys a module's part of a checkpoint stands. Today all of them begin with the
// module's prefix; checkpoints from before there was one have the bare form.
//
//                prefixed                                    bare
//   weights      mimo.<m>.<key>                              modality_submodules.<m>.<key>, of the
//                                                            module `language` language_model.<key>
//   slots        mimo.<m>.optimizer.state.<slot>.<key>       optimizer.state.<slot>.<bare weight>
//   buckets and  mimo.<m>.[chained_<i>.]optimizer.           [chained_<i>.]optimizer.
//   their objects  distributed.dp_group_idx_<g>.<...>          distributed.dp_group_idx_<g>.<...>
//   settings     mimo.<m>.optimizer.mimo.<m><s>.<part>       optimizer.mimo.<m><s>.<part>
//   streams      mimo.<m>.rng_state                          <m>.rng_state
//
// Bare buckets do not tell whose they are: one module of a checkpoint can have some.

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/state/catalog.hpp"
#include "sim/job/module_config.hpp"

namespace reprise::sim {

enum class KeyForm : std::uint8_t {
  kPrefixed,
  kBare,
  kMixed,  ///< settings bare and all else prefixed, as a job that gave its prefix to some; no load
           ///< takes it
};
/// "prefixed", "bare", "mixed".
std::string_view name_of(KeyForm form);
std::optional<KeyForm> key_form_named(std::string_view name);

/// What stands before a module's keys; nothing of a job that is one model.
struct ModuleKeys {
  std::string before;    ///< all keys but settings' and streams'
  std::string within;    ///< the model's own keys, wherever in a key they stand
  std::string settings;  ///< those of settings_key()
  std::string streams;   ///< "rng_state", "expert_rng_state"
};

/// `prefix` gives the prefix of a module's name.
ModuleKeys keys_of(KeyForm form, std::string_view module,
                   std::string (*prefix)(std::string_view) = module_prefix);

/// Throws UNSUPPORTED naming the modules of which bare keys could not tell whose buckets are whose.
void require_tellable(KeyForm form, std::span<const ModuleConfig> modules);

/// The form in which a checkpoint of modules has its keys; nothing if no key tells. UNSUPPORTED
/// naming one key of each form if it has both.
std::optional<KeyForm> stored_form(const Catalog& catalog);

/// The module whose a stored key is, a tensor's or an object's without coordinates; bare buckets
/// are of the one module of `stored` that has some. Empty if the key is nobody's.
std::string owner_of(std::string_view key, std::span<const ModuleConfig> stored);
/// Whether the key is of some module's optimizer.
bool is_of_optimizer(std::string_view key);

}  // namespace reprise::sim
