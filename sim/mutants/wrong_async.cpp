#include <span>
#include <utility>
#include <vector>

#include "core/base/codes.hpp"
#include "core/save/leaf_source.hpp"
#include "properties/ruling_code.hpp"
#include "sim/mutants/asked.hpp"
#include "sim/mutants/mutant_tables.hpp"

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
  void settle() override {}

 private:
  NoCopyYet host_;
  std::unique_ptr<ContentSource> leaves_;
};

std::unique_ptr<ContentSource> alias_source(Device& /*device*/, std::vector<LeafOrigin> origins) {
  return std::make_unique<AliasSource>(std::move(origins));
}

BatchOrder write_first(BatchWork work) {
  return {[] {},
          [work = std::move(work)] {
            work.write();
            work.settle();
          }};
}

bool always(Task& /*writing*/) { return true; }

Step live_step(Step /*begun*/, Step now) { return now; }

void no_poll(SaveQueue& /*saves*/) {}

void no_end(SaveQueue& /*saves*/) {}

void no_wait(SaveQueue& /*saves*/) {}

/// Returns the address that `data` had before its memory last moved. Searches the latest moves
/// first, because an allocation may have moved more than once.
std::byte* where_it_was(std::byte* data, std::span<const Moved> moved) {
  for (auto move = moved.rbegin(); move != moved.rend(); ++move) {
    if (data < move->now || data >= move->now + move->bytes) continue;
    return move->old.get() + (data - move->now);
  }
  return data;
}

// --- mutants -------------------------------------------------------------------------------------

/// Makes no snapshot: a save reads a tensor only when it writes the tensor to the file.
void alias_host_tensors(Policies& policies) { policies.save.source = asked<alias_source>; }
/// Lets only the background task wait for the copies into staging. The job changes its state
/// without waiting.
void go_on_while_staging(Policies& policies) { policies.before_update = asked<no_wait>; }
/// Writes a batch before its copies are complete.
void write_while_staging(Policies& policies) { policies.save.stage.order = asked<write_first>; }
/// Reuses a batch's memory before the batch is written.
void reuse_staging_early(Policies& policies) { policies.save.stage.free_again = asked<always>; }
/// Writes into the tracker the step that the job has reached when the save ends.
void name_live_step(Policies& policies) { policies.tracker_step = asked<live_step>; }
/// Does not poll saves during training. A save is then committed only by the next save or at the
/// end of the job.
void never_poll(Policies& policies) { policies.iterated = asked<no_poll>; }
/// Abandons saves in flight when the job ends.
void exit_at_once(Policies& policies) { policies.shutdown = asked<no_end>; }
/// Saves tensors from the addresses that they had before they moved.
void keep_handles(Policies& policies) { policies.job.storage = asked<where_it_was>; }

}  // namespace

std::span<const Mutant> async_mutants() {
  static const std::vector<Mutant> all = {
      {"commit-not-polled",
       "The training loop never polls a save in flight. The save commits only when the next one "
       "begins or the job exits, and a crash before that loses it.",
       "Policies::iterated",
       "an async save that finishes writing, and a crash before the next save",
       {judged::kCommitMissing, judged::kVerdictDisagreement},
       never_poll},
      {"cpu-tensor-aliased",
       "The snapshot does not copy tensors that are already in host memory, so the save writes "
       "whatever they hold by the time it reads them.",
       "SaveSeams::source",
       "a step between the start of a save and its writes",
       {judged::kTornSnapshot},
       alias_host_tensors},
      {"finalize-reads-live-step",
       "The tracker gets the step at which the save ends, not the step at which it began.",
       "Policies::tracker_step (SaveSeams::commit)",
       "a step between the start of a save and its commit",
       {Code::kTrackerDangling},
       name_live_step},
      {"ipc-pointer-stale",
       "Handles to tensors are cached by name and shape. After a tensor is reallocated, the save "
       "still reads its old memory.",
       "JobPolicy::storage",
       "two saves, with tensors reallocated in between",
       {judged::kStaleBytes},
       keep_handles},
      {"last-save-killed",
       "The job exits while its last save is still in flight.",
       "Policies::shutdown",
       "an async save that nothing else waits for",
       {judged::kCommitMissing},
       exit_at_once},
      {"staging-not-awaited",
       "Nobody waits for the copies into the staging buffer before the optimizer step, so the save "
       "copies state that has already changed.",
       "Policies::before_update",
       "a step between the start of a save and its writes",
       {judged::kTornSnapshot},
       go_on_while_staging},
      {"staging-not-awaited/never",
       "Same as staging-not-awaited, but the background writer does not wait for the copies either "
       "and writes the buffer's old content.",
       "SaveSeams::stage.order",
       "a batch that is written before the job waits for its copies",
       {judged::kTornSnapshot},
       write_while_staging},
      {"staging-reused-early",
       "A staging buffer is refilled before its previous content has been written.",
       "SaveSeams::stage.free_again",
       "more data than one batch, and a writer that is slower than staging",
       {Code::kTrackerDangling, Code::kTornFile},
       reuse_staging_early},
  };
  return all;
}

}  // namespace reprise::sim
