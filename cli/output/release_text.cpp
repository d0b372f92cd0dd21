#include "cli/output/release_text.hpp"

#include "core/base/print.hpp"
#include "core/checkpoint/checkpoint_forms.hpp"

namespace reprise::cli {
namespace {

ToldReleases told(const Judged& judged) {
  ToldReleases told{.program = judged.package == Package::kTorch ? "torch" : "megatron-core",
                    .who = to_string(judged.package, judged.releases),
                    .first = first_of(judged.package, judged.releases),
                    .last = last_of(judged.releases),
                    .none = judged.releases.none()};
  for (const Form form : judged.because) told.because.emplace_back(facts_of(form).words);
  return told;
}

/// Names the oldest release that was looked at, since nothing is known of earlier ones.
ToldReleases since_the_oldest(ToldReleases told, Package package) {
  if (told.none || told.first) return told;
  told.first = readers(package, {}).releases.first;
  const std::string first = to_string(*told.first);
  told.who =
      told.program + (told.last ? " " + first + " to " + to_string(*told.last) : " >= " + first);
  return told;
}

/// Returns the engine that saved the state, as it noted in the common state.
std::optional<std::string> engine_of(Checkpoint& checkpoint) {
  try {
    const auto common = checkpoint.common();
    if (!common || !common->item.value) return std::nullopt;
    const Value* identity = common->item.value->find("reprise");
    const Value* engine = identity != nullptr ? identity->find("engine") : nullptr;
    const auto* name = engine != nullptr ? engine->as<std::string>() : nullptr;
    return name != nullptr ? std::optional(*name) : std::nullopt;
  } catch (const Error&) {  // `verify` says what is wrong with it
    return std::nullopt;
  }
}

std::vector<ToldReleases> writers_of(Checkpoint& checkpoint, const Forms& forms) {
  const Metadata& metadata = checkpoint.metadata();
  switch (metadata.form) {
    case StoredForm::kTorchDist:
      break;
    case StoredForm::kTorchCheckpointing:
      return {{"torch_checkpointing", "torch_checkpointing", {"it has a metadata.pkl"}}};
    case StoredForm::kSafetensorsPieces:
      return {{"torch", "torch", {"its files have pieces of tensors with DCP_SHARDING_INFO"}}};
    case StoredForm::kSafetensors: {
      const auto format = metadata.texts.find("format");
      if (format == metadata.texts.end()) return {};
      return {{"safetensors",
               "safetensors",
               {"its header says that the format is '" + format->second + "'"}}};
    }
    default:
      return {{"torch", "torch", {"it is what torch.save writes"}}};
  }
  std::vector<ToldReleases> all;
  if (auto engine = engine_of(checkpoint)) {
    all.push_back({"reprise", std::move(*engine), {"its common state says so"}});
  }
  if (forms.has(Form::kWithoutFrames)) {
    if (all.empty()) {
      all.push_back({"reprise",
                     "Reprise, or another program than torch",
                     {std::string(facts_of(Form::kWithoutFrames).words)}});
    }
    return all;
  }
  all.push_back(told(writers(Package::kTorch, forms)));
  if (checkpoint.of_megatron()) all.push_back(told(writers(Package::kMegatron, forms)));
  return all;
}

}  // namespace

ReleasesOf releases_of(Checkpoint& checkpoint) {
  const Forms forms = forms_of(checkpoint);
  ReleasesOf found{.writers = writers_of(checkpoint, forms)};
  if (checkpoint.metadata().form != StoredForm::kTorchDist) return found;
  const auto add = [&](Package package) {
    const Judged judged = readers(package, forms);
    found.readers.push_back(since_the_oldest(told(judged), package));
    if (const auto older = older_reader(judged, forms)) found.older.push_back(*older);
  };
  add(Package::kTorch);
  Forms classes;
  for (const Form form : {Form::kMegatronMetadata, Form::kMegatronPlans}) {
    if (forms.has(form)) classes.add(form);
  }
  if (!(classes == Forms{})) {
    const Releases have = readers(Package::kMegatron, classes).releases;
    found.readers.front().who += " where " + to_string(Package::kMegatron, have) + " is installed";
    found.readers.front().because.emplace_back("its metadata names classes of megatron-core");
  }
  if (checkpoint.of_megatron()) add(Package::kMegatron);
  found.flattened = forms.has(Form::kFlattened) || forms.has(Form::kNoLongerFlattened);
  return found;
}

std::string release_text(const std::vector<ToldReleases>& told) {
  std::vector<std::string> words;
  for (const ToldReleases& one : told) {
    const std::string why = join(one.because, ", ");
    words.push_back(why.empty() ? one.who : one.who + " (" + why + ")");
  }
  return join(words, "; ");
}

std::string advice_of(const ReleasesOf& releases) {
  std::vector<std::string> advice;
  if (releases.flattened) {
    advice.push_back("`reprise reshard --optimizer fully_reshardable` writes one that " +
                     to_string(Package::kMegatron, facts_of(Form::kWholeState).megatron_reads) +
                     " reads");
  }
  std::string options;
  for (const Release release : releases.older) options += " --for " + to_string(release);
  if (!options.empty()) {
    advice.push_back("`reprise reshard" + options + "` writes one that " +
                     (releases.older.size() == 1 ? "this release reads" : "these releases read"));
  }
  return join(advice, "; ");
}

}  // namespace reprise::cli
