#include "sim/mutants/mutants.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "tests/sim/mutants/mutant_world.hpp"

namespace reprise::sim::mutants_test {
namespace {

/// A setup `shown` in which the mutant must be detected. If the mutant has `needs`, there is also a
/// setup `hidden` that does not meet them, in which nothing must be detected.
struct Row {
  std::string_view mutant;
  Lives shown;
  std::optional<Lives> hidden = {};
};

std::ostream& operator<<(std::ostream& out, const Row& row) {
  out << row.mutant << " shown under " << row.shown;
  if (row.hidden) out << ", hidden under " << *row.hidden;
  return out;
}

constexpr const char* kFlat = "fully_sharded_model_space";
constexpr const char* kFsdp = "fsdp_dtensor";
constexpr const char* kBuckets = "dp_reshardable";
constexpr const char* kWhole = "fully_reshardable";

Lives on(std::vector<std::int32_t> ranks, const char* layout = "tp2 dp2") {
  Lives lives{"gpt-tiny", layout};
  lives.ranks = std::move(ranks);
  return lives;
}

ModuleConfig module(const char* name, const char* model, const char* layout, double scale = 32768) {
  return {
      .name = name, .model = model, .layout = parse_layout(layout), .loss_scale = {.scale = scale}};
}

/// Returns the setup of a job whose modules use separate ranks, in the order of the modules.
Lives of(const std::vector<ModuleConfig>& modules) {
  Lives lives;
  lives.modules = side_by_side(modules);
  return lives;
}
/// Returns the setup of a job with the module `first` on rank 0 and a language module on the other
/// ranks.
Lives of(const ModuleConfig& first) {
  return of({first, module("language", "language-tiny", "tp1")});
}
Lives of_vision(const char* layout) { return of(module("vision", "vision-tiny", layout)); }
Lives of_overflowing(double scale) { return of(module("vision", "vision-tiny", "tp2", scale)); }

Lives loaded_under(Lives lives, const std::vector<ModuleConfig>& modules) {
  lives.load_modules = side_by_side(modules);
  return lives;
}
Lives loaded_with_sharding(const char* sharding) {
  Lives lives = of_vision("tp2");
  auto modules = lives.modules;
  for (auto& one : modules) one.optimizer_sharding = sharding_named(sharding);
  return loaded_under(lives, modules);
}
Lives lacking(Lives lives, std::vector<std::string> groups) {
  lives.lacks = std::move(groups);
  return lives;
}
Lives with(Lives lives, bool Lives::*flag) {
  lives.*flag = true;
  return lives;
}

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
      {"asymmetric-keys-hang", {"moe-tiny", "pp2 layers 1-3"}, Lives{"moe-tiny", "dp2"}},
      {"bucket-padding-offset",
       {"gpt-tiny", "tp2 dp2", kBuckets, "", kWhole},
       Lives{"gpt-tiny", "tp2 dp2", kBuckets}},
      {"bucket-padding-offset/pad-zeros", {"gpt-tiny", "tp2 dp2", kBuckets, "tp2 dp8", kWhole}},
      {"bucket-padding-offset/unchecked",
       {"gpt-tiny", "tp2 dp2", kBuckets, "", kWhole},
       Lives{"gpt-tiny", "tp2 dp2", kBuckets}},
      {"compute-weights-not-installed", {}},
      {"coordinator-rank-space", on({2, 3}, "dp2"), on({1, 0}, "dp2")},
      {"coordinator-rank-space/root", on({1, 0}, "dp2"), on({0, 1}, "dp2")},
      {"dp-cp-group-source/layout",
       {"gpt-tiny", "tp2 dp2 order dp-tp-cp-ep-pp"},
       Lives{"gpt-tiny", "tp2 dp2"}},
      {"dp-cp-group-source/layout/unchecked",
       with({"gpt-tiny", "tp2 dp2 order dp-tp-cp-ep-pp"}, &Lives::random_by_dp),
       with({"gpt-tiny", "tp2 dp2"}, &Lives::random_by_dp)},
      {"dp-cp-group-source/registry", on({2, 0, 3, 1}), on({0, 1, 2, 3})},
      {"dp-cp-group-source/registry/unchecked", on({2, 0, 3, 1}), on({0, 1, 2, 3})},
      {"dp-cp-group-source/stash", {"gpt-tiny", "tp2 dp2"}, Lives{"gpt-tiny", "dp2"}},
      {"dp-cp-group-source/stash/unchecked", {"gpt-tiny", "tp2 dp2"}, Lives{"gpt-tiny", "dp2"}},
      {"dtype-cast-on-load", {}},
      {"dtype-cast-on-load/template", {}},
      {"empty-group-step", {"moe-tiny", "pp2 layers 1-3"}, Lives{"moe-tiny", "pp2 layers 2-2"}},
      {"empty-shard-dedup", {"moe-tiny", "dp5", kFsdp}, Lives{"moe-tiny", "dp4", kFsdp}},
      {"ep-placement-from-param-mesh", {"moe-tiny", "ep2 dp2", kFsdp}, Lives{"moe-tiny", "dp2"}},
      {"ep-placement-from-param-mesh/hc-head",
       {"moe-tiny", "tp2", kFsdp},
       Lives{"moe-tiny", "dp2", kFsdp}},
      {"expert-local-number",
       {"moe-tiny-experts", "ep2 dp2", kFsdp},
       Lives{"moe-tiny-experts", "dp2", kFsdp}},
      {"expert-marked-replicate", {"moe-tiny", "ep2 dp2"}, Lives{"moe-tiny", "dp2"}},
      {"floor-vs-ceil-chunk", {"gpt-tiny", "tp2"}, Lives{"gpt-tiny", "tp1"}},
      {"found-inf-not-reduced", of_overflowing(65536), of_overflowing(32768)},
      {"fp32-master-stale-offload", {}},
      {"fused-gate-split",
       {"moe-tiny", "tp2 dp2", kFsdp, "tp2"},
       Lives{"moe-tiny", "tp2 dp2", kFsdp, "", "", 0, 1}},
      {"global-groups", on({2, 0, 3, 1}), on({0, 1, 2, 3})},
      {"global-groups/all-or-none", lacking(on({1, 0, 3, 2}), {"dp_group"}), on({1, 0, 3, 2})},
      {"global-groups/at-load", on({2, 0, 3, 1}), on({0, 1, 2, 3})},
      {"global-groups/at-load/unchecked", on({2, 0, 3, 1}), on({0, 1, 2, 3})},
      {"global-groups/at-save", on({2, 0, 3, 1}), on({0, 1, 2, 3})},
      {"global-groups/at-save/unchecked", on({2, 0, 3, 1}), on({0, 1, 2, 3})},
      {"global-groups/unchecked", on({2, 0, 3, 1}), on({0, 1, 2, 3})},
      {"groups-matched-by-position", with(of_vision("tp2"), &Lives::plain_first_at_load),
       of_vision("tp2")},
      {"half-given-pair", {"gpt-tiny", "pp2"}, Lives{"gpt-tiny", "tp2"}},
      {"half-given-pair/unchecked", {"gpt-tiny", "pp2"}, Lives{"gpt-tiny", "tp2"}},
      {"hsdp-saved-not-equal-loaded",
       {"gpt-tiny", "dp2 dp_replicate2", kFsdp},
       Lives{"gpt-tiny", "dp2", kFsdp}},
      {"layout-for-wrong-group",
       {"gpt-tiny", "dp4 dp_replicate2", kBuckets},
       Lives{"gpt-tiny", "dp4", kBuckets}},
      {"lazy-state-template", {}},
      {"lazy-state-template/unreported", {}},
      {"leaf-layer-global-groups",
       of({module("language", "language-tiny", "tp2"), module("vision", "vision-tiny", "tp2")}),
       of({module("one", "gpt-tiny", "tp2"), module("other", "language-tiny", "tp2")})},
      {"legacy-tp-gt-ep", {"gpt-tiny", "tp2 etp1"}, Lives{"gpt-tiny", "tp2"}},
      {"local-rank-as-dp-rank",
       {"gpt-tiny", "dp4", kFsdp, "", "", 2},
       Lives{"gpt-tiny", "dp4", kFsdp, "", "", 4}},
      {"mimo-common-rank0", of_vision("tp2"), Lives{}},
      {"mimo-no-prefix", of_vision("tp2"), Lives{}},
      {"mimo-optimizer-load-skipped", of_vision("tp2")},
      {"mimo-rng-dupkey", of_vision("tp1"), Lives{}},
      {"mimo-rng-dupkey/not-saved", of_vision("tp1")},
      {"mimo-sharding-type-lost", of_vision("tp2"), Lives{}},
      {"mimo-sharding-type-lost/stash", loaded_with_sharding(kFsdp), loaded_with_sharding(kWhole)},
      {"mimo-sharding-type-lost/wrapper", of_vision("tp2"), Lives{}},
      {"mimo-sharding-type-lost/wrapper-not-made", of_vision("tp2"), Lives{}},
      {"mimo-step-consensus", of_overflowing(65536), of_overflowing(32768)},
      {"mimo-tp-replica", of_vision("tp2"), of_vision("pp2 dp2")},
      {"mimo-tp-replica/cp", of_vision("cp2"), of_vision("tp2 dp2")},
      {"mimo-tp-replica/dp", of_vision("dp2"), of_vision("tp2 pp2")},
      {"mimo-tp-replica/pp", of_vision("pp2"), of_vision("tp2 dp2")},
      {"no-optimizer-in-dcp", {}},
      {"no-optimizer-in-dcp/m", {}},
      {"no-optimizer-in-dcp/master", {"gpt-tiny", "dp2", kBuckets}},
      {"no-optimizer-in-dcp/step", {}},
      {"no-optimizer-in-dcp/v", {"gpt-tiny", "dp2", kFsdp}},
      {"packed-group-not-canonical", {"gpt-tiny", "dp5", kFlat}, Lives{"gpt-tiny", "dp5", kFsdp}},
      {"per-rank-list-in-common", of_vision("pp2"), of_vision("tp2 dp2")},
      {"per-rank-list-in-common/at-load", of_vision("tp2")},
      {"post-load-gather-noop", {"gpt-tiny", "dp2"}, Lives{"gpt-tiny", "tp2"}},
      {"pp-fqn-collision", {"gpt-tiny", "pp2"}, Lives{"gpt-tiny", "tp2"}},
      {"pp-in-replica-id", {"gpt-tiny", "pp2"}, Lives{"gpt-tiny", "tp2"}},
      {"replica-diverged-live", {"moe-tiny-mtp", "pp2"}, Lives{"moe-tiny", "pp2"}},
      {"replica-from-wrong-group", {"gpt-tiny", "tp2 dp2"}, Lives{"gpt-tiny", "tp1"}},
      {"replica-from-wrong-group/unchecked", {"gpt-tiny", "tp2 dp2"}, Lives{"gpt-tiny", "tp1"}},
      {"replica-group-too-small", {"gpt-tiny", "cp2"}, Lives{"gpt-tiny", "dp2"}},
      {"replica-zero-axis/cp", {"gpt-tiny", "cp2"}, Lives{"gpt-tiny", "tp2 dp2"}},
      {"replica-zero-axis/dp", {"gpt-tiny", "dp2"}, Lives{"gpt-tiny", "tp2 cp2"}},
      {"replica-zero-axis/pp", {"moe-tiny-mtp", "pp2"}, Lives{"moe-tiny", "pp2"}},
      {"replica-zero-axis/tp", {"gpt-tiny", "tp2"}, Lives{"gpt-tiny", "dp2"}},
      {"replicated-as-model-shard",
       {"gpt-tiny", "tp2 dp2", kFsdp, "dp2"},
       Lives{"gpt-tiny", "dp4", kFsdp, "dp2"}},
      {"rng-ep-replica", {"moe-tiny", "ep2 dp2"}, Lives{"moe-tiny", "dp2"}},
      {"rng-ep-replica/dp", with(of_vision("dp2"), &Lives::random_by_dp),
       with(of_vision("tp2"), &Lives::random_by_dp)},
      {"rng-shards-after-resize", loaded_under(of_vision("tp2"), of_vision("tp4").modules),
       loaded_under(of_vision("tp2"), of_vision("tp2 dp2").modules)},
      {"schedule-counted-twice", with(of_vision("tp2"), &Lives::trains_before_load),
       of_vision("tp2")},
      {"schedule-counted-twice/at-load", of_vision("tp2")},
      {"strict-fallback-swallowed", {}},
      {"subgroups-ignored", {"gpt-tiny", "dp2", kBuckets}, Lives{"gpt-tiny", "dp2", kFlat}},
      {"validation-skipped-or-vacuous",
       {"gpt-tiny", "dp5", kFlat},
       Lives{"gpt-tiny", "dp5", kFsdp}},
      {"writer-from-global-groups", {"moe-tiny", "ep2 dp2"}, Lives{"moe-tiny", "dp2"}},
  };
  return all;
}

Verdicts verdicts_with(std::string_view mutant, const Lives& lives) {
  Policies policies;
  mutant_named(mutant).apply(policies);
  return MutantWorld(lives, policies).run();
}

std::string text_of(const Verdicts& verdicts) {
  std::string text;
  for (const auto& [code, message] : verdicts) text += code + ": " + message + '\n';
  return text;
}

class EachMutant : public testing::TestWithParam<Row> {};

TEST_P(EachMutant, IsCaughtAsItSaysWhereItShows) {
  const Row& row = GetParam();
  const Mutant& mutant = mutant_named(row.mutant);
  const Verdicts without = MutantWorld(row.shown, {}).run();
  EXPECT_TRUE(without.empty()) << text_of(without);
  const Verdicts verdicts = verdicts_with(row.mutant, row.shown);
  EXPECT_TRUE(std::any_of(mutant.caught_as.begin(), mutant.caught_as.end(), [&](const auto& code) {
    return verdicts.contains(std::string(name_of(code)));
  })) << text_of(verdicts);
  EXPECT_FALSE(verdicts.contains("INTERNAL") || verdicts.contains("a defect of ours"))
      << text_of(verdicts);
  std::string seen;
  for (const auto& [code, message] : verdicts) seen += (seen.empty() ? "" : " ") + code;
  RecordProperty("verdicts", seen);
}

TEST_P(EachMutant, IsInvisibleWhereItsNeedsAreNotMet) {
  const Row& row = GetParam();
  if (!row.hidden) {
    EXPECT_TRUE(mutant_named(row.mutant).needs == "any job" ||
                mutant_named(row.mutant).needs.find(" buckets") != std::string_view::npos);
    return;
  }
  const Verdicts verdicts = verdicts_with(row.mutant, *row.hidden);
  EXPECT_TRUE(verdicts.empty()) << text_of(verdicts);
}

INSTANTIATE_TEST_SUITE_P(Mutants, EachMutant, testing::ValuesIn(rows()),
                         [](const testing::TestParamInfo<Row>& row) {
                           std::string name(row.param.mutant);
                           for (char& c : name)
                             if (c == '-' || c == '/') c = '_';
                           return name;
                         });

/// True for mutants that need more than one save and one load.
bool has_own_test(std::string_view name) {
  constexpr std::string_view kOwn[] = {"rerun-",
                                       "strict-idle-rerun",  // in rerun_mutants_test
                                       "distribution-cache-",
                                       "load-metadata-cache-",
                                       "plan-cache-",
                                       "rerun-stale-plan/no-signature",  // in cache_mutants_test
                                       "cpu-tensor-aliased",
                                       "commit-not-polled",
                                       "finalize-reads-live-step",
                                       "ipc-pointer-stale",
                                       "last-save-killed",
                                       "staging-",                  // in async_mutants_test
                                       "empty-shard-materialised",  // in scenarios/placements
                                       "load-peak",
                                       "load-read-by-each",  // in tests/sim/faults
                                       "fallback-",
                                       "same-step-",
                                       "retention-",
                                       "store-",       // in tests/sim/world
                                       "payload-of-",  // in tests/driver/crash_models_test
                                       "payload-not-read-back",
                                       "small-file-not-read-back",  // in scenarios/faults
                                       "agreed-by-two/",
                                       "checksums-told-alone",
                                       "own-metadata-of-first-rank",  // in scenarios/agree
                                       "mimo-bare-keys",              // in module_keys_mutants_test
                                       "diff-",
                                       "reshard-",  // in scenarios/verbs
                                       "tracker-"};
  return std::any_of(std::begin(kOwn), std::end(kOwn),
                     [name](std::string_view own) { return name.starts_with(own); });
}

TEST(Mutants, AreSortedFoundByNameAndEachHasARow) {
  const auto all = mutants();
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(),
                             [](const auto& a, const auto& b) { return a.name < b.name; }));
  for (const auto& mutant : all) {
    EXPECT_EQ(&mutant_named(mutant.name), &mutant);
    EXPECT_FALSE(mutant.defect.empty() || mutant.seam.empty() || mutant.needs.empty() ||
                 mutant.caught_as.empty())
        << mutant.name;
    const bool has_row = std::any_of(rows().begin(), rows().end(),
                                     [&](const Row& row) { return row.mutant == mutant.name; });
    EXPECT_TRUE(has_row || has_own_test(mutant.name)) << mutant.name;
  }
  EXPECT_THROW(mutant_named("lazy-state-templat"), Error);
}

/// A linker leaves out files that nobody names, unless the build says otherwise.
TEST(Mutants, EachRegistrationInTheSourcesIsLinked) {
  std::size_t registrations = 0;
  for (const auto& entry : std::filesystem::directory_iterator(REPRISE_SOURCE_DIR "/sim/mutants")) {
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      registrations += line.starts_with("const Registration k") ? 1 : 0;
    }
  }
  EXPECT_GT(registrations, 0U);
  EXPECT_EQ(mutants().size(), registrations);
}

/// Without its proof of cover, a save writes a checkpoint with a gap. The load has a proof of its
/// own and refuses the checkpoint.
TEST(Mutants, WhatTheSaveLetsPassTheLoadRefuses) {
  for (const std::string_view name :
       {"packed-group-not-canonical", "validation-skipped-or-vacuous"}) {
    Policies policies;
    mutant_named(name).apply(policies);
    MutantWorld world({"gpt-tiny", "dp5", kFlat}, policies);
    EXPECT_TRUE(world.run().contains("COVERAGE_GAP")) << name;
    EXPECT_EQ(world.saved(), name == "validation-skipped-or-vacuous") << name;
  }
}

}  // namespace
}  // namespace reprise::sim::mutants_test
