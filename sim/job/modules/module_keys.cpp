#include "sim/job/modules/module_keys.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "core/base/print.hpp"
#include "core/megatron/module_key.hpp"
#include "core/state/state_dict.hpp"
#include "reprise/error.hpp"
#include "sim/job/optimizer/sharding.hpp"

namespace reprise::sim {
namespace {

constexpr std::array<std::string_view, 3> kForms = {"prefixed", "bare", "mixed"};

/// Returns the prefix that a module's weights have in the bare form.
std::string part_of_model(std::string_view module) {
  if (module == kLanguageModule) return "language_model.";
  return "modality_submodules." + std::string(module) + ".";
}

bool has_buckets(const ModuleConfig& module) {
  return !module.frozen && module.optimizer_sharding == Sharding::kDpReshardable;
}

/// An example of a key in each form; empty if no key of that form was seen.
struct FormsSeen {
  std::string prefixed;
  std::string bare;

  void see(const std::string& key) {
    const auto parsed = parse_module_key(key);
    if (!parsed) return;
    std::string& example = parsed->form == ModuleForm::kPrefixed ? prefixed : bare;
    if (example.empty()) example = key;
  }
};

}  // namespace

std::string_view name_of(KeyForm form) { return kForms.at(static_cast<std::size_t>(form)); }

std::optional<KeyForm> key_form_named(std::string_view name) {
  const auto* const found = std::find(kForms.begin(), kForms.end(), name);
  if (found == kForms.end()) return std::nullopt;
  return static_cast<KeyForm>(found - kForms.begin());
}

ModuleKeys keys_of(KeyForm form, std::string_view module, std::string (*prefix)(std::string_view)) {
  if (module.empty()) return {};
  const std::string before = prefix(module);
  switch (form) {
    case KeyForm::kPrefixed:
      return {.before = before, .within = {}, .settings = before, .streams = before};
    case KeyForm::kBare:
      return {.before = {},
              .within = part_of_model(module),
              .settings = {},
              .streams = std::string(module) + "."};
    case KeyForm::kMixed:
      return {.before = before, .within = {}, .settings = {}, .streams = before};
  }
  return {};
}

void require_tellable(KeyForm form, std::span<const ModuleConfig> modules) {
  std::vector<std::string> names;
  for (const auto& module : modules) {
    if (has_buckets(module)) names.push_back(module.name);
  }
  if (form != KeyForm::kBare || names.size() < 2) return;
  throw Error(Code::kUnsupported,
              "bare keys of buckets do not tell whose they are, and the modules " +
                  join(names, ", ") +
                  " are dp_reshardable: give the keys their prefix, or keep the state of all but "
                  "one as fully_reshardable");
}

std::optional<KeyForm> stored_form(const Catalog& catalog) {
  FormsSeen seen;
  for (const auto& tensor : catalog.tensors) seen.see(tensor.key);
  for (const auto& object : catalog.objects) {
    const auto parsed = parse_object_key(object.key);
    seen.see(parsed ? parsed->key : object.key);
  }
  if (seen.prefixed.empty() && seen.bare.empty()) return std::nullopt;
  if (seen.prefixed.empty()) return KeyForm::kBare;
  if (seen.bare.empty()) return KeyForm::kPrefixed;
  throw Error(Code::kUnsupported,
              "the checkpoint has keys of modules in two forms, prefixed " + seen.prefixed +
                  " and bare " + readable_key(seen.bare) +
                  ": it was put together from two, or written by a job that prefixed some; save it "
                  "again in one form",
              {.key = seen.bare});
}

std::string owner_of(std::string_view key, std::span<const ModuleConfig> stored) {
  const auto parsed = parse_module_key(key);
  if (!parsed) return {};
  if (!parsed->module.empty()) return parsed->module;
  const auto found = std::find_if(stored.begin(), stored.end(), has_buckets);
  return found == stored.end() ? std::string() : found->name;
}

bool is_of_optimizer(std::string_view key) {
  using Kind = ModuleKey::Kind;
  const auto parsed = parse_module_key(key);
  return parsed && (parsed->kind == Kind::kState || parsed->kind == Kind::kBucket ||
                    parsed->kind == Kind::kGroupObject || parsed->kind == Kind::kPart);
}

}  // namespace reprise::sim
