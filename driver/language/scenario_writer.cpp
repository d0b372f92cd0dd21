// Writes scenarios as text.

#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "driver/language/scenario.hpp"
#include "driver/language/scenario_writer.hpp"
#include "driver/trainers/command_step.hpp"
#include "driver/trainers/program_writer.hpp"

namespace reprise::driver {
namespace {

void put(YAML::Emitter& out, const char* key, const std::string& value) {
  out << YAML::Key << key << YAML::Value << value;
}

void put(YAML::Emitter& out, const char* key, std::int64_t value) {
  out << YAML::Key << key << YAML::Value << value;
}

template <class Items>
void put_list(YAML::Emitter& out, const char* key, const Items& items) {
  out << YAML::Key << key << YAML::Value << YAML::Flow << YAML::BeginSeq;
  for (const auto& item : items) out << item;
  out << YAML::EndSeq;
}

template <class Values>
void put_names(YAML::Emitter& out, const char* key, const Values& values) {
  std::vector<std::string> names;
  for (const auto value : values) names.emplace_back(name_of(value));
  put_list(out, key, names);
}

void put_groups(YAML::Emitter& out, const char* key, const sim::GroupSet& groups) {
  std::vector<std::string> names;
  for (const auto argument : sim::arguments_of(groups)) names.emplace_back(argument);
  put_list(out, key, names);
}

/// Writes a layout. Always writes the rank order, because a layout without an order keeps the order
/// of the life before.
void put_layout(YAML::Emitter& out, const sim::Layout& layout) {
  const sim::Layout one;
  out << YAML::Key << "layout" << YAML::Value << YAML::Flow << YAML::BeginMap;
  put(out, "order", layout.order);
  const auto put_size = [&](std::string_view name) {
    if (layout.size_of(name) == one.size_of(name)) return;
    put(out, std::string(name).c_str(), std::int64_t{layout.size_of(name)});
  };
  for (const auto name : sim::kAxisNames) put_size(name);
  for (const auto name : sim::kFurtherSizes) put_size(name);
  if (!layout.stage_layers.empty()) put_list(out, "stage_layers", layout.stage_layers);
  out << YAML::EndMap;
}

void put_flag(YAML::Emitter& out, const char* key, bool value) {
  out << YAML::Key << key << YAML::Value << value;
}

/// Writes a module. Omits the loss scale and `frozen` if they have their default values.
void put_module(YAML::Emitter& out, const sim::ModuleConfig& module) {
  const sim::LossScale usual;
  out << YAML::Key << module.name << YAML::Value << YAML::Flow << YAML::BeginMap;
  put(out, "model", module.model);
  put_layout(out, module.layout);
  std::vector<std::int32_t> ranks;
  for (const auto rank : module.ranks) ranks.push_back(rank.value);
  put_list(out, "ranks", ranks);
  put(out, "sharding", std::string(name_of(module.optimizer_sharding)));
  if (module.loss_scale.scale != usual.scale) {
    put(out, "loss_scale", static_cast<std::int64_t>(module.loss_scale.scale));
  }
  if (module.loss_scale.growth_interval != usual.growth_interval) {
    put(out, "growth_interval", module.loss_scale.growth_interval);
  }
  if (module.frozen) put_flag(out, "frozen", true);
  out << YAML::EndMap;
}

/// Writes the layout of a job that is one model. For other jobs, writes the modules with their
/// ranks.
void put_grids(YAML::Emitter& out, const IncarnationPlan& plan) {
  if (plan.modules.empty()) return put_layout(out, plan.layout);
  out << YAML::Key << "modules" << YAML::Value << YAML::BeginMap;
  for (const auto& module : plan.modules) put_module(out, module);
  out << YAML::EndMap;
}

/// Writes those settings of a life that later lives inherit.
void put_life(YAML::Emitter& out, const IncarnationPlan& plan) {
  put(out, "rerun", plan.rerun ? std::string(sim::name_of(*plan.rerun)) : "unknown");
  if (plan.modules.empty()) put_list(out, "ranks", plan.ranks);
  put(out, "groups", std::string(name_of(plan.groups)));
  put_groups(out, "lacks", plan.lacks);
  put(out, "fallback", std::string(name_of(plan.fallback)));
  put_groups(out, "forbids", plan.forbids);
  put(out, "run", plan.run);
  put(out, "engine", plan.engine);
  put_flag(out, "skips", plan.skips);
  put(out, "format", std::string(sim::name_of(plan.format)));
  put(out, "rerun_template",
      plan.rerun_template == sim::RerunTemplate::kForced ? "forced" : "stored");
  put(out, "iterators", plan.iterators == sim::Wrapping::kPlain ? "plain" : "wrapped");
}

std::string life_text(const IncarnationPlan& plan) {
  YAML::Emitter out;
  out << YAML::BeginMap;
  put_life(out, plan);
  out << YAML::EndMap;
  return out.c_str();
}

/// Writes the life's settings, or nothing if all lives have the defaults.
void put_life_of_one(YAML::Emitter& out, const Scenario& scenario, const IncarnationPlan& plan) {
  const std::string usual = life_text({});
  const auto is_usual = [&usual](const auto& each) { return life_text(each) == usual; };
  if (!std::all_of(scenario.incarnations.begin(), scenario.incarnations.end(), is_usual)) {
    put_life(out, plan);
  }
}

/// Writes the forms of keys and groups, or nothing if all lives have the defaults.
void put_forms_of_one(YAML::Emitter& out, const Scenario& scenario, const IncarnationPlan& plan) {
  const auto& all = scenario.incarnations;
  const bool usual = std::all_of(all.begin(), all.end(), [](const IncarnationPlan& each) {
    return !each.plain_first && each.keys == sim::KeyForm::kPrefixed;
  });
  if (usual) return;
  put(out, "group_order", plan.plain_first ? "plain_first" : "decayed_first");
  put(out, "keys", std::string(sim::name_of(plan.keys)));
}

void put_load_choice(YAML::Emitter& out, const sim::LoadChoice& choice) {
  if (!choice.optimizer) put_flag(out, "no_load_optim", true);
  if (!choice.schedule) put_flag(out, "no_load_scheduler", true);
  if (!choice.random) put_flag(out, "no_load_rng", true);
  if (choice.finetune) put_flag(out, "finetune", true);
  if (!choice.adds.empty()) put_list(out, "adds", choice.adds);
  if (!choice.drops.empty()) put_list(out, "drops", choice.drops);
}

void put_schedule(YAML::Emitter& out, const sim::Schedule& schedule) {
  if (schedule == sim::Schedule{}) return;
  out << YAML::Key << "schedule" << YAML::Value << YAML::Flow << YAML::BeginMap;
  put(out, "lr_warmup_steps", schedule.lr_warmup_steps);
  put(out, "lr_decay_steps", schedule.lr_decay_steps);
  put(out, "wd_incr_steps", schedule.wd_incr_steps);
  put(out, "lr_decay_style", std::string(name_of(schedule.lr_decay_style)));
  out << YAML::Key << "max_lr" << YAML::Value << YAML::Precision(17) << schedule.max_lr;
  out << YAML::Key << "min_lr" << YAML::Value << YAML::Precision(17) << schedule.min_lr;
  out << YAML::EndMap;
}

void put_job(YAML::Emitter& out, const Scenario& scenario) {
  out << YAML::Key << "job" << YAML::Value << YAML::BeginMap;
  const IncarnationPlan& first = scenario.incarnations.front();
  if (first.modules.empty()) put(out, "model", scenario.model);
  put_grids(out, first);
  out << YAML::Key << "optimizer" << YAML::Value << YAML::Flow << YAML::BeginMap;
  put(out, "kind", "adam");
  put(out, "sharding", std::string(name_of(scenario.optimizer_sharding)));
  if (scenario.shard_dim != 0) put(out, "dim", scenario.shard_dim);
  out << YAML::EndMap;
  put(out, "seed", static_cast<std::int64_t>(scenario.seed));
  if (scenario.ranks_per_node > 0) {
    put(out, "ranks_per_node", std::int64_t{scenario.ranks_per_node});
  }
  if (scenario.rerun_samples > 0) put(out, "rerun_samples", scenario.rerun_samples);
  if (scenario.extra_tensor) put_flag(out, "extra_tensor", true);
  if (scenario.random_by_dp) put_flag(out, "random_by_dp", true);
  if (scenario.groups_differ_in != Scenario{}.groups_differ_in) {
    put(out, "groups_differ_in", std::string(name_of(scenario.groups_differ_in)));
  }
  put_schedule(out, scenario.schedule);
  put_life_of_one(out, scenario, first);
  put_forms_of_one(out, scenario, first);
  out << YAML::EndMap;
}

void put_lie(YAML::Emitter& out, const std::optional<Lie>& lie) {
  if (!lie) return;
  out << YAML::Key << "lie" << YAML::Value << YAML::Flow << YAML::BeginMap;
  put(out, "rank", std::int64_t{lie->rank});
  put(out, "about", std::string(name_of(lie->about)));
  out << YAML::EndMap;
}

void put_restart(YAML::Emitter& out, const Scenario& scenario, const IncarnationPlan& plan) {
  out << YAML::BeginMap << YAML::Key << "restart" << YAML::Value << YAML::Flow << YAML::BeginMap;
  put_grids(out, plan);
  put(out, "sharding", std::string(name_of(plan.optimizer_sharding)));
  put_life_of_one(out, scenario, plan);
  put_forms_of_one(out, scenario, plan);
  put_load_choice(out, plan.load);
  if (plan.other_device) put(out, "on", "other_device");
  if (!plan.adopts.empty()) put_list(out, "adopts", plan.adopts);
  if (plan.fails) put(out, "fails", std::string(name_of(*plan.fails)));
  if (!plan.fails_says.empty()) put(out, "fails_says", plan.fails_says);
  put_lie(out, plan.lie);
  out << YAML::EndMap << YAML::EndMap;
}

/// Writes an action as a step. Omits default values.
struct ActionWriter {
  YAML::Emitter& out;

  void operator()(const TrainAction& train) const {
    if (train.save_interval == 0) {
      only("train", train.steps);
      return;
    }
    begin("train");
    put(out, "steps", train.steps);
    put(out, "save_interval", train.save_interval);
    end();
  }
  void operator()(const LoadAction& /*load*/) const { out << "load"; }
  void operator()(const ReleaseAction& /*release*/) const { out << "release"; }
  void operator()(const OwnMetadataAction& /*own*/) const { out << "own_metadata"; }
  void operator()(const ReshardAction& reshard) const {
    begin("reshard");
    if (reshard.ranks != 0) put(out, "ranks", reshard.ranks);
    if (reshard.writers != 1) put(out, "writers", reshard.writers);
    if (reshard.fails) put(out, "fails", std::string(name_of(*reshard.fails)));
    end();
  }
  void operator()(const DiffAction& diff) const {
    begin("diff");
    if (diff.step) put(out, "step", *diff.step);
    if (diff.with) put(out, "with", *diff.with);
    if (!diff.ignore.empty()) put_list(out, "ignore", diff.ignore);
    put(out, "says", std::string(name_of(diff.says)));
    end();
  }
  void operator()(const FinalizeAction& /*finalize*/) const { out << "finalize"; }
  void operator()(const ReallocateAction& /*reallocate*/) const { out << "reallocate"; }
  void operator()(const SaveAction& save) const {
    if (save == SaveAction{}) {
      out << "save";
      return;
    }
    begin("save");
    if (!save.optimizer) put_flag(out, "no_optim", true);
    if (!save.random) put_flag(out, "no_rng", true);
    if (save.kind != SaveAction{}.kind) put(out, "kind", std::string(name_of(save.kind)));
    if (const auto fails = to_string(save.fails); !fails.empty()) put(out, "fails", fails);
    if (save.async) put_flag(out, "async", *save.async);
    if (!save.checksums) put(out, "checksums", "none");
    put_lie(out, save.lie);
    end();
  }
  void operator()(const BadResultAction& bad) const {
    begin("bad_result");
    put(out, "kind", std::string(sim::name_of(bad.kind)));
    put_list(out, "ranks", bad.ranks);
    put_flag(out, "fatal", bad.fatal);
    if (bad.value != sim::BadValue::kNaN) {
      put(out, "value", std::string(sim::name_of(bad.value)));
    }
    if (bad.call != 0) put(out, "call", bad.call);
    if (bad.run != 0) put(out, "run", bad.run);
    end();
  }
  void operator()(const ExitAction& exits) const {
    if (!exits.saves) {
      only("exits", exits.code);
      return;
    }
    begin("exits");
    put(out, "code", std::int64_t{exits.code});
    put_flag(out, "saves", *exits.saves);
    end();
  }
  void operator()(const FaultAction& fault) const {
    begin("fault");
    put(out, "kind", std::string(sim::name_of(fault.kind)));
    put(out, "rank", std::int64_t{fault.rank});
    if (!fault.phase.empty()) put(out, "phase", fault.phase);
    if (!fault.step.empty()) put(out, "step", fault.step);
    put(out, "moment", std::string(sim::name_of(fault.moment)));
    if (fault.nth != 0) put(out, "nth", fault.nth);
    if (fault.file) put(out, "file", std::string(sim::name_of(*fault.file)));
    if (fault.delay_ms != 0) put(out, "delay_ms", fault.delay_ms);
    if (fault.bit != 0) put(out, "bit", fault.bit);
    if (fault.fires != Fires::kYes) {
      put(out, "fires", fault.fires == Fires::kNo ? "no" : "maybe");
    }
    end();
  }
  void operator()(const DamageAction& damage) const {
    begin("damage");
    put(out, "what", std::string(sim::name_of(damage.what)));
    if (damage.rank != 0) put(out, "rank", std::int64_t{damage.rank});
    if (damage.step) put(out, "step", *damage.step);
    if (damage.remove) {
      put_flag(out, "remove", true);
    } else if (damage.cut) {
      put(out, "cut", *damage.cut);
    } else if (damage.from) {
      put(out, "from", *damage.from);
      if (!damage.keys.empty()) put(out, "keys", damage.keys);
    } else {
      put(out, "byte", damage.byte);
      put(out, "bit", std::int64_t{damage.bit});
    }
    end();
  }

 private:
  void only(const char* key, std::int64_t number) const {
    out << YAML::BeginMap;
    put(out, key, number);
    out << YAML::EndMap;
  }
  void begin(const char* key) const {
    out << YAML::BeginMap << YAML::Key << key << YAML::Value << YAML::Flow << YAML::BeginMap;
  }
  void end() const { out << YAML::EndMap << YAML::EndMap; }
};

void put_steps(YAML::Emitter& out, const Scenario& scenario) {
  out << YAML::Key << "steps" << YAML::Value << YAML::BeginSeq;
  for (std::size_t i = 0; i < scenario.incarnations.size(); ++i) {
    const IncarnationPlan& plan = scenario.incarnations[i];
    if (plan.command) {
      put_command_life(out, *plan.command);
    } else if (i > 0) {
      put_restart(out, scenario, plan);
    }
    for (const auto& action : scenario.incarnations[i].actions) {
      std::visit(ActionWriter{out}, action);
    }
  }
  out << YAML::EndSeq;
}

void put_expect(YAML::Emitter& out, const Expectation& expect) {
  out << YAML::Key << "expect" << YAML::Value << YAML::Flow << YAML::BeginMap;
  put(out, "max_delta", std::int64_t{0});
  put(out, "against", "uninterrupted");
  if (expect.refusal) put(out, "refused", std::string(name_of(*expect.refusal)));
  if (!expect.refusal_says.empty()) put(out, "refused_says", expect.refusal_says);
  if (expect.elements_least > 0) {
    put(out, "elements_at_least", static_cast<std::int64_t>(expect.elements_least));
  }
  if (!expect.every_rank_owns) put(out, "ranks_own", "some");
  if (expect.outcomes != Expectation{}.outcomes) put_names(out, "outcome", expect.outcomes);
  if (expect.loaded_step) put(out, "loaded_step", *expect.loaded_step);
  if (expect.diagnosis) put(out, "diagnosis", std::string(name_of(*expect.diagnosis)));
  if (expect.replans) put(out, "replans", static_cast<std::int64_t>(*expect.replans));
  if (expect.skipped) put_list(out, "skipped", *expect.skipped);
  if (!expect.rates.empty()) {
    out << YAML::Key << "learning_rates" << YAML::Value << YAML::Flow << YAML::BeginMap;
    for (const auto& [step, rate] : expect.rates) {
      out << YAML::Key << step << YAML::Value << YAML::Precision(17) << rate;
    }
    out << YAML::EndMap;
  }
  if (!expect.log.empty()) put_list(out, "log", expect.log);
  if (!expect.silent.empty()) put_list(out, "silent", expect.silent);
  if (expect.empty_ranks) put(out, "empty_ranks", *expect.empty_ranks);
  out << YAML::EndMap;
}

void put_store(YAML::Emitter& out, const StoreCapabilities& store) {
  out << YAML::Key << "store" << YAML::Value << YAML::Flow << YAML::BeginMap;
  put_flag(out, "exchange", store.exchange);
  put_flag(out, "locks", store.locks);
  put_flag(out, "renames", store.renames);
  put_flag(out, "lists_lag", store.lists_lag);
  out << YAML::EndMap;
}

void put_checkpoint(YAML::Emitter& out, const CheckpointPlan& plan) {
  if (plan == CheckpointPlan{}) return;
  out << YAML::Key << "checkpoint" << YAML::Value << YAML::Flow << YAML::BeginMap;
  put(out, "strictness", std::string(name_of(plan.strictness)));
  if (plan.keeps_plan) put_flag(out, "assume_constant_structure", true);
  if (!plan.optimizer) put_flag(out, "no_save_optim", true);
  if (!plan.random) put_flag(out, "no_save_rng", true);
  if (plan.keep > 0) put(out, "keep", plan.keep);
  if (plan.falls_back) put(out, "fall_back", "newest_whole");
  if (plan.checks) put(out, "checksums", "verified");
  if (plan.reads_once) put(out, "reads", "once_per_job");
  if (plan.async) put_flag(out, "async", true);
  if (plan.late) put(out, "background", "late");
  if (plan.in_flight != CheckpointPlan{}.in_flight) put(out, "in_flight", plan.in_flight);
  if (plan.staging_bytes > 0) put(out, "staging_bytes", plan.staging_bytes);
  if (plan.batch_bytes > 0) put(out, "batch_bytes", plan.batch_bytes);
  if (plan.crash) put(out, "crash", std::string(name_of(*plan.crash)));
  if (plan.store != CheckpointPlan{}.store) put_store(out, plan.store);
  out << YAML::EndMap;
}

void put_lanes(YAML::Emitter& out, const Scenario& scenario) {
  if (scenario.lanes_reason.empty()) return;
  std::vector<std::string> names;
  for (const auto lane : scenario.lanes) names.emplace_back(name_of(lane));
  put_list(out, "lanes", names);
  put(out, "lanes_reason", scenario.lanes_reason);
}

void put_recorded(YAML::Emitter& out, const Recorded& recorded) {
  out << YAML::Key << "recorded" << YAML::Value << YAML::BeginMap;
  put(out, "verdict", recorded.verdict);
  if (!recorded.code.empty()) put(out, "code", recorded.code);
  if (recorded.first_difference) {
    const RecordedDifference& first = *recorded.first_difference;
    out << YAML::Key << "first_difference" << YAML::Value << YAML::BeginMap;
    put(out, "rank", std::int64_t{first.rank});
    put(out, "key", first.key);
    put_list(out, "index", first.index);
    put(out, "saved", first.saved);
    put(out, "loaded", first.loaded);
    out << YAML::EndMap;
  }
  if (!recorded.event_hash.empty()) put(out, "event_hash", recorded.event_hash);
  if (!recorded.commit.empty()) put(out, "commit", recorded.commit);
  if (!recorded.build.empty()) put(out, "build", recorded.build);
  if (!recorded.mutant.empty()) put(out, "mutant", recorded.mutant);
  put(out, "seed", static_cast<std::int64_t>(recorded.seed));
  out << YAML::EndMap;
}

std::string text_of(const YAML::Emitter& out) { return std::string(out.c_str()) + "\n"; }

bool begins_top_level_key(const std::string& line) {
  return !line.empty() && line[0] != ' ' && line[0] != '\t' && line[0] != '#' && line[0] != '\r';
}

}  // namespace

std::string to_yaml(const Scenario& scenario) {
  YAML::Emitter out;
  out << YAML::BeginMap;
  put(out, "proves", scenario.proves);
  put(out, "name", scenario.name);
  if (!scenario.tags.empty()) put_list(out, "tags", scenario.tags);
  if (scenario.program) {
    put_program(out, *scenario.program);
    if (scenario.recorded) put_recorded(out, *scenario.recorded);
    out << YAML::EndMap;
    return text_of(out);
  }
  put_job(out, scenario);
  put_checkpoint(out, scenario.checkpoint);
  put_steps(out, scenario);
  put_expect(out, scenario.expect);
  if (!scenario.caught.empty()) put_list(out, "caught", scenario.caught);
  put_lanes(out, scenario);
  if (scenario.recorded) put_recorded(out, *scenario.recorded);
  out << YAML::EndMap;
  return text_of(out);
}

std::string with_record(const std::string& text, const Recorded& recorded) {
  std::string kept;
  bool inside = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string line = text.substr(at, end - at);
    if (begins_top_level_key(line)) inside = line.starts_with("recorded:");
    if (!inside) kept += line;
    at = end;
  }
  if (!kept.empty() && kept.back() != '\n') kept += '\n';
  YAML::Emitter out;
  out << YAML::BeginMap;
  put_recorded(out, recorded);
  out << YAML::EndMap;
  return kept + text_of(out);
}

}  // namespace reprise::driver
