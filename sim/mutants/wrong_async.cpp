#include <span>
#include <utility>
#include <vector>

#include "core/base/codes.hpp"
#include "core/save/leaf_source.hpp"
#include "properties/finding_code.hpp"
#include "sim/mutants/asked.hpp"
#include "sim/mutants/registration.hpp"

namespace reprise::sim {
namespace {

/// Treats the leaves' memory as host memory. A gather only records its copies.
class NoCopyYet final : public Device {
 public:
  std::string name() const override { return "the host"; }
  DeviceEvent gather(std::span<const GatherCopy> copies) override {
    later_.insert(later_.end(), copies.begin(), copies.end());
    return {};
  }
  DeviceEvent scatter(std::span<const ScatterCopy> /*copies*/) override { return {}; }
  void wait(DeviceEvent /*event*/) override {}

  std::vector<GatherCopy> take_recorded() { return std::exchange(later_, {}); }

 private:
  std::vector<GatherCopy> later_;
};

class AliasSource final : public ContentSource {
 public:
  explicit AliasSource(std::vector<LeafOrigin> origins)
      : leaves_(leaf_source(host_, std::move(origins))) {}

  void fill(std::size_t item, std::int64_t begin, std::int64_t end, MutableByteSpan out) override {
    leaves_->fill(item, begin, end, out);
  }
  /// Makes the copies when whoever writes the batch waits for them.
  std::function<void()> start() override {
    return [later = host_.take_recorded()] {
      for (const auto& copy : later) {
        copy_strided(copy.device, copy.host, copy.extents, copy.element_bytes);
      }
    };
  }
  void drain() override {}

 private:
  NoCopyYet host_;
  std::unique_ptr<ContentSource> leaves_;
};

std::unique_ptr<ContentSource> alias_source(Device& /*device*/, std::vector<LeafOrigin> origins) {
  return std::make_unique<AliasSource>(std::move(origins));
}

const Registration kCpuTensorAliased({
    "cpu-tensor-aliased",
    "The snapshot does not copy tensors that are already in host memory, so the save writes "
    "whatever they hold by the time it reads them.",
    "SaveSeams::source",
    "a step between the start of a save and its writes",
    {judged::kTornSnapshot},
    [](Policies& policies) { policies.save.source = asked<alias_source>; },
});

void no_wait(SaveQueue& /*saves*/) {}

const Registration kStagingNotAwaited({
    "staging-not-awaited",
    "Nobody waits for the copies into the staging buffer before the optimizer step, so the save "
    "copies state that has already changed.",
    "Policies::before_update",
    "a step between the start of a save and its writes",
    {judged::kTornSnapshot},
    [](Policies& policies) { policies.before_update = asked<no_wait>; },
});

BatchOrder write_first(BatchWork work) {
  return {[] {}, std::move(work.sum),
          [write = std::move(work.write), drain = std::move(work.drain)] {
            write();
            drain();
          }};
}

const Registration kStagingNotAwaitedNever({
    "staging-not-awaited/never",
    "Same as staging-not-awaited, but the background writer does not wait for the copies either "
    "and writes the buffer's old content.",
    "SaveSeams::stage.order",
    "a save that returns before its copies are done, and a batch that is written before the job "
    "waits for them",
    {judged::kTornSnapshot},
    [](Policies& policies) { policies.save.stage.order = asked<write_first>; },
});

bool always(Task& /*writing*/) { return true; }

const Registration kStagingReusedEarly({
    "staging-reused-early",
    "A staging buffer is refilled before its previous content has been written.",
    "SaveSeams::stage.free_again",
    "more data than one batch, and a writer that is slower than staging",
    {Code::kTrackerDangling, Code::kTornFile},
    [](Policies& policies) { policies.save.stage.free_again = asked<always>; },
});

Step live_step(Step /*begun*/, Step now) { return now; }

const Registration kFinalizeReadsLiveStep({
    "finalize-reads-live-step",
    "The tracker gets the step at which the save ends, not the step at which it began.",
    "Policies::tracker_step (SaveSeams::commit)",
    "a step between the start of a save and its commit",
    {Code::kTrackerDangling},
    [](Policies& policies) { policies.tracker_step = asked<live_step>; },
});

void no_poll(SaveQueue& /*saves*/) {}

const Registration kCommitNotPolled({
    "commit-not-polled",
    "The training loop never polls a save in flight. The save commits only when the next one "
    "begins or the job exits, and a crash before that loses it.",
    "Policies::iterated",
    "an async save that finishes writing, and a crash before the next save",
    {judged::kCommitMissing, judged::kVerdictDisagreement},
    [](Policies& policies) { policies.iterated = asked<no_poll>; },
});

void no_end(SaveQueue& /*saves*/) {}

const Registration kLastSaveKilled({
    "last-save-killed",
    "The job exits while its last save is still in flight.",
    "Policies::shutdown",
    "an async save that nothing else waits for",
    {judged::kCommitMissing},
    [](Policies& policies) { policies.shutdown = asked<no_end>; },
});

/// Returns the address that `data` had before its memory last moved. Searches the latest moves
/// first, because an allocation may have moved more than once.
std::byte* where_it_was(std::byte* data, std::span<const Moved> moved) {
  for (auto move = moved.rbegin(); move != moved.rend(); ++move) {
    if (data < move->now || data >= move->now + move->bytes) continue;
    return move->old.get() + (data - move->now);
  }
  return data;
}

const Registration kIpcPointerStale({
    "ipc-pointer-stale",
    "Handles to tensors are cached by name and shape. After a tensor is reallocated, the save "
    "still reads its old memory.",
    "JobPolicy::storage",
    "two saves, with tensors reallocated in between",
    {judged::kStaleBytes},
    [](Policies& policies) { policies.job.storage = asked<where_it_was>; },
});

}  // namespace
}  // namespace reprise::sim
