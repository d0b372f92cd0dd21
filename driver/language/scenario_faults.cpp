#include "driver/language/scenario_faults.hpp"

#include <array>
#include <string_view>

#include "core/save/commit_protocol.hpp"
#include "core/save/phases.hpp"
#include "core/save/retention.hpp"
#include "reprise/error.hpp"
#include "sim/faults/checkpoint_file.hpp"

namespace reprise::driver {
namespace {

constexpr std::int64_t kHighestRank = 1023;
constexpr std::int64_t kFaultCountMax = 1'000'000'000;
constexpr std::uint64_t kNanosecondsOfMs = 1'000'000;
constexpr std::array<std::string_view, 3> kFires = {"yes", "no", "maybe"};

std::int32_t read_rank(YamlMap& map) {
  return static_cast<std::int32_t>(map.integer_in("rank", 0, kHighestRank).value_or(0));
}

std::optional<sim::FileKind> read_file_kind(YamlMap& map, const char* key) {
  const auto name = map.word(key, sim::file_kind_names());
  return name ? sim::file_kind_named(*name) : std::nullopt;
}

void read_place(YamlMap& map, FaultAction& fault) {
  std::vector<std::string_view> phases(phases_of_save().begin(), phases_of_save().end());
  phases.insert(phases.end(), phases_of_load().begin(), phases_of_load().end());
  phases.emplace_back("take");
  std::vector<std::string_view> steps(kCommitSteps.begin(), kCommitSteps.end());
  steps.insert(steps.end(), kPrepareSteps.begin(), kPrepareSteps.end());
  steps.insert(steps.end(), kRetentionSteps.begin(), kRetentionSteps.end());
  fault.phase = map.word("phase", phases).value_or("");
  fault.step = map.word("step", steps).value_or("");
  if (const auto moment = map.word("moment", sim::moment_names())) {
    fault.moment = sim::moment_named(*moment).value();
  }
  fault.nth = map.integer_in("nth", 0, kFaultCountMax).value_or(0);
  fault.file = read_file_kind(map, "file");
}

/// Returns the names of all faults except bad results, which a scenario file describes with a
/// separate step.
std::vector<std::string_view> world_faults() {
  auto names = sim::fault_names();
  std::erase(names, sim::name_of(sim::FaultKind::kBadResult));
  return names;
}

void read_bad_ranks(YamlMap& map, const IncarnationPlan& plan, BadResultAction& bad) {
  bad.ranks = {read_rank(map)};
  const auto ranks = map.integers("ranks");
  if (!map.has("ranks")) return require_member(map, "rank", bad.ranks.front(), plan);
  if (map.has("rank")) map.fail(map.node("ranks"), "has both rank and ranks");
  bad.ranks.clear();
  for (const auto rank : ranks) {
    require_member(map, "ranks", rank, plan);
    bad.ranks.push_back(static_cast<std::int32_t>(rank));
  }
  if (bad.ranks.empty()) map.fail(map.node("ranks"), "names no rank");
}

}  // namespace

void require_member(YamlMap& map, const char* key, std::int64_t rank, const IncarnationPlan& plan) {
  const bool fits = rank >= 0 && rank <= kHighestRank;
  if (fits && plan.has_member(static_cast<std::int32_t>(rank))) return;
  map.fail(map.node(map.has(key) ? key : "kind"),
           "plans something at rank " + std::to_string(rank) +
               ", which is not a member of this life's job; its members are " +
               plan.members_text());
}

BadResultAction read_bad_result(YamlMap map, const IncarnationPlan& plan) {
  BadResultAction bad;
  map.attempt([&] {
    const auto kind = map.needed("kind", map.word("kind", sim::result_fault_names()));
    bad.kind = sim::result_fault_named(kind).value();
  });
  map.attempt([&] { read_bad_ranks(map, plan, bad); });
  bad.fatal = map.flag("fatal").value_or(true);
  if (const auto value = map.word("value", sim::bad_values())) {
    map.attempt([&] {
      if (!bad.fatal)
        map.fail(map.node("value"), "gives a value for a spike, which has a fixed one");
    });
    bad.value = sim::bad_value_named(*value).value();
  }
  bad.call = map.integer_in("call", 0, kFaultCountMax).value_or(0);
  bad.run = map.integer_in("run", 0, kFaultCountMax).value_or(0);
  map.refuse_unknown();
  return bad;
}

FaultAction read_fault(YamlMap map, const IncarnationPlan& plan) {
  FaultAction fault;
  map.attempt([&] {
    fault.kind = sim::fault_named(map.needed("kind", map.word("kind", world_faults()))).value();
  });
  fault.rank = read_rank(map);
  map.attempt([&] { require_member(map, "rank", fault.rank, plan); });
  read_place(map, fault);
  fault.delay_ms = map.integer_in("delay_ms", 0, kFaultCountMax).value_or(0);
  fault.bit = map.integer_in("bit", 0, kFaultCountMax).value_or(0);
  const std::string fires = map.word("fires", kFires).value_or("yes");
  fault.fires = fires == "yes" ? Fires::kYes : fires == "no" ? Fires::kNo : Fires::kMaybe;
  map.refuse_unknown();
  try {
    sim::require_possible(spec_of(fault));
  } catch (const Error& error) {
    map.fail(map.node("kind"), "can't be: " + error.message());
  }
  return fault;
}

DamageAction read_damage(YamlMap map) {
  DamageAction damage;
  map.attempt([&] { damage.what = map.needed("what", read_file_kind(map, "what")); });
  damage.rank = read_rank(map);
  damage.step = map.integer_in("step", 0, kFaultCountMax);
  damage.byte = map.integer_in("byte", -kFaultCountMax, kFaultCountMax).value_or(0);
  damage.bit = static_cast<std::int32_t>(map.integer_in("bit", 0, 7).value_or(0));
  damage.cut = map.integer_in("cut", 1, kFaultCountMax);
  damage.remove = map.flag("remove").value_or(false);
  damage.from = map.integer_in("from", 0, kFaultCountMax);
  damage.keys = map.text("keys").value_or("");
  map.refuse_unknown();
  const bool flips = map.has("byte") || map.has("bit");
  if (int{flips} + int{damage.cut.has_value()} + int{damage.remove} + int{damage.from.has_value()} >
      1) {
    map.fail(map.node("what"), "has more than one of byte with bit, cut, remove, from; give one");
  }
  if (damage.from && damage.what != sim::FileKind::kPayload) {
    map.fail(map.node("from"),
             "takes tensors from another checkpoint, but only payload has tensors");
  }
  if (map.has("keys") && !damage.from) {
    map.fail(map.node("keys"), "names keys, but no checkpoint that their tensors come from");
  }
  return damage;
}

sim::FaultSpec spec_of(const FaultAction& fault) {
  sim::FaultSpec spec;
  spec.kind = fault.kind;
  spec.place = {.rank = GlobalRank{fault.rank},
                .phase = fault.phase,
                .step = fault.step,
                .moment = fault.moment,
                .nth = fault.nth,
                .file = fault.file};
  spec.delay_ns = static_cast<std::uint64_t>(fault.delay_ms) * kNanosecondsOfMs;
  spec.bit = static_cast<std::uint64_t>(fault.bit);
  return spec;
}

std::vector<sim::FaultSpec> specs_of(const BadResultAction& bad) {
  std::vector<sim::FaultSpec> specs;
  for (const auto rank : bad.ranks) {
    sim::FaultSpec spec;
    spec.kind = sim::FaultKind::kBadResult;
    spec.place.rank = GlobalRank{rank};
    spec.result.kind = bad.kind;
    spec.result.fatal = bad.fatal;
    spec.result.value = bad.value;
    spec.result.call = static_cast<int>(bad.call);
    spec.result.run = static_cast<int>(bad.run);
    specs.push_back(spec);
  }
  return specs;
}

}  // namespace reprise::driver
