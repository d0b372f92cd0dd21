#include "driver/runs/shrink_file.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>

#include "core/adapters/posix/posix_store.hpp"
#include "core/ports/whole_file.hpp"
#include "driver/language/scenario_expect.hpp"
#include "driver/language/scenario_writer.hpp"
#include "driver/random/outcome_rules.hpp"
#include "driver/random/shrink.hpp"
#include "driver/record/build_info.hpp"
#include "driver/runs/replay.hpp"
#include "driver/runs/run.hpp"
#include "properties/finding_code.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

using reports::ScenarioResult;
using reports::Verdict;

void require_simulated_job(const Scenario& scenario) {
  const bool commands = std::any_of(scenario.lives.begin(), scenario.lives.end(),
                                    [](const LifePlan& plan) { return plan.command.has_value(); });
  if (!scenario.program && !commands) return;
  throw Error(Code::kUsage,
              "this scenario runs an external program, and only scenarios of the simulated job can "
              "be shrunk",
              {.file = scenario.file});
}

Expectation expected_by_rule(Scenario scenario) {
  expect_what_must_come(scenario);
  return scenario.expect;
}

bool refuses_alike(const Expectation& a, const Expectation& b) { return a.refusal == b.refusal; }

bool fails_like(const ScenarioResult& first, const ScenarioResult& now) {
  if (now.verdict != first.verdict || now.code != first.code) return false;
  if (first.code != name_of(judged::kVerdictDisagreement)) return true;
  return without_numbers(now.reason) == without_numbers(first.reason);
}

using FailsAlike = std::function<bool(const Scenario&)>;

/// The keys of an expectation that say how the scenario must end.
constexpr std::array<std::string_view, 4> kEnds = {"refused", "refused_says", "ranks_own",
                                                   "outcome"};

/// Removes from the expectation what the failure does not need: counts, steps and texts that would
/// be wrong in a smaller scenario.
std::size_t simplify_expectation(const FailsAlike& fails_alike, std::size_t tries_max,
                                 Scenario& scenario) {
  std::size_t tries = 0;
  for (const auto& row : expect_rows()) {
    if (std::find(kEnds.begin(), kEnds.end(), row.key) != kEnds.end()) continue;
    Scenario variant = scenario;
    row.reset(variant.expect);
    if (variant == scenario || tries == tries_max) continue;
    ++tries;
    if (fails_alike(variant)) scenario = std::move(variant);
  }
  return tries;
}

}  // namespace

std::string without_numbers(const std::string& text) {
  std::string plain;
  bool within = false;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) plain += c;
    if (digit && !within) plain += '#';
    within = digit;
  }
  return plain;
}

std::optional<Scenario> expecting_like(const Scenario& original, Scenario variant) {
  const Expectation ruled = expected_by_rule(original);
  const Expectation of_variant = variant.expect;
  variant.expect = original.expect;
  if (refuses_alike(original.expect, ruled)) {
    variant.expect.refusal = of_variant.refusal;
    if (!refuses_alike(of_variant, ruled)) variant.expect.refusal_says = of_variant.refusal_says;
    variant.expect.every_rank_owns = original.expect.every_rank_owns && of_variant.every_rank_owns;
    return variant;
  }
  if (!refuses_alike(of_variant, ruled)) return std::nullopt;
  return variant;
}

std::string write_scenario(const Scenario& scenario, const std::string& folder,
                           const std::string& name) {
  PosixStore store(folder);
  store.make_directory("");
  const std::string text = to_yaml(scenario);
  write_atomically(store, name, as_bytes(text));
  return folder + "/" + name;
}

ShrunkFile shrink_file(const Scenario& scenario, const LaneOptions& lane, std::size_t tries_max) {
  require_simulated_job(scenario);
  ShrunkFile shrunk{.first = run_scenario(scenario, LaneKind::kSim, lane)};
  if (shrunk.first.verdict != Verdict::kFail) return shrunk;
  const auto fails_alike = [&](const Scenario& variant) {
    try {
      return fails_like(shrunk.first, run_scenario(variant, LaneKind::kSim, lane));
    } catch (const Error&) {
      return false;  // a variant that can't run fails in another way
    }
  };
  Scenario from = scenario;
  shrunk.tries = simplify_expectation(fails_alike, tries_max, from);
  const auto variant_fails_alike = [&](const Scenario& variant) {
    const auto expecting = expecting_like(from, variant);
    return expecting && fails_alike(*expecting);
  };
  Shrunk found = shrink(from, variant_fails_alike, tries_max - shrunk.tries);
  shrunk.tries += found.tries;
  Scenario small = found.scenario == from ? from : *expecting_like(from, std::move(found.scenario));
  shrunk.simpler = !(small == scenario);
  // The claim, the tags and the known codes are about the larger scenario.
  small.caught.clear();
  if (shrunk.simpler) {
    small.proves =
        "A small job that fails as " + scenario.name + " does: " + shrunk.first.code + ".";
    small.tags.clear();
  }
  small.recorded = record_of(run_scenario(small, LaneKind::kSim, lane), lane, build_info());
  shrunk.small = std::move(small);
  return shrunk;
}

}  // namespace reprise::driver
