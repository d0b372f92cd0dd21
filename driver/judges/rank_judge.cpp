#include "driver/judges/rank_judge.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <sstream>

#include "core/base/print.hpp"
#include "driver/judges/rng_judge.hpp"
#include "driver/judges/schedule_judge.hpp"
#include "driver/record/job_config.hpp"
#include "properties/derived.hpp"
#include "properties/finding_code.hpp"
#include "properties/inventory.hpp"
#include "properties/unsettled.hpp"
#include "reprise/error.hpp"
#include "sim/job/model/on_host.hpp"

namespace reprise::driver {
namespace {

constexpr double kLossUnit = 1.0 / (1 << 20);
/// True for objects that training changes. judge_objects() skips them; they are judged after the
/// job has taken the loaded state.
bool lives_on(const std::string& key) {
  constexpr std::array<std::string_view, 4> kEnds = {"rerun_state_machine_state", ".param_groups",
                                                     ".grad_scaler", ".optimizer"};
  return is_stream(key) ||
         std::any_of(kEnds.begin(), kEnds.end(), [&key](auto end) { return key.ends_with(end); });
}

/// Orders findings so that causes come before effects. If a derived copy is wrong although its
/// master is right, the copy was not updated. This explains wrong weights, so findings on such
/// copies come before findings on the state.
Findings explained(const Findings& state, const Findings& derived) {
  std::set<std::string> wrong;
  for (const auto& finding : state) wrong.insert(finding.key);
  Findings first;
  Findings last;
  for (const auto& finding : derived) {
    const bool right_master = wrong.count(std::string(kMasterPrefix) + finding.key) == 0;
    (right_master ? first : last).append(finding);
  }
  first.append(state);
  first.append(last);
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

/// Removes the entries that a save without the optimizer does not write.
void leave_out_optimizer(Value& common) {
  std::erase_if(*common.as<Dict>(), [](const auto& entry) {
    return entry.first == Value("optimizer") || entry.first == Value("opt_param_scheduler");
  });
}

/// True if the modules have equal values of those properties that a common state records. Other
/// properties are not compared.
bool same_modules(const std::vector<sim::ModuleConfig>& stored,
                  const std::vector<sim::ModuleConfig>& saved) {
  return sim::same_grids(stored, saved) &&
         std::all_of(stored.begin(), stored.end(), [&saved](const auto& module) {
           return sim::module_named(saved, module.name)->optimizer_sharding ==
                  module.optimizer_sharding;
         });
}

/// True if the scenario allows the load to ignore this key of the checkpoint. `now` is the job's
/// position after the load.
bool may_stay_behind(const std::string& key, const SavePoint& source, const Position& now,
                     const sim::LoadChoice& choice) {
  const std::string module = sim::owner_of(key, source.modules);
  const auto* own = sim::module_named(now.modules(), module);
  const bool weights_alone = choice.finetune || source.release;
  if (key == "rerun_state_machine_state") {
    return weights_alone || !sim::same_grids(source.modules, now.modules()) ||
           // Two lives may run the rerun machine in different modes.
           source.life != now.life();
  }
  if (own == nullptr) return std::count(choice.drops.begin(), choice.drops.end(), module) > 0;
  if (is_stream(key)) {
    const auto age = now.ages.find(module);
    const bool expert = key.ends_with(sim::kExpertRngKey);
    return age == now.ages.end() || (expert ? age->second.expert : age->second.host) == 0;
  }
  const auto* from = sim::module_named(source.modules, module);
  const bool stub = own->frozen && from != nullptr && !from->frozen;
  return (weights_alone || !choice.optimizer || stub) &&
         key.find("optimizer.") != std::string::npos;
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
    : Finder(record.findings, {.rank = part.ports.fabric.rank()}),
      scenario_(part.scenario),
      life_(part.life),
      rank_(part.ports.fabric.rank()),
      references_(part.references),
      processor_(part.processor),
      record_(record),
      reference_(reference_after({})),
      saves_(part.past.saves),
      saves_before_(saves_.size()),
      position_(scenario_, life_) {}

void RankJudge::filled(const StateDict& loaded) {
  const sim::OnHost own(processor_, loaded);
  findings_.append(judge_settled({rank_, &own.state()}));
}

void RankJudge::loaded(sim::TrainingJob& job, const FinishedLoad& load) {
  record_.loads.push_back({load.report.step.value_or(-1), load.requested, load.stored,
                           load.report.excused, load.bytes_read, load.bytes_allowed});
  const Step stored{sim::decode_common(load.state.common).progress.iteration};
  // The directory's name contains no step if the checkpoint is a release.
  judge_source(load.report.step ? Step{*load.report.step} : stored);
  const SavePoint* source = save_told_by(load.state.common, stored);
  if (source == nullptr) {
    find(judged::kStaleBytes,
         "the job is at step " + printed(job.iteration()) + " but no save was made there");
    position_.step = job.iteration();
  } else {
    source_ = *source;
    holders_.reset();
    position_.load(*source);
    reference_ = reference_after(position_.turns);
    judge_excused(load.report.excused, *source);
    judge_common(load.state.common, *source);
    judge_objects(load.state, *source);
  }
  compare(job, "right after the load");
}

/// Requires that the load used the newest checkpoint that was certainly committed, or a newer one.
/// An older checkpoint is accepted only if the scenario allows it.
void RankJudge::judge_source(Step location) {
  if (saves_.empty()) return;
  const auto outcome = outcome_of(saves_, location);
  if (record_.loads.size() == 1 && life_ > 0) record_.outcome = outcome;
  const auto& allowed = scenario_.expect.outcomes;
  if (outcome && std::find(allowed.begin(), allowed.end(), *outcome) != allowed.end()) return;
  const auto at = newest_certain(saves_);
  const auto newest = at < 0 ? std::optional<Step>() : saves_[static_cast<std::size_t>(at)].step;
  const std::string loaded = "the checkpoint of step " + printed(location) + " was loaded, ";
  find(judged::kStaleBytes,
       loaded + (newest == location
                     ? "the newest, but the scenario expects another outcome"
                     : "but the newest is of step " + (newest ? printed(*newest) : "none")));
}

void RankJudge::refused(sim::TrainingJob& job) {
  const bool untouched = life_ > 0 && record_.loads.empty();
  const auto before = untouched
                          ? references_.get(unloaded_config_of(scenario_, life_))->state(Step{0})
                          : reference_->state(job.iteration());
  const StateDict whole = job.model_space();
  const sim::OnHost own(processor_, whole);
  findings_.append(held_against(*before, own.state(), "after the refused load").findings);
}

void RankJudge::asks(const StateDict& wanted) {
  destination_ = Destination(sim::OnHost(processor_, wanted).state());
}

void RankJudge::refused_while_read(const StateDict& wanted) {
  const sim::OnHost own(processor_, wanted);
  const RefusalEvidence evidence = destination_.refused(rank_, own.state());
  findings_.append(evidence.findings);
  reports::RankResult& result = record_.result;
  result.compared += evidence.tensors;
  result.elements += evidence.elements;
  result.owns = evidence.elements > 0;
}

void RankJudge::stepped(const sim::StepRecord& own, const sim::AppliedSamples& applied) {
  judge_samples(applied);
  if (own.skipped) {
    position_.skip();
  } else {
    position_.train(1);
  }
  for (std::size_t i = 0; i < record_.saves.size(); ++i) {
    SaveEvidence& save = record_.saves[i];
    if (save.point.certain || save.code) continue;
    saves_[saves_before_ + i].beside = ++save.point.beside;
  }
  const sim::StepRecord other = reference_->record(own.step);
  record_.trajectory.push_back({.step = own.step.value,
                                .loss = static_cast<double>(own.loss) * kLossUnit,
                                .lr = own.lr,
                                .loss_scale = own.loss_scale,
                                .uninterrupted_loss = static_cast<double>(other.loss) * kLossUnit,
                                .uninterrupted_lr = other.lr,
                                .uninterrupted_loss_scale = other.loss_scale});
  if (own == other) return;
  find(judged::kTrajectoryDivergence,
       "the job's step is " + printed(own) + ", but the uninterrupted one's is " + printed(other));
}

/// Requires that the iteration used the same samples as in the uninterrupted job. Each iteration of
/// the uninterrupted job uses the next batch, even an iteration that does not train.
void RankJudge::judge_samples(const sim::AppliedSamples& applied) {
  const std::int64_t batch = sim::TrainingProgress{}.global_batch_size;
  const sim::SampleRange right{position_.step.value * batch, batch};
  if (applied.samples == right) return;
  const auto text = [](const sim::SampleRange& range) {
    return std::to_string(range.first) + " to " + std::to_string(range.first + range.count - 1);
  };
  find(judged::kDataStreamSkip, "iteration " + std::to_string(position_.step.value + 1) +
                                    " takes the samples " + text(applied.samples) +
                                    ", but without interruption it takes " + text(right));
}

void RankJudge::held(const std::string& what, std::uint64_t bytes, std::uint64_t bound) {
  if (bytes <= bound) return;
  find(judged::kMemPeakExceeded, what + " held " + with_commas(bytes) +
                                     " bytes besides the job's own, but may hold only " +
                                     with_commas(bound));
}

void RankJudge::contradict(const std::string& what) { find(judged::kVerdictDisagreement, what); }

void RankJudge::trained(sim::TrainingJob& job) {
  compare(job, "after " + std::to_string(job.iteration().value) + " steps");
}

std::size_t RankJudge::saving(sim::TrainingJob& job, const StateDict& saved,
                              const SaveAction& plan) {
  const bool whole = plan.optimizer && plan.random;
  const StateDict live = job.live_state(parts_of(plan));
  const bool asks_for_all = whole && scenario_.lives[life_].load == sim::LoadChoice{};
  findings_.append(judge_inventory(keys_of(live), keys_of(saved),
                                   keys_of(asks_for_all ? job.load_template() : live), {}));
  findings_.append(judge_common_inventory(live.common, saved.common));
  const sim::OnHost own(processor_, saved);
  const auto undefined = padding(job, own.state());
  record_.audits.push_back(audit_page(rank_, job.iteration(), own.state(), undefined));
  judge_handed_over(live, record_.audits.back(), undefined);
  judge_shapes(live, saved);
  saves_.push_back(position_.save(plan));
  saves_.back().certain = false;
  SaveEvidence evidence{saves_.back(), {}, keys_of(live), {}, false};
  for (const auto& hole : undefined) evidence.padded.push_back(hole.key);
  record_.saves.push_back(std::move(evidence));
  return record_.saves.size() - 1;
}

/// Compares the job's state with the state that it passes to the save. Skips tensors whose boxes
/// differ between the two states; differing boxes are judged elsewhere.
void RankJudge::judge_handed_over(const StateDict& live, const AuditPage& handed,
                                  std::span<const Undefined> undefined) {
  const sim::OnHost own(processor_, live);
  const AuditPage held = audit_page(rank_, Step{handed.step}, own.state(), undefined);
  const auto by_key = [](const AuditPage& page) {
    std::map<std::string, std::vector<const HeldItem*>> items;
    for (const auto& item : page.items) {
      if (item.box.ndim() > 0) items[item.key].push_back(&item);
    }
    return items;
  };
  const auto right = by_key(held);
  for (const auto& [key, items] : by_key(handed)) {
    const auto at = right.find(key);
    const bool same_boxes =
        at != right.end() &&
        std::equal(items.begin(), items.end(), at->second.begin(), at->second.end(),
                   [](const auto* a, const auto* b) { return a->box == b->box; });
    for (std::size_t i = 0; same_boxes && i < items.size(); ++i) {
      if (items[i]->hashes == at->second[i]->hashes) continue;
      find(judged::kStaleBytes, key,
           "what is passed to the save of step " + printed(Step{handed.step}) +
               " is not what the job holds" + differing_elements(*at->second[i], *items[i]));
      break;
    }
  }
}

/// Requires that the job passes each tensor to the save with the right global shape. A later load
/// can't reveal a wrong shape, because the loading job may request the same wrong shape.
void RankJudge::judge_shapes(const StateDict& live, const StateDict& handed) {
  std::map<std::string, const Dims*> right;
  for (const auto& leaf : live.tensors) right[leaf.key] = &leaf.shape;
  for (const auto& leaf : handed.tensors) {
    const auto own = right.find(leaf.key);
    if (own == right.end() || *own->second == leaf.shape) continue;
    find(Code::kShapeDrift, leaf.key,
         "it is passed to a save as a part of " + printed(leaf.shape) + ", but is a part of " +
             printed(*own->second));
  }
}

void RankJudge::saved(std::size_t save, const SaveResult& report, Inventory stored) {
  saves_[saves_before_ + save].certain = true;
  SaveEvidence& evidence = record_.saves[save];
  evidence.point.certain = true;
  evidence.stored = std::move(stored);
  evidence.reused = report.planned == Planned::kReused;
}

void RankJudge::save_failed(std::size_t save, const Error& error) {
  record_.saves[save].code = error.code();
}

void RankJudge::compare(sim::TrainingJob& job, const std::string& when) {
  const auto expected = reference_->state(job.iteration());
  const StateDict whole = job.model_space();
  const sim::OnHost on_host(processor_, whole);
  const StateDict& own = on_host.state();
  const RankState held{rank_, &own};
  const StateEvidence evidence = held_against(*expected, own, when);
  Findings derived = judge_derived(held).findings;
  if (derived.empty()) derived = judge_derived(held, *expected).findings;
  findings_.append(judge_schedule(rank_, own.common, expected->common));
  findings_.append(explained(evidence.findings, derived));
  findings_.append(
      judge_streams(rank_, own, {scenario_.seed, scenario_.random_by_dp}, position_.ages));
  record_.absent = merged(record_.absent, evidence.absent);
}

StateEvidence RankJudge::held_against(const GlobalState& expected, const StateDict& own,
                                      const std::string& when) {
  JudgeOptions options{.expected = ExpectedTensors::kItsPart, .comparable = sim::layout_free};
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

/// Compares objects that training does not change, such as the sizes of buckets, with the objects
/// of a job that has the layout of the save.
void RankJudge::judge_objects(const StateDict& loaded, const SavePoint& expected) {
  std::map<std::string, const Value*> values;
  std::set<std::string> keys;
  for (const auto& leaf : loaded.objects) {
    judge_groups(leaf);
    if (lives_on(leaf.key)) continue;
    const std::string key = stored_key(leaf);
    values[key] = &leaf.value;
    keys.insert(key);
  }
  const auto saved = objects_of(config_of(scenario_, expected.life), keys);
  for (const auto& [key, value] : saved) {
    for (const auto& differing : differences(value, *values.at(key), 1)) {
      find(judged::kLostObject, key + differing.path,
           "it was saved as " + differing.left + " but is loaded as " + differing.right);
    }
  }
}

/// Requires that `params` of each stored parameter group is empty. In a running job, `params` has
/// indices into the job's own memory, which must not be stored. No other check would notice stored
/// indices, because a loading job ignores them.
void RankJudge::judge_groups(const ObjectLeaf& leaf) {
  const bool wrapped = leaf.key.ends_with(std::string(".") + sim::kWrapper);
  if (!wrapped && !leaf.key.ends_with(std::string(".") + sim::kParamGroups)) return;
  const Value* groups = wrapped ? leaf.value.find(sim::kParamGroups) : &leaf.value;
  const List* list = groups == nullptr ? nullptr : groups->as<List>();
  for (std::size_t g = 0; list != nullptr && g < list->size(); ++g) {
    const Value* params = (*list)[g].find("params");
    if (params == nullptr || *params == Value(List{})) continue;
    find(judged::kLostObject, stored_key(leaf) + "[" + std::to_string(g) + "]['params']",
         "it was saved as [] but is loaded as " + to_string(*params));
  }
}

/// Returns the save that wrote the loaded checkpoint. If several saves wrote a checkpoint of that
/// step, the common state shows which of them is meant. If the common state fits no save, returns
/// the newest save, so that the state is compared with something.
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
  const sim::JobConfig config = config_of(scenario_, save.life);
  return same_modules(stored.modules, save.modules) && stored.identity.run == config.identity.run &&
         stored.identity.parent_step == save.parent_step && stored.parts.random == save.random;
}

/// Judges the common state as it was read from the checkpoint, because the job uses only the
/// entries that it knows. Most entries are compared with those of the reference run. The run,
/// layout and parent of the save are compared with the scenario, because the reference run does not
/// have them.
void RankJudge::judge_common(const Value& common, const SavePoint& expected) {
  const auto reference = reference_after(expected.turns);
  Value right = sim::layout_free(reference->state(expected.step)->common);
  if (!expected.optimizer) leave_out_optimizer(right);
  for (const auto& differing : differences(right, sim::layout_free(common), 1)) {
    find(judged::kLostObject, "common" + differing.path,
         "it was saved as " + differing.left + " but is loaded as " + differing.right);
  }
  const sim::CommonState stored = sim::decode_common(common);
  judge_modules(stored, expected);
  sim::RunIdentity identity{.run = config_of(scenario_, expected.life).identity.run,
                            .parent_step = expected.parent_step,
                            .engine = config_of(scenario_, expected.life).identity.engine,
                            .optional = stored.identity.optional};
  if (stored.identity == identity) return;
  const auto text = [](const sim::RunIdentity& told) {
    return "run '" + told.run + "' from step " + printed(told.parent_step) + " by '" + told.engine +
           "'";
  };
  find(judged::kLostObject, "common['reprise']",
       "the checkpoint says that it is of " + text(stored.identity) + ", but it is of " +
           text(identity));
}

void RankJudge::judge_modules(const sim::CommonState& stored, const SavePoint& expected) {
  if (!sim::same_grids(stored.modules, expected.modules)) {
    find(Code::kLayoutMismatch, "common['args']",
         "the checkpoint says that it was saved under " + sim::to_string(stored.modules) +
             ", but it was under " + sim::to_string(expected.modules));
    return;
  }
  for (const auto& told : stored.modules) {
    if (!stored.parts.optimizer) break;
    const auto& right = *sim::module_named(expected.modules, told.name);
    if (told.optimizer_sharding == right.optimizer_sharding) continue;
    const bool whole = told.name.empty();
    find(Code::kLayoutMismatch,
         whole ? "common['optimizer']['param_state_sharding_type']"
               : "common['args']['modules']['" + told.name + "']['distrib_optim_sharding_type']",
         "the checkpoint says that " + (whole ? "its" : "module " + told.name + "'s") +
             " optimizer state is " + std::string(name_of(told.optimizer_sharding)) +
             ", but it is " + std::string(name_of(right.optimizer_sharding)));
  }
}

/// Reports keys of the checkpoint that the load ignored although the scenario does not allow that.
void RankJudge::judge_excused(const std::vector<std::string>& excused, const SavePoint& source) {
  for (const auto& name : excused) {
    const auto parsed = parse_object_key(name);
    const std::string key = parsed ? parsed->key : name;
    if (may_stay_behind(key, source, position_, scenario_.lives[life_].load)) continue;
    find(judged::kKeysetAsymmetry, name, "the load ignored it by name, but nothing allows that");
  }
}

/// Returns the uninterrupted job with which to compare a job that took these turns. A turn is a
/// load that changes how the job continues, for example a load without the optimizer.
std::shared_ptr<ReferenceRun> RankJudge::reference_after(std::span<const Turn> turns) {
  if (turns.empty()) return references_.get(config_of(scenario_, 0));
  const Turn& last = turns.back();
  sim::JobConfig config = config_of(scenario_, last.life);
  config.load.optimizer = config.load.optimizer && last.optimizer;
  config.load.finetune = config.load.finetune || last.release;
  return references_.get(config, {reference_after(turns.first(turns.size() - 1)), last.at});
}

Suspects RankJudge::suspects() {
  if (!source_) return {};
  return {.holders =
              [this](const std::string& key) {
                if (!holders_) holders_ = holders_of(config_of(scenario_, source_->life));
                const auto found = holders_->find(key);
                return found == holders_->end() ? std::vector<Holder>{} : found->second;
              },
          .others = [this] { return other_states(); }};
}

/// Returns the states in which to search for the value of a wrong element: the states at the steps
/// trained during the loaded save, at the steps of earlier saves and at the previous step, and the
/// state before the load.
std::vector<OtherState> RankJudge::other_states() {
  std::set<Step> steps;
  for (const auto& save : saves_) steps.insert(save.step);
  if (position_.step.value > 0) steps.insert(Step{position_.step.value - 1});
  steps.erase(position_.step);
  std::vector<OtherState> others;
  for (std::int64_t i = 1; source_ && i <= source_->beside; ++i) {
    const Step step{source_->step.value + i};
    if (step == position_.step) continue;
    steps.erase(step);
    others.push_back({"of step " + printed(step) + ", which was trained while it was being saved",
                      reference_->state(step), judged::kTornSnapshot});
  }
  for (const Step step : steps) {
    others.push_back({"of step " + printed(step), reference_->state(step), judged::kStaleBytes});
  }
  if (life_ > 0) {
    others.push_back({"before the load, which left it as it was",
                      references_.get(unloaded_config_of(scenario_, life_))->state(Step{0}),
                      judged::kBitMismatch});
  }
  return others;
}

}  // namespace reprise::driver
