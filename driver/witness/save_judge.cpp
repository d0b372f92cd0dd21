#include "driver/witness/save_judge.hpp"

#include <algorithm>
#include <set>

#include "core/base/hash.hpp"

namespace reprise::driver {
namespace {

/// Returns the shortest prefix of `key` that ends before a dot and with which no reported key
/// begins. Returns `key` itself if there is no such prefix.
std::string untold_prefix(const std::string& key, const std::set<std::string>& told) {
  for (auto dot = key.find('.'); dot != std::string::npos; dot = key.find('.', dot + 1)) {
    const auto next = told.lower_bound(key.substr(0, dot));
    if (next == told.end() || !next->starts_with(key.substr(0, dot))) return key.substr(0, dot);
  }
  return key;
}

/// Lists unreported keys as text. Joins keys that have the same untold_prefix(): "optim.groups
/// (23), sched.last_epoch".
std::string listed(const std::vector<std::string>& untold, const std::set<std::string>& told) {
  std::map<std::string, std::vector<std::string>> prefixes;
  for (const auto& key : untold) prefixes[untold_prefix(key, told)].push_back(key);
  std::string text;
  for (const auto& [prefix, keys] : prefixes) {
    text += (text.empty() ? "" : ", ") +
            (keys.size() == 1 ? keys.front() : prefix + " (" + std::to_string(keys.size()) + ")");
  }
  return text;
}

/// True if `key` is the stored key of object `name` with this shard, such as "name/shard_0.1_2.2".
/// `shard` may lack the numbers of shards: "0.1".
bool holds_shard(const std::string& key, const std::string& name, const std::string& shard) {
  const std::string item = name + "/shard_" + shard;
  return key.starts_with(item) && (shard.empty() || key == item || key[item.size()] == '_');
}

class SaveJudge : judged::Finder {
 public:
  SaveJudge(const SaveCase& save, Findings& findings)
      : SaveJudge(save, save.saves[save.number].state, findings) {}

  void judge() {
    const auto& flaw = case_.stored.flaw;
    if (flaw) return void(find(flaw->code, where() + ": " + flaw->text));
    for (const auto& [key, tensor] : live_.tensors) judge_tensor(key, tensor);
    for (const auto& [name, object] : live_.objects) {
      if (object.stored) judge_object(name.first, name.second, object);
    }
    judge_unwitnessed();
  }

 private:
  SaveJudge(const SaveCase& save, const WholeState& live, Findings& findings)
      : Finder(findings, {.text = life_name(live.life) + ": ",
                          .life = live.life,
                          .step = live.step,
                          .phase = "store"}),
        case_(save),
        live_(live) {}

  std::string where() const { return "the save of step " + std::to_string(live_.step); }

  void judge_tensor(const std::string& key, const WholeTensor& live) {
    const std::string what = where() + ": " + key;
    const auto unread = case_.stored.unread.find(key);
    if (unread != case_.stored.unread.end()) {
      find(unread->second.code, key, what + ": " + unread->second.text);
      return;
    }
    const auto found = case_.stored.tensors.find(key);
    if (found == case_.stored.tensors.end()) {
      find(judged::kLostObject, key, what + " is held but not stored")
          .with("digest " + hex(live.digest), kNotStored);
      return;
    }
    const StoredDigest& there = found->second;
    if (there.dtype != live.dtype) {
      const std::string held(name_of(live.dtype));
      const std::string stored(name_of(there.dtype));
      find(Code::kDtypeDrift, key, what + " is " + held + " but stored as " + stored)
          .with(held, stored);
      return;
    }
    if (!(there.shape == live.shape)) {
      find(Code::kShapeDrift, key, what + " has a different shape")
          .with(to_string(live.shape), to_string(there.shape));
      return;
    }
    if (there.digest == live.digest) return;
    const auto other = other_time_of(key, there.digest);
    find(other ? other->first : judged::kBitMismatch, key,
         what + " holds different bits than were live at the save" + (other ? other->second : ""))
        .with("digest " + hex(live.digest), "digest " + hex(there.digest))
        .other_elements = true;
  }

  /// Searches the states at other moments for one in which the tensor had this content. Returns the
  /// code of the failure and a text that names the moment; nothing if there is no such state.
  std::optional<std::pair<FindingCode, std::string>> other_time_of(const std::string& key,
                                                                   std::uint64_t digest) const {
    for (std::size_t i = case_.number; i-- > 0;) {
      const auto& tensors = case_.saves[i].state.tensors;
      const auto tensor = tensors.find(key);
      if (tensor == tensors.end() || tensor->second.digest != digest) continue;
      return std::pair(
          FindingCode(judged::kStaleBytes),
          ": it is what the save of step " + std::to_string(case_.saves[i].state.step) + " found");
    }
    Findings ignored;
    for (const StateMoment when : {StateMoment::kSave, StateMoment::kEnd}) {
      for (const auto& later : states_of(case_.life.ranks, when, live_.life, ignored)) {
        const auto tensor = later.tensors.find(key);
        if (later.step <= live_.step || tensor == later.tensors.end()) continue;
        if (tensor->second.digest != digest) continue;
        return std::pair(FindingCode(judged::kTornSnapshot),
                         ": it is from step " + std::to_string(later.step) +
                             ", which was trained during the save");
      }
    }
    return std::nullopt;
  }

  void judge_object(const std::string& name, const std::string& shard, const WholeObject& live) {
    const auto& objects = case_.stored.objects;
    const auto sharded = std::any_of(objects.begin(), objects.end(), [&](const std::string& key) {
      return holds_shard(key, name, shard);
    });
    const bool plain =
        shard.empty() && (objects.contains(name) || case_.stored.tensors.contains(name));
    if (sharded || plain) return;
    const std::string key = name + (shard.empty() ? "" : "/shard_" + shard);
    find(judged::kLostObject, key, where() + ": " + key + " is held but not stored")
        .with(shown_content(live), kNotStored);
  }

  bool is_excused(const std::string& key) const {
    return key.starts_with("common_state/shard_") ||
           std::any_of(case_.unwitnessed.begin(), case_.unwitnessed.end(),
                       [&](const std::string& prefix) { return is_below(key, prefix); });
  }

  bool told_object(const std::string& key) const {
    const std::string name = key.substr(0, key.rfind("/shard_"));
    if (live_.tensors.contains(name)) return true;
    for (auto at = live_.objects.lower_bound({name, ""});
         at != live_.objects.end() && at->first.first == name; ++at) {
      if (key == name || holds_shard(key, name, at->first.second)) return true;
    }
    return false;
  }

  /// Reports stored keys that no rank described. Either an earlier save left them, or the trainer's
  /// witness files are incomplete.
  void judge_unwitnessed() {
    std::set<std::string> told;
    for (const auto& [key, tensor] : live_.tensors) told.insert(key);
    for (const auto& [name, object] : live_.objects) told.insert(name.first);
    std::vector<std::string> untold;
    const auto add = [&](const std::string& key) {
      if (!told.contains(key) && !is_excused(key)) untold.push_back(key);
    };
    for (const auto& [key, tensor] : case_.stored.tensors) add(key);
    for (const auto& [key, flaw] : case_.stored.unread) add(key);
    for (const auto& key : case_.stored.objects) {
      if (!told_object(key) && !is_excused(key)) {
        const std::string name = key.substr(0, key.rfind("/shard_"));
        untold.push_back(told.contains(name) ? key : name);
      }
    }
    if (untold.empty()) return;
    find(judged::kOracleVacuous, untold.front(),
         where() + " holds " + std::to_string(untold.size()) +
             (untold.size() == 1 ? " key" : " keys") + " that no rank reported: " +
             listed(untold, told) + "; 'unwitnessed' may name tensors that never change")
        .severity = Severity::kInconclusive;
  }

  const SaveCase& case_;
  const WholeState& live_;
};

}  // namespace

bool is_below(const std::string& key, const std::string& prefix) {
  if (prefix.empty() || !key.starts_with(prefix)) return false;
  const bool open = prefix.back() == '.' || prefix.back() == '/';
  return open || key.size() == prefix.size() || key[prefix.size()] == '.' ||
         key[prefix.size()] == '/';
}

void judge_save(const SaveCase& save, Findings& findings) { SaveJudge(save, findings).judge(); }

}  // namespace reprise::driver
