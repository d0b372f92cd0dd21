#include "driver/random/generator.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "core/save/commit_protocol.hpp"
#include "core/save/phases.hpp"
#include "driver/random/draw.hpp"
#include "driver/random/outcome_rules.hpp"
#include "driver/random/random_modules.hpp"
#include "reprise/error.hpp"
#include "sim/job/model/model.hpp"
#include "sim/job/optimizer/sharding.hpp"

namespace reprise::driver {
namespace {

using sim::Layout;

constexpr std::array<std::string_view, 3> kModels = {"gpt-tiny", "moe-tiny", "moe-tiny-mtp"};
/// Upper limit on pipeline stages. The models have few layers, so additional stages would be empty.
constexpr std::int32_t kStagesMax = 4;
constexpr std::int64_t kBatchLeast = 4096;
constexpr std::array kMoments = {sim::FaultMoment::kBefore, sim::FaultMoment::kDuring,
                                 sim::FaultMoment::kAfter};
constexpr std::array kWriteFaults = {sim::FaultKind::kWriteError, sim::FaultKind::kNoSpace,
                                     sim::FaultKind::kSyncError, sim::FaultKind::kTornWrite};

std::vector<std::int32_t> divisors(std::int32_t n) {
  std::vector<std::int32_t> all;
  for (std::int32_t d = 1; d <= n; ++d) {
    if (n % d == 0) all.push_back(d);
  }
  return all;
}

/// Returns the smallest prime that divides n > 1.
std::int32_t prime_of(std::int32_t n) {
  std::int32_t p = 2;
  while (n % p != 0) ++p;
  return p;
}

/// Returns the axes over which ranks are distributed. dp occurs twice, because it may be split into
/// replicas.
std::vector<std::string_view> factor_axes() {
  std::vector<std::string_view> axes;
  for (const auto& field : sim::kLayoutFields) {
    if (!field.takes_ranks()) continue;
    axes.insert(axes.end(), field.name == "dp" ? 2 : 1, field.name);
  }
  return axes;
}

/// Distributes the world's prime factors over the axes.
void draw_sizes(Stream& random, std::int32_t world, Layout& layout) {
  const auto axes = factor_axes();
  for (std::int32_t left = world; left > 1;) {
    const std::int32_t prime = prime_of(left);
    std::string_view axis = one_of(random, axes);
    if (axis == "pp" && layout.pp * prime > kStagesMax) axis = "dp";
    layout.set_size(axis, layout.size_of(axis) * prime);
    left /= prime;
  }
}

/// Divides the experts' ranks among the axes that only experts have. If the default size of an axis
/// is 0, its size mostly stays 0, which means that another axis determines it. Such axes are drawn
/// first, because they determine how many ranks are left for the other axes.
void draw_expert_sizes(Stream& random, Layout& layout) {
  std::int32_t left = layout.expert_ranks();
  for (const bool follows : {true, false}) {
    for (const auto& field : sim::kLayoutFields) {
      if (field.cuts != sim::Cuts::kExperts || (Layout{}.*field.size == 0) != follows) continue;
      auto& size = layout.*field.size;
      size = follows && !chance(random, 3) ? 0 : one_of(random, divisors(left));
      if (left % sim::size_in_effect(layout, field) != 0) size = 1;
      left /= sim::size_in_effect(layout, field);
    }
  }
}

void draw_replicas(Stream& random, Layout& layout) {
  auto copies = divisors(std::gcd(layout.dp, layout.expert_dp()));
  if (copies.size() > 1 && !chance(random, 3)) copies.erase(copies.begin());
  layout.dp_replicate = one_of(random, copies);
}

void draw_stages(Stream& random, std::int64_t layers, Layout& layout) {
  if (layout.pp == 1) return;
  if (chance(random, 3)) layout.vpp = 2;
  if (!chance(random, 3)) return;
  const std::size_t chunks =
      static_cast<std::size_t>(layout.pp) * static_cast<std::size_t>(layout.vpp);
  layout.stage_layers.assign(chunks, 0);
  for (std::int64_t l = 0; l < layers; ++l) ++layout.stage_layers[random.below(chunks)];
}

void draw_order(Stream& random, Layout& layout) {
  std::vector<std::string_view> names(sim::kAxisNames.begin(), sim::kAxisNames.end());
  for (std::size_t i = names.size(); i > 1; --i) std::swap(names[i - 1], names[random.below(i)]);
  layout.order.clear();
  for (const auto name : names) {
    layout.order += (layout.order.empty() ? "" : "-") + std::string(name);
  }
}

bool is_valid(const Layout& layout, const CaseLimits& limits) {
  try {
    sim::check(layout);
    return layout.world_size() <= limits.world_max;
  } catch (const Error&) {
    return false;
  }
}

void change_size(Stream& random, std::string_view axis, Layout& layout) {
  constexpr std::array<std::int32_t, 4> kSizes = {1, 2, 3, 4};
  layout.set_size(axis, one_of(random, kSizes));
}

/// Changes the size of an axis that splits the model. Draws the stages again, because they depend
/// on pp.
void change_parts(Stream& random, std::string_view axis, std::int64_t layers, Layout& layout) {
  change_size(random, axis, layout);
  if (axis != "pp") return;
  layout.vpp = 1;
  layout.stage_layers.clear();
  draw_stages(random, layers, layout);
}

/// Returns an axis along which ranks hold copies of the same state: dp in three cases of four.
std::string_view axis_of_copies(Stream& random) {
  std::vector<std::string_view> others;
  for (const auto& field : sim::kLayoutFields) {
    if (field.copies() && field.name != "dp") others.push_back(field.name);
  }
  const std::uint64_t drawn = random.below(4 * others.size());
  return drawn < others.size() ? others[drawn] : "dp";
}

/// Changes one aspect of the layout: the size of an axis, the rank order, or the division into
/// replicas or experts.
void change_one(Stream& random, const sim::ModelSpec& model, Layout& layout) {
  const auto& parts = sim::part_axes();
  const std::uint64_t drawn = random.below(parts.size() + (model.has_experts() ? 5 : 3));
  if (drawn < parts.size()) return change_parts(random, parts[drawn], model.layers, layout);
  switch (drawn - parts.size()) {
    case 0:
      return change_size(random, axis_of_copies(random), layout);
    case 1:
      return draw_replicas(random, layout);
    case 2:
      return draw_order(random, layout);
    default:
      return draw_expert_sizes(random, layout);
  }
}

/// Returns the layout after a restart: the same, a similar one, or an unrelated one.
Layout next_layout(Stream& random, const std::string& model, const Layout& before,
                   const CaseLimits& limits) {
  if (chance(random, 8)) return before;
  if (chance(random, 2)) return random_layout(random, model, random_world(random, limits));
  const sim::ModelSpec spec = sim::model_named(model);
  for (int tries = 0; tries < 20; ++tries) {
    Layout near = before;
    for (std::int64_t changes = number(random, 1, 2); changes > 0; --changes) {
      change_one(random, spec, near);
    }
    if (is_valid(near, limits) && !(near == before)) return near;
  }
  return random_layout(random, model, random_world(random, limits));
}

void add_training(Stream& random, std::int64_t steps_max, std::vector<Action>& actions) {
  const std::int64_t steps = number(random, 0, steps_max);
  if (steps > 0) actions.emplace_back(TrainAction{steps});
}

/// Adds some steps, a save, and perhaps more steps and saves. Sometimes the running job loads the
/// checkpoint that it saved.
void add_saving(Stream& random, std::vector<Action>& actions) {
  add_training(random, 3, actions);
  actions.emplace_back(SaveAction{});
  if (chance(random, 3)) {
    add_training(random, 2, actions);
    if (chance(random, 2)) actions.emplace_back(LoadAction{});
    add_training(random, 1, actions);
    if (chance(random, 2)) actions.emplace_back(SaveAction{});
  }
}

/// The strict modes that random scenarios use; tests cover the others.
constexpr std::array kStrictModes = {
    Strictness::kAssumeOkUnexpected, Strictness::kLogUnexpected, Strictness::kLogAll,
    Strictness::kRaiseUnexpected,    Strictness::kRaiseAll,      Strictness::kReturnUnexpected,
    Strictness::kReturnAll,          Strictness::kIgnoreAll};

Strictness draw_strictness(Stream& random) {
  if (chance(random, 2)) return Strictness::kRaiseAll;
  const auto last = static_cast<std::int64_t>(kStrictModes.size()) - 1;
  return kStrictModes.at(static_cast<std::size_t>(number(random, 0, last)));
}

bool refuses_absent(Strictness mode) {
  return mode == Strictness::kAssumeOkUnexpected || mode == Strictness::kRaiseUnexpected ||
         mode == Strictness::kRaiseAll;
}

/// In a third of the scenarios, turns on validation of results, with formats and iterators that
/// change from life to life. If the strict mode refuses absent objects, the last life is sometimes
/// made to load with a forced template. The other lives are not, because they save afterwards.
void draw_rerun(Stream random, Scenario& scenario) {
  if (!chance(random, 3)) return;
  for (auto& plan : scenario.lives) {
    plan.rerun = sim::RerunMode::kValidateResults;
    if (chance(random, 3)) {
      plan.format = sim::checkpoint_format_named(one_of(random, sim::checkpoint_formats()));
    }
    if (chance(random, 2)) plan.iterators = sim::Wrapping::kPlain;
  }
  if (!chance(random, 2) || !refuses_absent(scenario.checkpoint.strictness)) return;
  scenario.lives.back().rerun_template = sim::RerunTemplate::kForced;
}

/// Draws all of a scenario except its lives.
Scenario random_job(Stream& random) {
  Scenario scenario;
  scenario.proves = "A random job goes on from its checkpoints as if it had never stopped.";
  scenario.name = "random";
  scenario.model = one_of(random, kModels);
  scenario.seed = 1 + random.below(1000);
  scenario.shard_dim = chance(random, 2) ? 0 : number(random, 1, 2);
  scenario.ranks_per_node = chance(random, 2) ? 0 : static_cast<std::int32_t>(number(random, 1, 4));
  scenario.checkpoint.strictness = draw_strictness(random);
  draw_async(random.split("async"), {}, scenario.checkpoint);
  Stream reads = random.split("reads");
  scenario.checkpoint.reads_once = chance(reads, 3);
  scenario.lanes = {LaneKind::kSim, LaneKind::kMpi, LaneKind::kGpu};
  return scenario;
}

/// Draws the job's layout or, in a quarter of the cases, its modules. Modules are drawn from a
/// separate random stream.
void draw_grids(Stream& random, const CaseLimits& limits, Scenario& scenario, LifePlan& plan) {
  plan.layout = random_layout(random, scenario.model, random_world(random, limits));
  plan.optimizer_sharding = random_sharding(random);
  Stream modules = random.split("modules");
  if (chance(modules, 4)) {
    plan.modules = random_modules(modules, limits);
    plan.layout = {};
    scenario.model.clear();
  }
  scenario.optimizer_sharding = plan.optimizer_sharding;
}

void change_for_restart(Stream& random, const std::string& model, const CaseLimits& limits,
                        LifePlan& plan) {
  if (!plan.modules.empty()) {
    plan.modules = changed_modules(random, std::move(plan.modules), limits);
    return;
  }
  plan.layout = next_layout(random, model, plan.layout, limits);
  if (chance(random, 2)) plan.optimizer_sharding = random_sharding(random);
}

/// Returns `count` ranks in random order. The world from which they are drawn has up to three ranks
/// more.
std::vector<std::int32_t> random_members(Stream& random, std::int32_t count) {
  std::vector<std::int32_t> ranks;
  const auto world = count + static_cast<std::int32_t>(number(random, 0, 3));
  for (std::int32_t rank = 0; rank < world; ++rank) ranks.push_back(rank);
  shuffle(random, ranks);
  ranks.resize(static_cast<std::size_t>(count));
  return ranks;
}

std::int32_t one_member(Stream& random, const LifePlan& plan) {
  const std::int32_t members =
      // With modules, every rank of the world is a member of the job.
      plan.modules.empty() ? plan.layout.world_size() : plan.world_size();
  const auto place = random.below(static_cast<std::uint64_t>(members));
  return plan.ranks.empty() ? static_cast<std::int32_t>(place)
                            : plan.ranks[static_cast<std::size_t>(place)];
}

FaultAction random_crash(Stream& random, const LifePlan& plan) {
  FaultAction crash;
  crash.rank = one_member(random, plan);
  crash.phase = one_of(random, phases_of_save());
  crash.moment = one_of(random, kMoments);
  crash.nth = crash.moment == sim::FaultMoment::kDuring ? number(random, 0, 3) : 0;
  const bool steps = crash.phase == phase::kCommit && chance(random, 2);
  if (steps) crash.step = one_of(random, kCommitSteps);
  crash.fires = Fires::kMaybe;
  return crash;
}

FaultAction random_write_fault(Stream& random, const LifePlan& plan) {
  FaultAction fault;
  fault.kind = one_of(random, kWriteFaults);
  fault.rank = one_member(random, plan);
  fault.nth = number(random, 0, 3);
  fault.fires = Fires::kMaybe;
  return fault;
}

/// Inserts a fault before the life's last save, and allows this save to fail.
void add_fault(Stream& random, LifePlan& plan) {
  auto& actions = plan.actions;
  const bool crash = chance(random, 2);
  const FaultAction fault = crash ? random_crash(random, plan) : random_write_fault(random, plan);
  for (auto action = actions.end(); action != actions.begin();) {
    auto* save = std::get_if<SaveAction>(&*--action);
    if (save == nullptr) continue;
    save->fails.how = Failing::How::kMaybe;
    // FinalizeAction waits for earlier saves, so the fault can't hit them.
    actions.insert(action, {FinalizeAction{}, fault});
    break;
  }
  // Removes reloads. The job may continue after the fault, and the tracker may then name the old or
  // the new checkpoint, so the expected result of a reload is unknown.
  std::erase_if(actions, [](const Action& one) { return std::holds_alternative<LoadAction>(one); });
}

/// Ends the life with a fault checkpoint. Inserts a life that repeats the iteration on another
/// device, to find out whether the first device was at fault.
void add_rerun(Stream& random, std::size_t life, Scenario& scenario) {
  for (auto& plan : scenario.lives) {
    plan.rerun = sim::RerunMode::kValidateResults;
    // With any other format, the diagnosis would be lost at the restart.
    plan.format = sim::CheckpointFormat::kTorchDist;
    plan.iterators = sim::Wrapping::kWrapped;  // needed because a batch is read again
  }
  LifePlan& plan = scenario.lives[life];
  BadResultAction bad;
  bad.kind = sim::ResultFault::kPersistentError;
  bad.ranks = {one_member(random, plan)};
  plan.actions.insert(plan.actions.end(), {TrainAction{1}, bad, ExitAction{16, true}});
  LifePlan decides = plan;
  decides.other_device = true;
  decides.actions = {ExitAction{17, false}};
  scenario.lives.insert(scenario.lives.begin() + static_cast<std::ptrdiff_t>(life) + 1, decides);
  for (std::size_t i = life + 2; i < scenario.lives.size(); ++i) {
    scenario.lives[i].rerun = sim::RerunMode::kDisabled;
  }
}

}  // namespace

sim::Sharding random_sharding(Stream& random) {
  return sim::sharding_named(one_of(random, sim::sharding_names()));
}

std::int32_t random_world(Stream& random, const CaseLimits& limits) {
  const std::int32_t most = chance(random, 2) ? std::min(limits.world_max, 4) : limits.world_max;
  return static_cast<std::int32_t>(number(random, 1, most));
}

Layout random_layout(Stream& random, const std::string& model, std::int32_t world) {
  const sim::ModelSpec spec = sim::model_named(model);
  Layout layout;
  draw_sizes(random, world, layout);
  if (spec.has_experts()) draw_expert_sizes(random, layout);
  draw_replicas(random, layout);
  draw_stages(random, spec.layers, layout);
  if (chance(random, 3)) draw_order(random, layout);
  sim::check(layout);
  return layout;
}

void draw_async(Stream random, const AsyncOdds& odds, CheckpointPlan& plan) {
  plan.async = chance(random, 2);
  if (!plan.async) return;
  plan.late = chance(random, odds.late_one_in);
  plan.in_flight = number(random, 1, odds.in_flight_most);
  if (!chance(random, odds.small_one_in)) return;
  plan.batch_bytes = kBatchLeast;
  plan.staging_bytes = number(random, 1, 3) * kBatchLeast;
}

Scenario random_scenario(Stream random, const CaseLimits& limits) {
  Scenario scenario = random_job(random);
  LifePlan plan;
  draw_grids(random, limits, scenario, plan);
  std::size_t lives = 2;
  while (lives < limits.lives_max && chance(random, 3)) ++lives;
  for (std::size_t i = 0; i < lives; ++i) {
    if (i > 0) change_for_restart(random, scenario.model, limits, plan);
    plan.actions.clear();
    if (i + 1 < lives) {
      add_saving(random, plan.actions);
    } else {
      add_training(random, 2, plan.actions);
    }
    scenario.lives.push_back(plan);
    Stream order = random.split("members").split(i);
    if (plan.modules.empty() && chance(order, 3)) {
      scenario.lives.back().ranks = random_members(order, plan.layout.world_size());
    }
  }
  draw_rerun(random.split("rerun"), scenario);
  expect_what_must_come(scenario);
  return scenario;
}

Scenario random_faulty_scenario(Stream random, const CaseLimits& limits) {
  Scenario scenario = random_scenario(random.split("scenario"), limits);
  scenario.proves = "A random job goes on from a committed checkpoint, whatever goes wrong.";
  // Without these changes, it would be unknown whether a load must be refused, because that depends
  // on the checkpoint that the fault leaves.
  for (auto& plan : scenario.lives) {
    forget_buckets(plan);
    plan.rerun_template = sim::RerunTemplate::kAsStored;
  }
  scenario.optimizer_sharding = scenario.lives.front().optimizer_sharding;
  auto& lives = scenario.lives;
  if (std::holds_alternative<TrainAction>(lives.front().actions.front())) {
    lives.front().actions.insert(lives.front().actions.begin() + 1, SaveAction{});
  } else {
    lives.front().actions.insert(lives.front().actions.begin(), SaveAction{});
  }
  if (lives.size() < 2) lives.push_back(lives.front());
  const std::size_t life = random.below(lives.size() - 1);
  if (chance(random, 4)) {
    add_rerun(random, life, scenario);
  } else {
    add_fault(random, lives[life]);
  }
  expect_what_must_come(scenario);
  return scenario;
}

}  // namespace reprise::driver
