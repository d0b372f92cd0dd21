#include "driver/witness/command_judge.hpp"

#include "core/base/hash.hpp"

namespace reprise::driver {
namespace {

/// Compares the checkpoint that the command left with the checkpoint of the same step that existed
/// before the command ran.
class CommandJudge : judged::Finder {
 public:
  CommandJudge(std::size_t number, const LifeEvidence& life, Findings& findings)
      : Finder(findings, {.text = life_name(number) + ": ",
                          .life = number,
                          .step = life.plan.command->leaves,
                          .phase = "command"}),
        life_(life) {}

  void judge() {
    if (!life_.complaint.empty()) {
      find(judged::kVerdictDisagreement, life_.complaint).at_deadline =
          !life_.ends.empty() && life_.ends.front().timed_out;
    }
    const auto& step = life_.plan.command->leaves;
    if (!step) return;
    const StoredCheckpoint* left = checkpoint_of(life_.after, *step);
    if (left == nullptr) {
      find(judged::kCommitMissing,
           "the command left no checkpoint of step " + std::to_string(*step))
          .with("a checkpoint of step " + std::to_string(*step), "none");
      return;
    }
    if (left->flaw) {
      find(left->flaw->code, "what the command left: " + left->flaw->text);
      return;
    }
    for (const auto& [key, flaw] : left->unread) find(flaw.code, key, key + ": " + flaw.text);
    const StoredCheckpoint* before = checkpoint_of(life_.before, *step);
    if (before != nullptr && !before->flaw) judge_kept(*before, *left);
  }

 private:
  void judge_kept(const StoredCheckpoint& before, const StoredCheckpoint& left) {
    for (const auto& [key, tensor] : before.tensors) {
      const auto there = left.tensors.find(key);
      if (there != left.tensors.end()) {
        judge_tensor(key, tensor, there->second);
      } else if (!left.unread.contains(key)) {
        find(judged::kLostObject, key, "the command lost " + key)
            .with("digest " + hex(tensor.digest), kNotStored);
      }
    }
    for (const auto& key : before.objects) {
      if (left.objects.contains(key)) continue;
      find(judged::kLostObject, key, "the command lost " + key).with("stored", kNotStored);
    }
  }

  void judge_tensor(const std::string& key, const StoredDigest& before, const StoredDigest& left) {
    if (left.dtype != before.dtype) {
      find(Code::kDtypeDrift, key, "the command gave " + key + " another dtype")
          .with(std::string(name_of(before.dtype)), std::string(name_of(left.dtype)));
    } else if (!(left.shape == before.shape)) {
      find(Code::kShapeDrift, key, "the command gave " + key + " another shape")
          .with(to_string(before.shape), to_string(left.shape));
    } else if (left.digest != before.digest) {
      find(judged::kBitMismatch, key, "the command changed elements of " + key)
          .with("digest " + hex(before.digest), "digest " + hex(left.digest));
    }
  }

  const LifeEvidence& life_;
};

}  // namespace

void judge_command(std::size_t number, const LifeEvidence& life, Findings& findings) {
  CommandJudge(number, life, findings).judge();
}

}  // namespace reprise::driver
