#include "core/reshard/for_release.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/checkpoint/checkpoint_forms.hpp"
#include "core/format/backend_info.hpp"
#include "core/format/common_state.hpp"

namespace reprise {
namespace {

/// Returns where a form shows: the first tensor that has it, or the file of the common state.
ErrorPlace place_of(Checkpoint& checkpoint, Form form) {
  for (const StoredTensor& tensor : checkpoint.catalog().tensors) {
    const bool flat = form == Form::kFlattened && !tensor.original_shape.empty();
    if (flat || form_of(tensor.dtype) == form) return {.key = tensor.key};
  }
  return {.file = checkpoint.store().display(checkpoint.location().directory)};
}

/// Refuses if a release can't read what is in these forms.
void require_read(Checkpoint& checkpoint, const Forms& forms, Release release) {
  const Judged judged = readers(release.package, forms);
  if (judged.releases.contain(release.version)) return;
  std::string why;
  std::optional<Form> first;
  for (std::size_t i = 0; i < kForms; ++i) {
    const auto form = static_cast<Form>(i);
    if (!forms.has(form)) continue;
    const Releases read = readers(release.package, {form}).releases;
    if (read.contain(release.version)) continue;
    if (!first) first = form;
    why += (why.empty() ? "" : "; ") + std::string(facts_of(form).words) + ", which " +
           to_string(release.package, read) + " reads";
  }
  throw Error(Code::kUnsupported, to_string(release) + " can't read this: " + why,
              place_of(checkpoint, first.value_or(Form::kStrides)));
}

/// Flattened ranges are written as whole tensors, but the common state still says otherwise.
void refuse_flattened(Checkpoint& source, const Forms& forms, Release release) {
  if (release.package != Package::kMegatron || !forms.has(Form::kFlattened)) return;
  const bool old = facts_of(Form::kFlattened).megatron_reads.contain(release.version);
  throw Error(Code::kUnsupported,
              "the optimizer's state is stored as flattened ranges, which are never written: " +
                  to_string(release) +
                  (old ? " can read the checkpoint as it is"
                       : " needs those of the form fully_reshardable, which --optimizer makes"),
              place_of(source, Form::kFlattened));
}

class ForMegatron {
 public:
  ForMegatron(Checkpoint& source, const Value* common, Release release, OtherForms& made)
      : source_(source), common_(common), release_(release), made_(made) {}

  void choose(const Forms& forms) {
    if (!source_.of_megatron()) {
      throw Error(Code::kUsage,
                  to_string(release_) +
                      " loads what Megatron-Core saved, and this has neither its metadata.json nor "
                      "its common state",
                  {.file = source_.store().display(source_.location().directory)});
    }
    if (!reads(Form::kCommonInObject) && forms.has(Form::kCommonInObject)) common_as_file();
    const bool short_or_odd = forms.has(Form::kBackendOfShards) || forms.has(Form::kBackendUnknown);
    if (!reads(Form::kBackendUnknown) && short_or_odd) {
      add(std::string(kBackendFile), write_backend_info(),
          "metadata.json has the four keys that Megatron-Core reads up to 0.18");
    }
    if (forms.has(Form::kNoBackend)) {
      add(std::string(kBackendFile), write_backend_info(),
          "metadata.json, without which Megatron-Core reads no checkpoint, was written");
    }
  }

 private:
  bool reads(Form form) const { return facts_of(form).megatron_reads.contain(release_.version); }

  void common_as_file() {
    const auto common = source_.common();
    const Value* value = common_;
    if (value == nullptr && common && common->item.value) value = &*common->item.value;
    const Dict* state = value == nullptr ? nullptr : value->as<Dict>();
    if (state == nullptr) {
      throw Error(Code::kUnsupported,
                  to_string(release_) +
                      " reads the common state from common.pt, which can't be "
                      "written: the common state holds what is not read here" +
                      (common ? ": " + common->item.opaque_because : ""),
                  {.key = std::string(kCommonObjectKey)});
    }
    add(std::string(kCommonFile), write_common_file(*state),
        "the common state became the file common.pt");
    if (made_.left_objects.empty()) made_.left_objects.emplace_back(kCommonObjectKey);
  }

  void add(std::string name, Bytes bytes, std::string change) {
    const bool is_there = std::ranges::any_of(
        made_.files, [&](const WrittenInstead& file) { return file.name == name; });
    if (is_there) return;
    made_.files.push_back({std::move(name), std::move(bytes)});
    made_.changes.push_back(std::move(change));
  }

  Checkpoint& source_;
  const Value* common_;  ///< null for the source's own
  Release release_;
  OtherForms& made_;
};

}  // namespace

OtherForms forms_for(Checkpoint& source, const Value* common, std::span<const Release> releases,
                     bool strides) {
  OtherForms made;
  Forms forms = forms_of(source, common);
  const bool flattened = forms.has(Form::kFlattened) || forms.has(Form::kNoLongerFlattened);
  if (common != nullptr) {
    forms.remove(Form::kFlattened);  // they became whole tensors, and the common state says so
  } else if (flattened) {
    made.changes.emplace_back(
        "no megatron-core loads the optimizer's state in OUT: it is no longer stored as flattened "
        "ranges, but its form is still fully_sharded_model_space; --optimizer fully_reshardable "
        "makes it one that megatron-core >= 0.15 loads");
  }
  if (releases.empty()) return made;
  Forms kept = kept_by_reshard(forms);
  if (strides && forms.has(Form::kStrides)) kept.add(Form::kStrides);
  for (const Release release : releases) {
    if (kept.has(Form::kStrides) && release.package == Package::kTorch &&
        !facts_of(Form::kStrides).torch_reads.contain(release.version)) {
      throw Error(Code::kUsage, to_string(release) +
                                    " can't read strides in .metadata, and --keep-strides keeps "
                                    "them; leave that option out");
    }
    refuse_flattened(source, forms, release);
    require_read(source, kept, release);
    if (release.package == Package::kMegatron) {
      ForMegatron(source, common, release, made).choose(forms);
    } else if (forms.has(Form::kRankMetadata) &&
               !facts_of(Form::kRankMetadata).torch_reads.contain(release.version)) {
      if (!made.one_metadata) made.changes.emplace_back("all ranks share one .metadata");
      made.one_metadata = true;
    }
  }
  if (forms.has(Form::kStrides) && !strides) {
    made.changes.emplace_back("strides were left out of .metadata");
  }
  return made;
}

void require_readers(Checkpoint& written, std::span<const Release> releases) {
  const Forms forms = forms_of(written);
  for (const Release release : releases) require_read(written, forms, release);
}

}  // namespace reprise
