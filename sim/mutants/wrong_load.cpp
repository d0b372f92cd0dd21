#include <algorithm>
#include <bit>
#include <span>
#include <vector>

#include "core/base/codes.hpp"
#include "core/load/checksum_vote.hpp"
#include "properties/finding_code.hpp"
#include "sim/job/optimizer/slots.hpp"
#include "sim/mutants/asked.hpp"
#include "sim/mutants/optimizer_slots.hpp"
#include "sim/mutants/registration.hpp"

namespace reprise::sim {
namespace {

// --- requests of a load -------------------------------------------------------------------------

void lazy_state_template(Policies& policies) { policies.job.requested = asked<without_moments>; }

const Registration kLazyStateTemplate({
    "lazy-state-template",
    "A new optimizer has no moments yet, so the load template does not ask for them and they "
    "start from zero.",
    "JobPolicy::requested",
    "any job",
    {judged::kKeysetAsymmetry},
    lazy_state_template,
});

StrictVerdict never_refused(Strictness mode, const KeyMismatch& keys) {
  StrictVerdict verdict = judge(mode, keys);
  return verdict.refuse ? judge(Strictness::kIgnoreAll, keys) : verdict;
}

const Registration kLazyStateTemplateUnreported({
    "lazy-state-template/unreported",
    "Same as lazy-state-template, but the load does not report the keys that nobody asked for.",
    "JobPolicy::requested, LoadSeams::judge_strictness",
    "any job",
    {judged::kKeysetAsymmetry},
    [](Policies& policies) {
      lazy_state_template(policies);
      policies.load.judge_strictness = asked<never_refused>;
    },
});

StateDict first_bucket(StateDict state) {
  std::erase_if(state.tensors, [](const TensorLeaf& leaf) {
    return leaf.key.find(".bucket_idx_") != std::string::npos &&
           leaf.key.find(".bucket_idx_0.") == std::string::npos;
  });
  return state;
}

const Registration kSubgroupsIgnored({
    "subgroups-ignored",
    "If optimizer state spans several buckets, only the first is loaded.",
    "JobPolicy::requested",
    "dp_reshardable with 2 buckets",
    {judged::kKeysetAsymmetry},
    [](Policies& policies) { policies.job.requested = asked<first_bucket>; },
});

StateDict renamed_norm(StateDict state) {
  constexpr std::string_view kOld = "final_layernorm";
  for (TensorLeaf& leaf : state.tensors) {
    const auto at = leaf.key.find(kOld);
    if (at != std::string::npos) leaf.key.replace(at, kOld.size(), "final_norm");
  }
  return state;
}

const Registration kStrictFallbackSwallowed({
    "strict-fallback-swallowed",
    "A load that fails because of a renamed key is retried without strictness, and the error is "
    "dropped, so the weight keeps its initial value.",
    "JobPolicy::requested, LoadSeams::judge_strictness",
    "any job",
    {judged::kKeysetAsymmetry},
    [](Policies& policies) {
      policies.job.requested = asked<renamed_norm>;
      policies.load.judge_strictness = asked<never_refused>;
    },
});

StateDict bf16_masters(StateDict state) {
  for (TensorLeaf& leaf : state.tensors) {
    if (holds_slot(leaf.key, Slot::kMaster)) leaf.dtype = DType::kBFloat16;
  }
  return state;
}

const Registration kDtypeCastOnLoadTemplate({
    "dtype-cast-on-load/template",
    "The load template asks for the master weights in bf16.",
    "JobPolicy::requested",
    "any job",
    {Code::kDtypeDrift},
    [](Policies& policies) { policies.job.requested = asked<bf16_masters>; },
});

SharedReads nothing_shared(std::span<const AlikeReaders> /*classes*/, std::uint64_t /*room*/) {
  return {};
}

const Registration kLoadReadByEach({
    "load-read-by-each",
    "Each replica reads the same records from storage, although one read could be shared "
    "between them.",
    "LoadSeams::share",
    "records that several ranks need, in a job that reads each record once",
    {judged::kReadTwice},
    [](Policies& policies) { policies.load.share = asked<nothing_shared>; },
});

// --- from loaded state to the next step ---------------------------------------------------------

void cast_masters(Family& family) {
  Array<float>& masters = family.optimizer->slot(Slot::kMaster);
  auto values = masters.values();
  for (float& master : values) master = from_bf16(to_bf16(master));
  masters.assign(values);
}

std::vector<RefreshStep> with_cast(const Loaded& loaded) {
  auto steps = refresh_protocol(loaded);
  steps.insert(steps.begin() + 1, {"cast", [loaded] { loaded.for_each_family(cast_masters); }});
  return steps;
}

const Registration kDtypeCastOnLoad({
    "dtype-cast-on-load",
    "The load template holds the optimizer's master weights in bf16, and the copy casts to it "
    "without an error.",
    "JobPolicy::refresh",
    "any job",
    {judged::kBitMismatch, passed_on::kStaleDerived},
    [](Policies& policies) { policies.job.refresh = asked<with_cast>; },
});

std::vector<RefreshStep> without(std::vector<RefreshStep> steps, std::string_view name) {
  std::erase_if(steps, [name](const RefreshStep& step) { return step.name == name; });
  return steps;
}

std::vector<RefreshStep> without_install(const Loaded& loaded) {
  return without(without(refresh_protocol(loaded), "install_own"), "gather");
}

const Registration kComputeWeightsNotInstalled({
    "compute-weights-not-installed",
    "The load fills the stored weights but skips the hook that copies them to the compute "
    "weights, so the first forward pass uses random weights.",
    "JobPolicy::refresh (install_own, gather)",
    "any job",
    {passed_on::kStaleDerived},
    [](Policies& policies) { policies.job.refresh = asked<without_install>; },
});

std::vector<RefreshStep> without_gather(const Loaded& loaded) {
  return without(refresh_protocol(loaded), "gather");
}

const Registration kPostLoadGatherNoop({
    "post-load-gather-noop",
    "After a load, each rank has only its own shard. The gather that should distribute the "
    "shards is called with an empty list.",
    "JobPolicy::refresh (gather)",
    "dp 2",
    {passed_on::kStaleDerived},
    [](Policies& policies) { policies.job.refresh = asked<without_gather>; },
});

/// Fills all masters with start values, as if the load had not reached them.
void start_masters(Family& family) {
  constexpr std::uint64_t kOtherSeed = 0x0ff10ad;
  for (std::size_t p = 0; p < family.parameters.size(); ++p) {
    family.optimizer->start_masters(family.parameters[p].spec, p, kOtherSeed);
  }
}

std::vector<RefreshStep> with_stale_masters(const Loaded& loaded) {
  auto steps = refresh_protocol(loaded);
  steps.push_back({"offloaded_masters", [loaded] { loaded.for_each_family(start_masters); }});
  return steps;
}

const Registration kFp32MasterStaleOffload({
    "fp32-master-stale-offload",
    "With several levels of fp32 masters, the load refreshes only the first. The optimizer step "
    "uses another level and overwrites the loaded weights with old values.",
    "JobPolicy::refresh",
    "any job",
    {passed_on::kStaleDerived},
    [](Policies& policies) { policies.job.refresh = asked<with_stale_masters>; },
});

std::optional<Step> of_the_leader(const TrackedSteps& tracked, GroupRank leader) {
  return tracked.at(static_cast<std::size_t>(leader.value));
}

const Registration kTrackerOfLeaderAlone({
    "tracker-of-leader-alone",
    "The load uses the iteration in the coordinator's tracker, although another rank's tracker "
    "names a newer one.",
    "LoadSeams::tracked",
    "a coordinator whose store lags behind",
    {judged::kStaleBytes, judged::kVerdictDisagreement},
    [](Policies& policies) { policies.load.tracked = asked<of_the_leader>; },
});

FileChecksums counted_here(std::span<const FileChecksums> of_ranks, GroupRank self) {
  return of_ranks[static_cast<std::size_t>(self.value)];
}

const Registration kChecksumsToldAlone({
    "checksums-told-alone",
    "Each rank decides from the records that it reads itself whether a file was written without "
    "checksums, although other records of the same file have them.",
    "LoadSeams::checksums",
    "verified checksums; a file from which one rank reads only records without checksums",
    {judged::kStaleBytes, judged::kVerdictDisagreement},
    [](Policies& policies) { policies.load.checksums = asked<counted_here>; },
});

GroupRank first_rank(const Communicator& /*group*/) { return {0}; }

const Registration kOwnMetadataOfFirstRank({
    "own-metadata-of-first-rank",
    "Each rank wrote its own metadata, but every rank loads what the first rank's metadata "
    "describes.",
    "LoadSeams::own_metadata",
    "2 ranks that saved without collectives and have different values",
    {judged::kRngStreamCollapse},
    [](Policies& policies) { policies.load.own_metadata = asked<first_rank>; },
});

// --- buckets without padding, and ranges that include padding -----------------------------------

/// Returns the values of the slot `which` in all buckets, without padding. They are gathered from
/// all ranks of the group, so every rank gets the same values.
std::vector<float> gathered(OptimizerShard& shard, Slot which, Communicator& group) {
  const auto all = group.all_gather(shard.slot(which).bytes());
  std::vector<float> buckets;
  std::vector<std::size_t> taken(all.size());
  for (const Bucket& bucket : shard.table().buckets) {
    std::vector<float> padded;
    for (std::size_t r = 0; r < all.size(); ++r) {
      for (std::int64_t i = bucket.part(static_cast<std::int32_t>(r)).length(); i > 0; --i) {
        const auto bits = load_le<std::uint32_t>(ByteSpan(all[r]).subspan(taken[r]));
        padded.push_back(std::bit_cast<float>(bits));
        taken[r] += sizeof(float);
      }
    }
    buckets.insert(buckets.end(), padded.begin(), padded.begin() + bucket.unpadded);
  }
  return buckets;
}

/// Returns the index at which the parameter begins if the buckets are concatenated with their
/// padding.
std::int64_t begin_with_padding(const std::vector<Bucket>& buckets, std::size_t parameter) {
  std::int64_t begin = 0;
  for (const Bucket& bucket : buckets) {
    for (const BucketEntry& entry : bucket.entries) {
      if (entry.parameter == parameter) return begin + entry.range.begin;
    }
    begin += bucket.padded;
  }
  return begin;
}

enum class PastTheEnd : std::uint8_t { kStays, kZeros };

void take_slot(Family& family, Slot which, Communicator& group, PastTheEnd rule) {
  const std::vector<float> all = gathered(*family.foreign, which, group);
  const auto& buckets = family.foreign->table().buckets;
  auto arena = family.optimizer->slot(which).values();
  for (std::size_t p = 0; p < family.parameters.size(); ++p) {
    const Dims& shape = family.parameters[p].tensor.shape;
    const Share& share = family.optimizer->share(p);
    auto* own = reinterpret_cast<std::byte*>(arena.data() + share.begin);
    std::vector<float> whole(static_cast<std::size_t>(volume(shape)));
    auto* bytes = reinterpret_cast<std::byte*>(whole.data());
    if (rule == PastTheEnd::kStays) {
      host_processor().copy(unpacking(shape, share.boxes, own, bytes, sizeof(float)));
    }
    const auto from = static_cast<std::size_t>(begin_with_padding(buckets, p));
    for (std::size_t i = 0; i < whole.size() && from + i < all.size(); ++i)
      whole[i] = all[from + i];
    host_processor().copy(packing(shape, share.boxes, bytes, own, sizeof(float)));
  }
  family.optimizer->slot(which).assign(arena);
}

void convert_wrongly(const Loaded& loaded, PastTheEnd rule) {
  loaded.for_each_family([rule](Family& family) {
    if (!family.foreign) return;
    for (const Slot which : kSlots) take_slot(family, which, *family.group, rule);
    family.foreign.reset();
  });
}

std::vector<RefreshStep> wrong_conversion(const Loaded& loaded, PastTheEnd rule) {
  auto steps = refresh_protocol(loaded);
  for (RefreshStep& step : steps) {
    if (step.name == "convert") step.run = [loaded, rule] { convert_wrongly(loaded, rule); };
  }
  return steps;
}

std::vector<RefreshStep> padding_ignored(const Loaded& loaded) {
  return wrong_conversion(loaded, PastTheEnd::kStays);
}

const Registration kBucketPaddingOffset({
    "bucket-padding-offset",
    "When a dp_reshardable checkpoint is loaded under another sharding, offsets that include "
    "the bucket padding are applied to state from which the padding was removed.",
    "JobPolicy::refresh (convert)",
    "dp_reshardable with 2 padded buckets, loaded under another sharding",
    {passed_on::kStaleDerived},
    [](Policies& policies) { policies.job.refresh = asked<padding_ignored>; },
});

std::vector<RefreshStep> padding_ignored_unchecked(const Loaded& loaded) {
  return without(padding_ignored(loaded), "check_masters");
}

const Registration kBucketPaddingOffsetUnchecked({
    "bucket-padding-offset/unchecked",
    "Same as bucket-padding-offset, but the load no longer compares the fp32 masters with the "
    "weights.",
    "JobPolicy::refresh (convert, check_masters)",
    "dp_reshardable with 2 padded buckets, loaded under another sharding",
    {judged::kShiftedBytes},
    [](Policies& policies) { policies.job.refresh = asked<padding_ignored_unchecked>; },
});

std::vector<RefreshStep> padding_ignored_with_zeros(const Loaded& loaded) {
  return without(wrong_conversion(loaded, PastTheEnd::kZeros), "check_masters");
}

const Registration kBucketPaddingOffsetPadZeros({
    "bucket-padding-offset/pad-zeros",
    "Same as bucket-padding-offset, but the bounds check is off and missing elements are filled "
    "with zeros.",
    "JobPolicy::refresh (convert, check_masters)",
    "dp_reshardable with 2 padded buckets, loaded under another sharding",
    {judged::kShiftedBytes},
    [](Policies& policies) { policies.job.refresh = asked<padding_ignored_with_zeros>; },
});

}  // namespace
}  // namespace reprise::sim
