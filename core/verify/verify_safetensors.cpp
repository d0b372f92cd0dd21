#include "core/verify/verify_safetensors.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/print.hpp"
#include "core/checkpoint/safetensors_files.hpp"
#include "core/format/json_document.hpp"
#include "core/ports/store_path.hpp"

namespace reprise {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kConfigBytesMax = std::uint64_t{1} << 20U;
constexpr std::string_view kConfig = "config.json";
constexpr std::string_view kOutput = "lm_head.weight";
/// Last parts of the keys of embeddings to which an output layer may be tied.
constexpr std::string_view kEmbeddings[] = {"embed_tokens.weight", "wte.weight", "embed_in.weight",
                                            "word_embeddings.weight"};

std::string display_of(const Checkpoint& checkpoint, std::string_view name) {
  return checkpoint.store().display(join_path(checkpoint.location().directory, std::string(name)));
}

/// Reads a file of settings. Returns nothing if there is none, or if it can't be read; then adds a
/// finding.
std::optional<Json> settings(const Checkpoint& checkpoint, std::string_view name,
                             Findings& findings) {
  const std::string display = display_of(checkpoint, name);
  try {
    const auto bytes = checkpoint.small_file(name);
    if (!bytes) return std::nullopt;
    return parse_json_object(*bytes, {.file = display}, kConfigBytesMax);
  } catch (const Error& error) {
    // Some settings are nested deeply, or large.
    findings.push_back(finding_from(error.within({.file = display}), error.code() == Code::kTornFile
                                                                         ? Severity::kWarning
                                                                         : Severity::kNote));
    return std::nullopt;
  }
}

std::string text_in(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>().substr(0, 200) : "";
}

void check_tied(const Checkpoint& checkpoint, Findings& findings) {
  const auto& tensors = checkpoint.catalog().tensors;
  if (checkpoint.catalog().tensor(kOutput) != nullptr) return;
  const auto embedding = std::ranges::find_if(tensors, [](const StoredTensor& tensor) {
    return std::ranges::any_of(kEmbeddings, [&](std::string_view end) {
      return tensor.key.ends_with(end) && (tensor.key.size() == end.size() ||
                                           tensor.key[tensor.key.size() - end.size() - 1] == '.');
    });
  });
  const auto told = std::ranges::any_of(checkpoint.metadata().findings, [](const Finding& finding) {
    return finding.key == kOutput;
  });
  if (embedding == tensors.end() || told) return;
  const auto config = settings(checkpoint, kConfig, findings);
  const auto tied = config ? config->find("tie_word_embeddings") : Json::const_iterator();
  const bool known = config && tied != config->end() && tied->is_boolean();
  const std::string words = "not stored; a model for text without it takes " + embedding->key;
  if (!known) {
    findings.push_back({Severity::kNote, Code::kNotStored, words + " instead, if both are tied",
                        std::string(kOutput)});
  } else if (tied->get<bool>()) {
    findings.push_back({Severity::kNote, Code::kNotStored,
                        "not stored: config.json says that it is tied to " + embedding->key,
                        std::string(kOutput)});
  } else {
    findings.push_back({Severity::kWarning, Code::kNotStored,
                        "not stored, and config.json says that it is not tied to " + embedding->key,
                        std::string(kOutput), display_of(checkpoint, kConfig)});
  }
}

/// Each pair of LoRA matrices must be whole: "x.lora_A.weight" and "x.lora_B.weight".
void check_pairs(const Catalog& catalog, Findings& findings) {
  constexpr std::string_view kLoraA = ".lora_A.";
  constexpr std::string_view kLoraB = ".lora_B.";
  const auto look = [&](const StoredTensor& tensor, std::string_view own, std::string_view other) {
    const auto at = tensor.key.find(own);
    if (at == std::string::npos) return;
    std::string key = tensor.key;
    key.replace(at, own.size(), other);
    if (catalog.tensor(key) != nullptr) return;
    findings.push_back({Severity::kError, Code::kCoverageGap,
                        "missing, but the other matrix of the adapter is there: " + tensor.key,
                        key});
  };
  for (const StoredTensor& tensor : catalog.tensors) {
    look(tensor, kLoraA, kLoraB);
    look(tensor, kLoraB, kLoraA);
  }
}

void check_adapter(const Checkpoint& checkpoint, Findings& findings) {
  const auto config = settings(checkpoint, kAdapterConfig, findings);
  std::string words = "an adapter, not a model: whole means that the adapter is";
  if (config) {
    const std::string kind = text_in(*config, "peft_type");
    const std::string base = text_in(*config, "base_model_name_or_path");
    words += std::string("; ") + (kind.empty() ? "of unknown type" : kind) +
             (base.empty() ? "" : ", made for " + base);
  }
  findings.push_back({Severity::kNote, Code::kUnsupported, words, "", checkpoint.display(0)});
  if (!config && findings.size() == 1) {
    findings.push_back({Severity::kWarning, Code::kNotFound,
                        "without this file PEFT can't load the adapter", "",
                        display_of(checkpoint, kAdapterConfig)});
  }
  check_pairs(checkpoint.catalog(), findings);
}

}  // namespace

Findings check_safetensors(Checkpoint& checkpoint) {
  Findings findings;
  if (is_adapter(checkpoint)) {
    check_adapter(checkpoint, findings);
  } else {
    check_tied(checkpoint, findings);
  }
  return findings;
}

}  // namespace reprise
