#include "sim/mutants/wrong_async.hpp"

#include <utility>

#include "core/save/leaf_source.hpp"
#include "sim/mutants/asked.hpp"

namespace reprise::sim {
namespace {

/// Treats the leaves' memory as the host's own, which needs no copy before it is written.
class NoCopyYet final : public Device {
 public:
  std::string name() const override { return "the host"; }
  DeviceEvent gather(std::span<const GatherCopy> copies) override {
    later_.insert(later_.end(), copies.begin(), copies.end());
    return {};
  }
  DeviceEvent scatter(std::span<const ScatterCopy> /*copies*/) override { return {}; }
  void wait(DeviceEvent /*event*/) override {
    for (const auto& copy : std::exchange(later_, {})) {
      copy_strided(copy.device, copy.host, copy.extents, copy.element_bytes);
    }
  }

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
  void settle() override { leaves_->settle(); }

 private:
  NoCopyYet host_;
  std::unique_ptr<ContentSource> leaves_;
};

std::unique_ptr<ContentSource> alias_source(Device& /*device*/, std::vector<LeafOrigin> origins) {
  return std::make_unique<AliasSource>(std::move(origins));
}

BatchOrder settle_in_background(BatchWork work) {
  return {[] {},
          [work = std::move(work)] {
            work.settle();
            work.write();
          }};
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

std::vector<ProtocolStep> nothing(SaveQueue& /*saves*/) { return {}; }

/// An allocation may have moved more than once; the latest move is last.
std::byte* where_it_was(std::byte* data, std::span<const Moved> moved) {
  for (auto move = moved.rbegin(); move != moved.rend(); ++move) {
    if (data < move->now || data >= move->now + move->bytes) continue;
    return move->old.get() + (data - move->now);
  }
  return data;
}

}  // namespace

void alias_host_tensors(Policies& policies) {
  policies.save.source = asked<alias_source>;
  policies.save.stage.order = asked<settle_in_background>;
}
void go_on_while_staging(Policies& policies) {
  policies.save.stage.order = asked<settle_in_background>;
}
void write_while_staging(Policies& policies) { policies.save.stage.order = asked<write_first>; }
void reuse_staging_early(Policies& policies) { policies.save.stage.free_again = asked<always>; }
void name_live_step(Policies& policies) { policies.tracker_step = asked<live_step>; }
void never_poll(Policies& policies) { policies.iterated = asked<no_poll>; }
void exit_at_once(Policies& policies) { policies.shutdown = asked<nothing>; }
void keep_handles(Policies& policies) { policies.job.storage = asked<where_it_was>; }

}  // namespace reprise::sim
