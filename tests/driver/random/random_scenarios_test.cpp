// Tests properties with random scenarios. The seed is derived from the commit unless
// REPRISE_PROPERTY_SEED sets it. A failing scenario is shrunk and written to the directory
// regress-found in the build folder.

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdlib>
#include <iostream>

#include "core/base/hash.hpp"
#include "driver/language/scenario_writer.hpp"
#include "driver/record/build_info.hpp"
#include "driver/runs/property.hpp"
#include "tests/contracts/property_seed.hpp"

namespace reprise::driver {
namespace {

using contracts::cases_of_run;
using contracts::kSeedVariable;
using contracts::seed_of_run;

/// RapidCheck generates only a number, from which we build the scenario. Our own code shrinks
/// scenarios, since RapidCheck could shrink only the number.
rc::Gen<Scenario> any_scenario(const Property& property) {
  return rc::gen::noShrink(rc::gen::map(
      rc::gen::resize(100, rc::gen::arbitrary<std::uint64_t>()),
      [&property](std::uint64_t number) { return property.draw(Stream(number), CaseLimits{}); }));
}

struct Checked {
  bool held = false;  ///< true if RapidCheck found no failure
  CaseDistribution distribution;
  std::optional<Counterexample> found;
};

Checked check(const Property& property) {
  Checked checked;
  const rc::Gen<Scenario> scenarios = any_scenario(property);
  PropertyRequest request{.seed = seed_of_run(),
                          .cases = cases_of_run(property.cases),
                          .limits = {},
                          .lane = {},
                          .out = "regress-found"};
  rc::detail::TestParams params;
  // The seed also depends on the property's name, so that each property gets different cases.
  params.seed = mix64(request.seed, hash_of(property.name));
  params.maxSuccess = static_cast<int>(request.cases);
  params.disableShrinking = true;
  std::optional<std::pair<Scenario, Failure>> failed;
  const rc::detail::TestResult result = rc::detail::checkTestable(
      [&] {
        const Scenario scenario = *scenarios;
        checked.distribution.add(scenario);
        const auto failure = failure_of(property, scenario, request.lane);
        if (failure) failed.emplace(scenario, *failure);
        RC_ASSERT(!failure);
      },
      rc::detail::TestMetadata{std::string(property.name), std::string(property.says)}, params);
  checked.held = result.is<rc::detail::SuccessResult>();
  if (failed) checked.found = shrink_and_keep(property, failed->first, failed->second, request);
  return checked;
}

void expect_holds(const std::string& name) {
  const Property& property = property_named(name);
  const std::uint64_t seed = seed_of_run();
  ::setenv("RC_PARAMS", ("seed=" + std::to_string(seed)).c_str(), 1);  // printed by RapidCheck
  std::cout << name << ": seed " << seed << " of commit " << build_info().commit
            << "; the same cases again: " << kSeedVariable << "=" << seed
            << " test_driver_random --gtest_filter=RandomScenarios.*\n";
  testing::Test::RecordProperty("seed", std::to_string(seed));
  const Checked checked = check(property);
  std::cout << checked.distribution.table();
  EXPECT_GT(checked.distribution.cases(), 0U);
  EXPECT_EQ(checked.held, !checked.found) << "a case threw an exception other than Error";
  if (!checked.found) return;
  ADD_FAILURE() << property.says << ": " << checked.found->failure.code << ": "
                << checked.found->failure.reason << "\nshrunk in " << checked.found->tries
                << " runs to " << checked.found->file << "; move it to scenarios/regress:\n"
                << to_yaml(checked.found->scenario);
}

TEST(RandomScenarios, continuity) { expect_holds("continuity"); }
TEST(RandomScenarios, layout_free) { expect_holds("layout-free"); }
TEST(RandomScenarios, stored_alike) { expect_holds("stored-alike"); }
TEST(RandomScenarios, deterministic) { expect_holds("deterministic"); }
TEST(RandomScenarios, survives) { expect_holds("survives"); }
TEST(RandomScenarios, ranks_renamed) { expect_holds("ranks-renamed"); }
TEST(RandomScenarios, keys_renamed) { expect_holds("keys-renamed"); }
TEST(RandomScenarios, saved_twice) { expect_holds("saved-twice"); }
TEST(RandomScenarios, saved_in_two) { expect_holds("saved-in-two"); }
TEST(RandomScenarios, tensor_added) { expect_holds("tensor-added"); }
TEST(RandomScenarios, other_writers) { expect_holds("other-writers"); }
TEST(RandomScenarios, fewer_writers) { expect_holds("fewer-writers"); }

}  // namespace
}  // namespace reprise::driver
