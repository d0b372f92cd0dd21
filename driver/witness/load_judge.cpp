#include "driver/witness/load_judge.hpp"

#include "core/base/hash.hpp"

namespace reprise::driver {
namespace {

std::string text_of(DType dtype) { return std::string(name_of(dtype)); }

class LoadJudge : judged::Finder {
 public:
  LoadJudge(const LoadCase& load, Findings& findings)
      : Finder(findings, {.text = life_name(load.loaded.life) + ": ",
                          .life = load.loaded.life,
                          .step = load.loaded.step,
                          .phase = "load"}),
        case_(load),
        loaded_(load.loaded) {}

  void judge() {
    const auto at = save_loaded(case_.saves, loaded_.step);
    if (!at) {
      find(judged::kStaleBytes,
           "it loaded step " + std::to_string(loaded_.step) + ", but nothing saved that step");
      return;
    }
    const ToldSave& save = case_.saves[*at];
    if (case_.wants_newest) judge_age(*at);
    if (judge_mixture(save)) return;
    stored_ = checkpoint_of(case_.stored, loaded_.step);
    other_layout_ = save.layout != case_.layout;
    for (const auto& [key, live] : save.state.tensors) judge_tensor(key, live);
    for (const auto& [name, live] : save.state.objects) judge_object(name, live);
  }

 private:
  std::string after() const { return "after the load of step " + std::to_string(loaded_.step); }

  /// Requires that no whole checkpoint is newer than the one that was loaded.
  void judge_age(std::size_t loaded) {
    for (std::size_t i = case_.saves.size(); --i > loaded;) {
      const ToldSave& newer = case_.saves[i];
      const auto* stored = checkpoint_of(case_.stored, newer.state.step);
      if (!newer.complete || stored == nullptr || stored->flaw || !stored->unread.empty()) continue;
      find(judged::kStaleBytes, "it loaded step " + std::to_string(loaded_.step) +
                                    ", but the checkpoint of step " +
                                    std::to_string(newer.state.step) + " is newer and whole");
      return;
    }
  }

  void judge_tensor(const std::string& key, const WholeTensor& live) {
    const auto there = loaded_.tensors.find(key);
    if (live.per_rank && other_layout_) return;  // it is of a place that this layout may not have
    if (there == loaded_.tensors.end()) {
      find(judged::kLostObject, key,
           key + " is in the checkpoint of step " + std::to_string(loaded_.step) +
               " but no rank has it after the load" + advice())
          .with("digest " + hex(live.digest), kHeldByNone);
    } else if (there->second.dtype != live.dtype) {
      find(Code::kDtypeDrift, key,
           after() + ", " + key + " is " + text_of(there->second.dtype) + " and was " +
               text_of(live.dtype))
          .with(text_of(live.dtype), text_of(there->second.dtype));
    } else if (!(there->second.shape == live.shape)) {
      find(Code::kShapeDrift, key, after() + ", " + key + " has a different shape")
          .with(to_string(live.shape), to_string(there->second.shape));
    } else if (there->second.digest != live.digest) {
      find_wrong_content(key, live, there->second.digest);
    }
  }

  void find_wrong_content(const std::string& key, const WholeTensor& live, std::uint64_t digest) {
    const StoredDigest* there = nullptr;
    if (stored_ != nullptr && stored_->tensors.contains(key)) there = &stored_->tensors.at(key);
    std::string who = ": without a checkpoint it is unknown whether the save or the load is wrong";
    if (there != nullptr) {
      who = there->digest == live.digest
                ? ": the checkpoint has the right bits, so the load is wrong"
            : there->digest == digest
                ? ": the checkpoint has the wrong bits, so the save is wrong"
                : ": the checkpoint has neither, so both save and load are wrong";
    }
    find(judged::kBitMismatch, key,
         after() + ", " + key + " has different bits than were live at the save" + who)
        .with("digest " + hex(live.digest), "digest " + hex(digest))
        .other_elements = true;
  }

  /// Returns the step of another save in which the tensor had this content.
  std::optional<std::int64_t> other_save_of(const std::string& key, std::uint64_t digest,
                                            const ToldSave& save) const {
    for (auto other = case_.saves.rbegin(); other != case_.saves.rend(); ++other) {
      const auto tensor = other->state.tensors.find(key);
      if (&*other == &save || tensor == other->state.tensors.end()) continue;
      if (tensor->second.digest == digest) return other->state.step;
    }
    return std::nullopt;
  }

  /// Reports a load whose tensors come from several saves, or all come from a save of another step.
  /// Returns true if it reported the load.
  bool judge_mixture(const ToldSave& save) {
    // Step of another save, and one key whose content comes from that save.
    std::map<std::int64_t, std::string> from;
    bool own = false;
    for (const auto& [key, live] : save.state.tensors) {
      const auto there = loaded_.tensors.find(key);
      if (there == loaded_.tensors.end()) continue;
      const auto other = other_save_of(key, there->second.digest, save);
      if (there->second.digest == live.digest) {
        own = own || !other;
      } else if (other) {
        from.emplace(*other, key);
      }
    }
    if (from.empty()) return false;
    const auto& [step, key] = *from.begin();
    const bool mixed = own || from.size() > 1;
    find(mixed ? judged::kMixedGeneration : judged::kStaleBytes, key,
         after() + ", " + key + " is from the save of step " + std::to_string(step) +
             (mixed ? ", but other tensors are not" : ", and so is all that changes"));
    return true;
  }

  /// Says how to report what only one layout has. Empty if the layout is the same.
  std::string advice() const {
    return other_layout_ ? "; if it belongs to a rank's place in the layout, report it with "
                           "per_rank=True"
                         : "";
  }

  /// An object with a shard, or of a rank's own, exists only under certain layouts.
  void judge_object(const std::pair<std::string, std::string>& name, const WholeObject& live) {
    if (!live.digest) return;
    if (live.per_rank && other_layout_) return;
    const std::string key = name.first + (name.second.empty() ? "" : " " + name.second);
    const std::string what = after() + ", " + key;
    const auto there = loaded_.objects.find(name);
    if (there == loaded_.objects.end()) {
      if (!name.second.empty() && other_layout_) return;
      find(judged::kLostObject, key,
           what + " is held by no rank" + (name.second.empty() ? advice() : ""))
          .with(shown_content(live), kHeldByNone);
    } else if (!there->second.digest) {
      find(judged::kOracleVacuous, key, what + " has no digest to compare with the one at the save")
          .severity = Severity::kInconclusive;
    } else if (*there->second.digest != *live.digest) {
      const bool shown = !live.value.empty() && !there->second.value.empty();
      find(judged::kLostObject, key,
           what + " is not what it was at the save" +
               (shown ? ": it is " + there->second.value + " and was " + live.value : ""))
          .with(shown_content(live), shown_content(there->second));
    } else if (const auto lost = rank_that_lost(live, there->second); lost && !other_layout_) {
      find(judged::kLostObject, key,
           what + " is not held by rank " + std::to_string(*lost) + ", which held it at the save")
          .with(shown_content(live), "nothing on that rank")
          .rank = rank_numbered(*lost);
    }
  }

  const LoadCase& case_;
  const WholeState& loaded_;
  const StoredCheckpoint* stored_ = nullptr;
  bool other_layout_ = false;  ///< true if the save had another layout
};

}  // namespace

std::optional<std::size_t> save_loaded(const std::vector<ToldSave>& saves, std::int64_t step) {
  for (std::size_t i = saves.size(); i-- > 0;) {
    if (saves[i].state.step == step) return i;
  }
  return std::nullopt;
}

void judge_load(const LoadCase& load, Findings& findings) { LoadJudge(load, findings).judge(); }

}  // namespace reprise::driver
