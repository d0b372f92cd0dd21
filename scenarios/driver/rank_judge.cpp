#include "scenarios/driver/rank_judge.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "core/base/error.hpp"
#include "properties/derived.hpp"
#include "properties/inventory.hpp"
#include "scenarios/driver/job_config.hpp"
#include "scenarios/driver/rng_judge.hpp"

namespace reprise::driver {
namespace {

constexpr double kLossUnit = 1.0 / (1 << 20);
constexpr const char* kRerunKey = "rerun_state_machine_state";  // lives on, and is judged apart

/// A weight that is wrong although its master is right is a stale copy, and that explains it: such
/// rulings come before those on the weights themselves.
Rulings explained(const Rulings& state, const Rulings& derived) {
  std::set<std::string> wrong;
  for (const auto& ruling : state) wrong.insert(ruling.key);
  Rulings first;
  Rulings last;
  for (const auto& ruling : derived) {
    const bool right_master = wrong.count(std::string(kMasterPrefix) + ruling.key) == 0;
    (right_master ? first : last).push_back(ruling);
  }
  first.insert(first.end(), state.begin(), state.end());
  first.insert(first.end(), last.begin(), last.end());
  return first;
}

Inventory merged(const Inventory& a, const Inventory& b) {
  Inventory all;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(all));
  return all;
}

std::vector<Undefined> padding(const sim::TrainingJob& job, const StateDict& saved) {
  std::vector<Undefined> undefined;
  for (const auto& leaf : saved.tensors) {
    for (const Box& box : job.padding_of(leaf.key)) undefined.push_back({leaf.key, box});
  }
  return undefined;
}

template <class T>
std::string printed(const T& value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

std::string printed(const std::optional<std::int64_t>& step) {
  return step ? std::to_string(*step) : "none";
}

}  // namespace

RankJudge::RankJudge(const RankPart& part, RankRecord& record)
    : scenario_(part.scenario),
      incarnation_(part.incarnation),
      rank_(part.ports.fabric.rank()),
      twins_(part.twins),
      record_(record),
      twin_(twins_.twin(config_of(scenario_, incarnation_))),
      saves_(part.past.saves),
      position_{.incarnation = incarnation_,
                .layout = scenario_.incarnations[incarnation_].layout} {}

void RankJudge::loaded(sim::TrainingJob& job, const FinishedLoad& load) {
  record_.loads.push_back({load.report.location.step ? load.report.location.step->value : -1,
                           load.requested, load.stored, load.report.excused});
  judge_source(load.report.location.step);
  const SavePoint* source = save_told_by(load.state.common, job.iteration());
  if (source == nullptr) {
    add({{Defect::kStaleBytes, "",
          "the job is at step " + printed(job.iteration()) + " and no save was made there",
          rank_}});
    position_.step = job.iteration();
  } else {
    source_ = *source;
    holders_.reset();
    position_.load(*source);
    judge_common(load.state.common, *source);
    judge_objects(load.state, *source);
  }
  compare(job, "right after the load");
}

/// The newest checkpoint that was surely committed, or a later one; an older one where the scenario
/// allows it.
void RankJudge::judge_source(std::optional<Step> location) {
  if (saves_.empty()) return;
  const auto outcome = location ? outcome_of(saves_, *location) : std::nullopt;
  if (record_.loads.size() == 1 && incarnation_ > 0) record_.outcome = outcome;
  const auto& allowed = scenario_.expect.outcomes;
  if (outcome && std::find(allowed.begin(), allowed.end(), *outcome) != allowed.end()) return;
  const auto newest = newest_certain(saves_);
  add({{Defect::kStaleBytes, "",
        "the checkpoint of step " + (location ? printed(*location) : "unknown") +
            " was loaded, and the newest is of step " +
            (newest < 0 ? "none" : printed(saves_[static_cast<std::size_t>(newest)].step)),
        rank_}});
}

void RankJudge::refused(sim::TrainingJob& job) {
  const bool untouched = incarnation_ > 0 && record_.loads.empty();
  const auto before = untouched
                          ? twins_.twin(unloaded_config_of(scenario_, incarnation_))->state(Step{0})
                          : twin_->state(job.iteration());
  const StateDict own = job.model_space();
  add(held_against(*before, own, "after the refused load").rulings);
}

void RankJudge::stepped(const sim::StepRecord& own, const sim::AppliedSamples& applied) {
  judge_samples(applied);
  if (own.skipped) {
    position_.skip();
  } else {
    position_.train(1);
  }
  const sim::StepRecord other = twin_->record(own.step);
  record_.trajectory.push_back({.step = own.step.value,
                                .loss = static_cast<double>(own.loss) * kLossUnit,
                                .lr = own.lr,
                                .loss_scale = own.loss_scale,
                                .uninterrupted_loss = static_cast<double>(other.loss) * kLossUnit,
                                .uninterrupted_lr = other.lr,
                                .uninterrupted_loss_scale = other.loss_scale});
  if (own == other) return;
  add({{Defect::kTrajectoryDivergence, "",
        "the job's step is " + printed(own) + ", the uninterrupted one's " + printed(other),
        rank_}});
}

/// Each iteration of the uninterrupted job takes the next samples, whether it trains on them or
/// not.
void RankJudge::judge_samples(const sim::AppliedSamples& applied) {
  const std::int64_t batch = sim::Progress{}.global_batch_size;
  const sim::SampleRange right{position_.step.value * batch, batch};
  if (applied.samples == right) return;
  const auto text = [](const sim::SampleRange& range) {
    return std::to_string(range.first) + " to " + std::to_string(range.first + range.count - 1);
  };
  add({{Defect::kDataStreamSkip, "",
        "iteration " + std::to_string(position_.step.value + 1) + " takes the samples " +
            text(applied.samples) + ", and without interruption it takes " + text(right),
        rank_}});
}

void RankJudge::held(const std::string& what, std::uint64_t bytes, std::uint64_t bound) {
  if (bytes <= bound) return;
  add({{Defect::kMemPeak, "",
        what + " held " + std::to_string(bytes) + " bytes beside the job's own, and may hold " +
            std::to_string(bound),
        rank_}});
}

void RankJudge::contradict(const std::string& what) {
  add({{Defect::kVerdictDisagreement, "", what, rank_}});
}

void RankJudge::trained(sim::TrainingJob& job) {
  compare(job, "after " + std::to_string(job.iteration().value) + " steps");
}

void RankJudge::saving(sim::TrainingJob& job, const StateDict& saved, const SaveAction& plan) {
  const bool whole = plan.optimizer && plan.random;
  const StateDict live = job.live_state(parts_of(plan));
  add(judge_inventory(keys_of(live), keys_of(saved), keys_of(whole ? job.load_template() : live),
                      {}));
  add(judge_common_inventory(live.common, saved.common));
  record_.audits.push_back(audit_page(rank_, job.iteration(), saved, padding(job, saved)));
  saves_.push_back(position_.save(plan.random));
  saves_.back().certain = false;
  record_.saves.push_back({saves_.back(), {}, keys_of(live), {}, false});
}

void RankJudge::saved(const SaveReport& report, Inventory stored) {
  saves_.back().certain = true;
  SaveEvidence& evidence = record_.saves.back();
  evidence.point = saves_.back();
  evidence.stored = std::move(stored);
  evidence.reused = report.planned == Planned::kReused;
}

void RankJudge::save_failed(const Error& error) {
  if (record_.saves.empty()) return;
  record_.saves.back().code = name_of(error.code());
}

void RankJudge::compare(sim::TrainingJob& job, const std::string& when) {
  const auto expected = twin_->state(job.iteration());
  const StateDict own = job.model_space();
  const RankState held{rank_, &own};
  const StateEvidence evidence = held_against(*expected, own, when);
  Rulings derived = judge_derived(held).rulings;
  if (derived.empty()) derived = judge_derived(held, *expected).rulings;
  add(explained(evidence.rulings, derived));
  add(judge_streams(rank_, own, scenario_.seed, position_.ages));
  record_.absent = merged(record_.absent, evidence.absent);
}

StateEvidence RankJudge::held_against(const GlobalState& expected, const StateDict& own,
                                      const std::string& when) {
  JudgeOptions options{.asked = Asked::kItsPart, .comparable = sim::layout_free};
  for (const auto& object : own.objects) {
    if (is_stream(object.key)) options.skipped_objects.push_back(object.key);
  }
  options.suspects = suspects();
  StateEvidence evidence = judge_state(expected, {rank_, &own}, options);
  count(evidence, own);
  keep_first(evidence, when);
  return evidence;
}

void RankJudge::count(const StateEvidence& evidence, const StateDict& own) {
  total_.append(evidence.compared);
  reports::RankResult& result = record_.result;
  result.compared += evidence.tensors + evidence.values;
  result.elements = total_.elements;
  result.bit_mismatches = total_.bit_mismatches;
  result.max_delta = total_.max_delta;
  result.owns = std::any_of(own.tensors.begin(), own.tensors.end(),
                            [](const TensorLeaf& leaf) { return !leaf.pieces.empty(); });
}

void RankJudge::keep_first(const StateEvidence& evidence, const std::string& when) {
  if (!evidence.first || record_.first_difference) return;
  const auto& first = *evidence.first;
  record_.first_difference =
      reports::FirstDifference{.rank = first.rank.value,
                               .key = first.key,
                               .index = {first.index.begin(), first.index.end()},
                               .saved = first.saved,
                               .loaded = first.loaded,
                               .comes_from = first.comes_from + " (" + when + ")"};
}

/// Objects that no training moves, such as the sizes of buckets, against what a job of the saving
/// layout has.
void RankJudge::judge_objects(const StateDict& loaded, const SavePoint& expected) {
  std::map<std::string, const Value*> values;
  std::set<std::string> keys;
  for (const auto& leaf : loaded.objects) {
    if (is_stream(leaf.key) || leaf.key == kRerunKey) continue;
    const std::string key = object_key(leaf.key, leaf.coordinate, leaf.grid);
    values[key] = &leaf.value;
    keys.insert(key);
  }
  const auto saved = objects_of(config_of(scenario_, expected.incarnation), keys);
  for (const auto& [key, value] : saved) {
    for (const auto& differing : differences(value, *values.at(key), 1)) {
      add({{Defect::kLostObject, key + differing.path,
            "it was saved as " + differing.left + " and is loaded as " + differing.right, rank_}});
    }
  }
}

/// Of the saves that may stand at that step the one that the checkpoint says it is; the newest, to
/// be held against it, where it is none of them.
const SavePoint* RankJudge::save_told_by(const Value& common, Step step) const {
  const auto may_stand = saves_that_may_stand(saves_, step);
  if (may_stand.empty()) return nullptr;
  if (may_stand.size() == 1) return may_stand.front();
  const sim::CommonState stored = sim::decode_common(common);
  const auto told = std::find_if(may_stand.begin(), may_stand.end(),
                                 [&](const SavePoint* save) { return tells_of(stored, *save); });
  return told == may_stand.end() ? may_stand.front() : *told;
}

bool RankJudge::tells_of(const sim::CommonState& stored, const SavePoint& save) const {
  const sim::JobConfig config = config_of(scenario_, save.incarnation);
  return stored.layout == save.layout && stored.optimizer_sharding == config.optimizer_sharding &&
         stored.identity.run == config.run && stored.identity.parent_step == save.parent_step &&
         stored.parts.random == save.random;
}

/// As it came from the checkpoint: the job takes only what it knows of. Who saved it, under which
/// layout, come from where, never enters the training, so the twin can't tell; the scenario does.
void RankJudge::judge_common(const Value& common, const SavePoint& expected) {
  const auto twin = twins_.twin(config_of(scenario_, expected.incarnation));
  for (const auto& differing : differences(sim::layout_free(twin->state(expected.step)->common),
                                           sim::layout_free(common), 1)) {
    add({{Defect::kLostObject, "common" + differing.path,
          "it was saved as " + differing.left + " and is loaded as " + differing.right, rank_}});
  }
  const sim::CommonState stored = sim::decode_common(common);
  if (!(stored.layout == expected.layout)) {
    add({{Defect::kLayoutMismatch, "common['args']",
          "the checkpoint says that it was saved under " + to_string(stored.layout) +
              ", and it was under " + to_string(expected.layout),
          rank_}});
  }
  const std::string sharding = config_of(scenario_, expected.incarnation).optimizer_sharding;
  if (stored.optimizer_sharding != sharding) {
    add({{Defect::kLayoutMismatch, "common['optimizer']['param_state_sharding_type']",
          "the checkpoint says that its optimizer state is " + stored.optimizer_sharding +
              ", and it is " + sharding,
          rank_}});
  }
  sim::RunIdentity right{.run = config_of(scenario_, expected.incarnation).run,
                         .parent_step = expected.parent_step,
                         .engine = config_of(scenario_, incarnation_).engine,
                         .optional = stored.identity.optional};
  if (stored.identity == right) return;
  const auto text = [](const sim::RunIdentity& identity) {
    return "run '" + identity.run + "' from step " + printed(identity.parent_step) + " by '" +
           identity.engine + "'";
  };
  add({{Defect::kLostObject, "common['reprise']",
        "the checkpoint says that it is of " + text(stored.identity) + ", and it is of " +
            text(right),
        rank_}});
}

void RankJudge::add(const Rulings& rulings) {
  for (const auto& ruling : rulings) {
    record_.rulings.push_back({std::string(name_of(ruling.defect)), printed(ruling)});
  }
}

Suspects RankJudge::suspects() {
  if (!source_) return {};
  return {.holders =
              [this](const std::string& key) {
                if (!holders_) holders_ = holders_of(config_of(scenario_, source_->incarnation));
                const auto found = holders_->find(key);
                return found == holders_->end() ? std::vector<Holder>{} : found->second;
              },
          .others = [this] { return other_states(); }};
}

/// Earlier saves, the step before, and what the job had before it loaded.
std::vector<OtherState> RankJudge::other_states() {
  std::set<Step> steps;
  for (const auto& save : saves_) steps.insert(save.step);
  if (position_.step.value > 0) steps.insert(Step{position_.step.value - 1});
  steps.erase(position_.step);
  std::vector<OtherState> others;
  for (const Step step : steps) {
    others.push_back({"of step " + printed(step), twin_->state(step), Defect::kStaleBytes});
  }
  if (incarnation_ > 0) {
    others.push_back({"before the load, which left it as it was",
                      twins_.twin(unloaded_config_of(scenario_, incarnation_))->state(Step{0}),
                      Defect::kBitMismatch});
  }
  return others;
}

}  // namespace reprise::driver
