#include "driver/language/scenario_faults.hpp"

#include <array>
#include <string_view>

#include "core/save/commit_protocol.hpp"
#include "core/save/phases.hpp"
#include "core/save/retention.hpp"
#include "driver/language/scenario_layout.hpp"
#include "reprise/error.hpp"
#include "sim/faults/checkpoint_file.hpp"

namespace reprise::driver {
namespace {

constexpr std::int64_t kHighestRank = 1023;
constexpr std::int64_t kFaultCountMax = 1'000'000'000;
constexpr std::uint64_t kNanosecondsOfMs = 1'000'000;

Choice<sim::FileKind> file_kinds() { return by_name(sim::file_kind_names(), sim::file_kind_named); }

std::vector<std::string_view> phases() {
  std::vector<std::string_view> names(phases_of_save().begin(), phases_of_save().end());
  names.insert(names.end(), phases_of_load().begin(), phases_of_load().end());
  names.emplace_back("take");
  return names;
}

std::vector<std::string_view> protocol_steps() {
  std::vector<std::string_view> names(kCommitSteps.begin(), kCommitSteps.end());
  names.insert(names.end(), kPrepareSteps.begin(), kPrepareSteps.end());
  names.insert(names.end(), kRetentionSteps.begin(), kRetentionSteps.end());
  return names;
}

/// Returns the names of all faults except bad results, which a scenario file describes with a
/// separate step.
std::vector<std::string_view> world_faults() {
  auto names = sim::fault_names();
  std::erase(names, sim::name_of(sim::FaultKind::kBadResult));
  return names;
}

/// Reads `rank` or `ranks` of a bad result.
void read_bad_ranks(YamlMap& map, const LifePlan& plan, BadResultAction& bad) {
  const auto rank = map.integer_in("rank", 0, kHighestRank).value_or(0);
  auto ranks = map.integers("ranks");
  if (!map.has("ranks")) ranks = {rank};
  if (map.has("ranks") && map.has("rank")) map.fail(map.node("ranks"), "has both rank and ranks");
  if (ranks.empty()) map.fail(map.node("ranks"), "names no rank");
  bad.ranks.clear();
  for (const auto each : ranks) {
    require_member(map, map.has("ranks") ? "ranks" : "rank", each, plan);
    bad.ranks.push_back(static_cast<std::int32_t>(each));
  }
}

/// A key that is written if the file is not changed in another way.
Row<DamageAction> of_flip(Row<DamageAction> row) {
  row.is_usual = [](const DamageAction& damage) {
    return damage.cut || damage.remove || damage.from;
  };
  return row;
}

}  // namespace

void require_member(YamlMap& map, const char* key, std::int64_t rank, const LifePlan& plan) {
  const bool fits = rank >= 0 && rank <= kHighestRank;
  if (fits && plan.has_member(static_cast<std::int32_t>(rank))) return;
  map.fail(map.node(map.has(key) ? key : "kind"),
           "plans something at rank " + std::to_string(rank) +
               ", which is not a member of this life's job; its members are " +
               plan.members_text());
}

const Rows<BadResultAction>& bad_result_rows() {
  using Bad = BadResultAction;
  static const Rows<Bad> rows = {
      row("kind", &Bad::kind, by_name(sim::result_fault_names(), sim::result_fault_named),
          Written::kNeeded),
      fixed_row<Bad>(
          "ranks", Written::kAlways,
          [](YamlMap& map, std::string_view, Bad&) { map.know("rank"); },  // check() reads them
          [](YAML::Emitter& out, const Bad& bad) { put_value(out, bad.ranks); }),
      row("fatal", &Bad::fatal, &YamlMap::flag, Written::kAlways),
      row("value", &Bad::value, by_name(sim::bad_values(), sim::bad_value_named)),
      row("call", &Bad::call, Whole{0, kFaultCountMax}),
      row("run", &Bad::run, Whole{0, kFaultCountMax}),
  };
  return rows;
}

void check(YamlMap& map, BadResultAction& bad, const LifePlan& plan) {
  map.attempt([&] { read_bad_ranks(map, plan, bad); });
  if (!bad.fatal && map.has("value")) {
    map.fail(map.node("value"), "gives a value for a spike, which has a fixed one");
  }
}

const Rows<FaultAction>& fault_rows() {
  using Fault = FaultAction;
  static const Rows<Fault> rows = {
      row("kind", &Fault::kind, by_name(world_faults(), sim::fault_named), Written::kNeeded),
      row("rank", &Fault::rank, Whole{0, kHighestRank}, Written::kAlways),
      row("phase", &Fault::phase, words(phases())),
      row("step", &Fault::step, words(protocol_steps())),
      row("moment", &Fault::moment, by_name(sim::moment_names(), sim::moment_named),
          Written::kAlways),
      row("nth", &Fault::nth, Whole{0, kFaultCountMax}),
      row("file", &Fault::file, file_kinds()),
      row("delay_ms", &Fault::delay_ms, Whole{0, kFaultCountMax}),
      row("bit", &Fault::bit, Whole{0, kFaultCountMax}),
      row("fires", &Fault::fires,
          Choice<Fires>{{{Fires::kYes, "yes"}, {Fires::kNo, "no"}, {Fires::kMaybe, "maybe"}}}),
  };
  return rows;
}

void check(YamlMap& map, const FaultAction& fault, const LifePlan& plan) {
  map.attempt([&] { require_member(map, "rank", fault.rank, plan); });
  try {
    sim::require_possible(spec_of(fault));
  } catch (const Error& error) {
    map.fail(map.node("kind"), "can't be: " + error.message());
  }
}

const Rows<DamageAction>& damage_rows() {
  using Damage = DamageAction;
  static const Rows<Damage> rows = {
      row("what", &Damage::what, file_kinds(), Written::kNeeded),
      row("rank", &Damage::rank, Whole{0, kHighestRank}),
      row("step", &Damage::step, Whole{0, kFaultCountMax}),
      of_flip(row("byte", &Damage::byte, Whole{-kFaultCountMax, kFaultCountMax})),
      of_flip(row("bit", &Damage::bit, Whole{0, 7})),
      row("cut", &Damage::cut, Whole{1, kFaultCountMax}),
      row("remove", &Damage::remove, &YamlMap::flag),
      row("from", &Damage::from, Whole{0, kFaultCountMax}),
      row("keys", &Damage::keys, &YamlMap::text),
  };
  return rows;
}

void check(YamlMap& map, const DamageAction& damage, const LifePlan& /*plan*/) {
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
}

const Rows<Lie>& lie_rows() {
  static const Rows<Lie> rows = {
      row("rank", &Lie::rank, Whole{0, kHighestRank}, Written::kNeeded),
      row("about", &Lie::about,
          by_name({LieAbout::kCommon, LieAbout::kKey, LieAbout::kMissing, LieAbout::kObject,
                   LieAbout::kShape, LieAbout::kDtype, LieAbout::kBox, LieAbout::kReplica,
                   LieAbout::kGroup, LieAbout::kKeep}),
          Written::kNeeded),
  };
  return rows;
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
