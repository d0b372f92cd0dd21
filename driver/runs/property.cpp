#include "driver/runs/property.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "core/adapters/posix/host_device.hpp"
#include "core/adapters/posix/posix_store.hpp"
#include "core/base/hash.hpp"
#include "core/base/print.hpp"
#include "core/diff/diff.hpp"
#include "core/ports/no_progress.hpp"
#include "driver/lanes/rank_main.hpp"
#include "driver/lanes/scratch_directory.hpp"
#include "driver/language/scenario_writer.hpp"
#include "driver/random/outcome_rules.hpp"
#include "driver/random/shrink.hpp"
#include "driver/record/build_info.hpp"
#include "driver/runs/metamorphic.hpp"
#include "driver/runs/replay.hpp"
#include "driver/runs/run.hpp"
#include "driver/runs/shrink_file.hpp"
#include "properties/finding_code.hpp"
#include "properties/finding_watch.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

using reports::ScenarioResult;
using reports::Verdict;
using sim::Layout;
using sim::ModuleConfig;

// 15 hexadecimal digits are 60 bits, so the number also fits a signed 64-bit integer.
constexpr std::size_t kCommitDigits = 15;

ScenarioResult run_on_sim(const Scenario& scenario, const LaneOptions& options) {
  return run_scenario(scenario, LaneKind::kSim, options);
}

std::optional<Failure> failure_of(const ScenarioResult& result) {
  if (result.verdict == Verdict::kPass) return std::nullopt;
  return Failure{reports::name_of(result.verdict), result.code, result.reason};
}

/// Nothing if a test has silenced it.
std::optional<Failure> broken(FindingCode code, std::string reason,
                              SourceLine line = SourceLine::here()) {
  if (!may_state(line, code)) return std::nullopt;
  return Failure{reports::name_of(Verdict::kFail), std::string(name_of(code)), std::move(reason)};
}

std::optional<Failure> check_continuity(const Scenario& scenario, const LaneOptions& options) {
  const ScenarioResult result = run_on_sim(scenario, options);
  if (auto failure = failure_of(result)) return failure;
  return judge_evidence(scenario, result);
}

/// Returns the plan with this layout for every module, and with all modules on the same ranks.
LifePlan all_under(LifePlan plan, const Layout& layout) {
  plan.layout = plan.modules.empty() ? layout : Layout{};
  for (auto& module : plan.modules) {
    module.layout = layout;
    module.ranks = sim::members_of(layout).members();
  }
  return plan;
}

Scenario on_one_rank(Scenario scenario) {
  for (auto& plan : scenario.lives) plan = all_under(std::move(plan), {});
  fit_members(scenario);
  expect_what_must_come(scenario);
  return scenario;
}

std::optional<Failure> check_layout_free(const Scenario& scenario, const LaneOptions& options) {
  if (scenario.expect.refusal) return std::nullopt;
  const ScenarioResult many = run_on_sim(scenario, options);
  if (auto failure = failure_of(many)) return failure;
  const ScenarioResult one = run_on_sim(on_one_rank(scenario), options);
  if (auto failure = failure_of(one)) return failure;
  return judge_content(many, one, "on one rank");
}

std::optional<Failure> check_deterministic(const Scenario& scenario, const LaneOptions& options) {
  LaneOptions again = options;
  again.references = std::make_shared<ReferenceRuns>();
  const ScenarioResult first = run_on_sim(scenario, options);
  const ScenarioResult second = run_on_sim(scenario, again);
  return judge_repeated(first, second);
}

/// Returns the plan with the layouts and ranks of `grids`.
LifePlan regridded(LifePlan plan, const LifePlan& grids) {
  plan.layout = grids.layout;
  for (auto& module : plan.modules) {
    const ModuleConfig* other = sim::module_named(grids.modules, module.name);
    if (other == nullptr) continue;
    module.layout = other->layout;
    module.ranks = other->ranks;
  }
  return plan;
}

/// Returns a scenario that has only the first life, in the layouts of `grids`. It saves
/// optimizer state tensor by tensor, because buckets depend on the layout.
Scenario saves_under(const Scenario& scenario, const LifePlan& grids) {
  Scenario saves = scenario;
  saves.expect = {};
  saves.lives = {regridded(scenario.lives.front(), grids)};
  LifePlan& plan = saves.lives.front();
  fit_members(saves);
  forget_buckets(plan);
  saves.optimizer_sharding = plan.optimizer_sharding;
  return saves;
}

/// True for tensors whose vocabulary is padded to fit tp. With a different tp, they have a
/// different number of padding rows. The content of these rows is undefined.
bool is_padded(const std::string& key, const std::vector<ModuleConfig>& modules) {
  return std::any_of(modules.begin(), modules.end(), [&key](const ModuleConfig& module) {
    const auto model = sim::fitted(sim::model_named(module.model), module.layout, "");
    const auto& specs = model.parameters;
    return key.starts_with(sim::module_prefix(module.name)) &&
           std::any_of(specs.begin(), specs.end(), [&key](const auto& spec) {
             return spec.live_rows > 0 && key.find(spec.key) != std::string::npos;
           });
  });
}

/// Returns a plan whose layouts or ranks differ from the first life's, so that a checkpoint is not
/// compared with itself: the last life's plan, one rank, or tp2.
LifePlan other_grids(const Scenario& scenario) {
  const LifePlan& first = scenario.lives.front();
  const auto grids_of = [&first](const LifePlan& plan) {
    const LifePlan own = regridded(first, plan);
    return std::pair(own.layout, own.modules);
  };
  const LifePlan one_rank = all_under(first, {});
  for (const auto& plan : {scenario.lives.back(), one_rank}) {
    if (grids_of(plan) != grids_of(first)) return plan;
  }
  return all_under(first, sim::parse_layout("tp2"));
}

/// Runs the scenario and keeps its checkpoints in <directory>/<name>.
ScenarioResult run_kept(Scenario scenario, std::string name, const std::string& directory,
                        LaneOptions options) {
  scenario.name = std::move(name);
  options.keep = directory;
  return run_on_sim(scenario, options);
}

/// Compares the checkpoints of the runs "left" and "right".
DiffReport diff_of(const std::string& directory) {
  PosixStore left_store(directory + "/left");
  PosixStore right_store(directory + "/right");
  Checkpoint left = Checkpoint::open(left_store, kCheckpointRoot);
  Checkpoint right = Checkpoint::open(right_store, kCheckpointRoot);
  HostDevice device("host", 0);
  NoProgress progress;
  return diff(left, right, device, {}, progress);
}

std::optional<Failure> check_stored(const Scenario& scenario, const LaneOptions& options) {
  const ScratchDirectory scratch;
  const LifePlan& left = scenario.lives.front();
  const LifePlan right = other_grids(scenario);
  for (const auto* grids : {&left, &right}) {
    // This run only saves and compares no elements, so only a failure is of interest.
    const ScenarioResult result = run_kept(
        saves_under(scenario, *grids), grids == &left ? "left" : "right", scratch.path(), options);
    if (result.verdict == Verdict::kFail) return failure_of(result);
  }
  auto modules = left.modules;
  if (modules.empty()) modules.push_back({.model = scenario.model, .layout = left.layout});
  return judge_diff(diff_of(scratch.path()), modules);
}

/// Checks the outcome of a scenario with a fault, whether or not the fault fired.
std::optional<Failure> check_survives(const Scenario& scenario, const LaneOptions& options) {
  return failure_of(run_on_sim(scenario, options));
}

// --- relations ----------------------------------------------------------------------------------

/// Returns how two checkpoints differ, by the first tensor. The right one may have a tensor `adds`.
std::optional<Failure> judge_stored(const std::string& directory, std::string_view adds) {
  DiffReport report = diff_of(directory);
  std::erase_if(report.tensors, [adds](const auto& tensor) {
    return tensor.key == adds && tensor.verdict == DiffVerdict::kOnlyRight;
  });
  return judge_diff(report, {});
}

/// Returns the options of the changed run.
LaneOptions decided(LaneOptions options, const Relation& relation) {
  if (relation.decide == nullptr) return options;
  options.decide = [first = options.decide, then = relation.decide](sim::Policies& policies) {
    if (first) first(policies);
    then(policies);
  };
  return options;
}

std::optional<Failure> check_relation(const Relation& relation, const Scenario& scenario,
                                      const LaneOptions& options) {
  Scenario changed = scenario;
  if (!relation.change(changed)) return std::nullopt;
  const ScratchDirectory scratch;
  const ScenarioResult left = run_kept(scenario, "left", scratch.path(), options);
  if (auto failure = failure_of(left)) return failure;
  const ScenarioResult right =
      run_kept(changed, "right", scratch.path(), decided(options, relation));
  if (auto failure = failure_of(right)) return failure;
  if (auto failure = judge_content(left, right, "after the change")) return failure;
  return relation.keeps_keys ? judge_stored(scratch.path(), relation.adds) : std::nullopt;
}

/// Draws scenarios until the relation has something to change in one.
Scenario draw_changeable(const Relation& relation, const Stream& random, const CaseLimits& limits) {
  constexpr std::uint64_t kTries = 1000;
  for (std::uint64_t i = 0; i < kTries; ++i) {
    Scenario scenario = random_scenario(random.split(i), limits);
    Scenario changed = scenario;
    if (!scenario.expect.refusal && relation.change(changed)) return scenario;
  }
  throw Error(Code::kInternal,
              "no case has anything that " + std::string(relation.name) + " could change");
}

constexpr std::uint64_t kRelationCases = 10;

std::vector<Property> all_properties() {
  std::vector<Property> all = {
      {"continuity", "a job goes on from its checkpoints as if it had never stopped",
       check_continuity, random_scenario, 60},
      {"layout-free", "the content is the same under every layout", check_layout_free,
       random_scenario, 20},
      {"stored-alike", "what is stored is the same under every layout", check_stored,
       random_scenario, 20},
      {"deterministic", "the same scenario takes the same course", check_deterministic,
       random_scenario, 15},
      {"survives", "a job goes on from a committed checkpoint, whatever goes wrong", check_survives,
       random_faulty_scenario, 25}};
  for (const auto& relation : relations()) {
    all.push_back({relation.name, relation.says, std::bind_front(check_relation, relation),
                   std::bind_front(draw_changeable, relation), kRelationCases});
  }
  return all;
}

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

std::string name_of(const Property& property, const Counterexample& found) {
  const std::string code = found.failure.code.empty() ? found.failure.verdict : found.failure.code;
  return std::string(property.name) + "-" + lower(code) + "-" +
         hex(hash_of(to_yaml(found.scenario))).substr(0, 6);
}

/// Records the outcome for replays if the scenario also fails when it is run alone.
void record_outcome(const LaneOptions& lane, Scenario& scenario) {
  const ScenarioResult result = run_on_sim(scenario, lane);
  if (result.verdict != Verdict::kPass) {
    scenario.recorded = record_of(result, lane, build_info());
  }
}

}  // namespace

std::optional<Failure> judge_evidence(const Scenario& scenario, const ScenarioResult& result) {
  if (scenario.expect.refusal) return std::nullopt;
  for (const auto& rank : result.ranks) {
    const std::string who = "rank " + std::to_string(rank.rank) + " passed and ";
    if (rank.owns == (rank.elements == 0)) {
      return broken(judged::kOracleVacuous,
                    who + "compared nothing, or owned nothing but compared something");
    }
    if (rank.max_delta != 0 || std::isnan(rank.max_delta) || rank.bit_mismatches != 0) {
      return broken(judged::kBitMismatch, who + "differs");
    }
  }
  return std::nullopt;
}

std::optional<Failure> judge_content(const ScenarioResult& first, const ScenarioResult& second,
                                     const std::string& where) {
  if (!first.content_digest.empty() && first.content_digest == second.content_digest) {
    return std::nullopt;
  }
  return broken(judged::kContentDiffers, "the content's digest is '" + first.content_digest +
                                             "', and " + where + " '" + second.content_digest +
                                             "'");
}

std::optional<Failure> judge_repeated(const ScenarioResult& first, const ScenarioResult& second) {
  if (first.event_hash.empty() || first.event_hash != second.event_hash) {
    return broken(judged::kNotDeterministic,
                  "the event hash is '" + first.event_hash + "', then '" + second.event_hash + "'");
  }
  const bool same = first.verdict == second.verdict && first.code == second.code &&
                    first.content_digest == second.content_digest;
  if (same) return std::nullopt;
  return broken(judged::kNotDeterministic,
                "one event hash and two outcomes: '" + first.code + "' and '" + second.code + "'");
}

std::optional<Failure> judge_diff(const DiffReport& report,
                                  const std::vector<ModuleConfig>& modules) {
  for (const auto& tensor : report.tensors) {
    if (!counts_as_different(tensor.verdict)) continue;
    if (tensor.verdict == DiffVerdict::kShape && is_padded(tensor.key, modules)) continue;
    return broken(judged::kContentDiffers, tensor.key +
                                               " is stored differently under the other layout: " +
                                               std::string(reprise::name_of(tensor.verdict)));
  }
  if (report.elements == 0) return broken(judged::kOracleVacuous, "nothing comparable was stored");
  return std::nullopt;
}

std::span<const Property> properties() {
  static const std::vector<Property> all = all_properties();
  return all;
}

const Property& property_named(std::string_view name) {
  std::vector<std::string_view> names;
  for (const auto& property : properties()) {
    if (property.name == name) return property;
    names.push_back(property.name);
  }
  throw Error(Code::kUsage,
              "there is no property '" + std::string(name) + "'; available: " + join(names, ", "));
}

std::optional<Failure> failure_of(const Property& property, const Scenario& scenario,
                                  const LaneOptions& options) try {
  return property.check(scenario, options);
} catch (const Error& error) {
  return broken(error.code(), error.what());
}

Counterexample shrink_and_keep(const Property& property, Scenario failing, const Failure& failure,
                               const PropertyRequest& request) {
  Counterexample found{.failure = failure, .scenario = std::move(failing)};
  Shrunk shrunk = shrink(std::move(found.scenario), [&](const Scenario& variant) {
    if (request.interrupted()) return false;
    const auto now = failure_of(property, variant, request.lane);
    if (!now || !now->like(failure)) return false;
    found.failure = *now;
    return true;
  });
  found.scenario = std::move(shrunk.scenario);
  found.tries = shrunk.tries;
  found.scenario.proves = "Once " + found.failure.code + ": " + std::string(property.says) + ".";
  found.scenario.name = name_of(property, found);
  record_outcome(request.lane, found.scenario);
  if (!request.out.empty()) {
    found.file = write_scenario(found.scenario, request.out, found.scenario.name + ".yaml");
  }
  return found;
}

Scenario case_of(const Property& property, std::uint64_t seed, std::uint64_t number,
                 const CaseLimits& limits) {
  return property.draw(Stream(mix64(seed, hash_of(property.name))).split(number), limits);
}

PropertyRun run_property(const Property& property, const PropertyRequest& request) {
  PropertyRun run;
  run.result.name = property.name;
  run.result.seed = request.seed;
  run.result.verdict = request.cases == 0 ? Verdict::kInconclusive : Verdict::kPass;
  for (std::uint64_t n = 0; n < request.cases && !run.counterexample; ++n) {
    if (request.interrupted()) {
      run.untried = request.cases - n;
      run.result.verdict = Verdict::kInconclusive;
      break;
    }
    Scenario scenario = case_of(property, request.seed, n, request.limits);
    run.distribution.add(scenario);
    ++run.result.cases;
    const auto failure = failure_of(property, scenario, request.lane);
    if (!failure) continue;
    run.counterexample = shrink_and_keep(property, std::move(scenario), *failure, request);
    run.result.verdict = Verdict::kFail;
    run.result.code = run.counterexample->failure.code;
    run.result.counterexample = to_yaml(run.counterexample->scenario);
  }
  run.result.distribution = run.distribution.counts();
  return run;
}

std::uint64_t seed_of_commit(std::string_view commit) {
  std::uint64_t seed = 0;
  for (const char c : commit.substr(0, kCommitDigits)) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit && (c < 'a' || c > 'f')) return 1;
    seed = 16 * seed + static_cast<std::uint64_t>(digit ? c - '0' : c - 'a' + 10);
  }
  return seed == 0 ? 1 : seed;
}

}  // namespace reprise::driver
