#include "sim/job/load_intake.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "core/agree/agreement.hpp"
#include "reprise/error.hpp"
#include "sim/job/bucket_leaves.hpp"
#include "sim/job/job_start.hpp"
#include "sim/job/load_checks.hpp"
#include "sim/job/load_request.hpp"
#include "sim/job/rerun_checkpoint.hpp"

namespace reprise::sim {
namespace {

void take_random(const JobData& job, Module& module, const StateDict& loaded, std::uint64_t seed) {
  start_streams_anew(module, seed);
  const std::string& prefix = module.asked.rng_prefix;
  for (const auto& object : loaded.objects) {
    if (object.key == prefix + std::string(kExpertRngKey)) {
      module.streams.expert = decode_rng(object.value).front();
    }
    if (object.key != prefix + std::string(kRngKey)) continue;
    const auto streams = decode_rng(object.value);
    if (streams.size() != module.streams_over_dp.size()) {
      throw Error(Code::kLoadRejected,
                  "the random states are of " + std::to_string(streams.size()) +
                      " data-parallel ranks and this job has " +
                      std::to_string(module.streams_over_dp.size()),
                  {.rank = job.rank, .key = object.key});
    }
    if (!module.dp_cp) {
      module.streams.host = streams.front();
      continue;
    }
    const auto& told = module.asked.metadata.dp_cp_group;
    module.streams.host = streams.at(static_cast<std::size_t>(rank_in(told, job.rank).value));
    module.streams_over_dp = streams_of(module.dp_cp->group(), streams, told.value());
  }
}

/// Builds the entry of a family's optimizer from the loaded objects and the common state.
OptimizerEntry entry_of(const JobData& job, const Module& module, const Family& family,
                        const StateDict& loaded, const CommonState& stored) {
  const RequestNames& asked = module.asked;
  std::set<std::string> keys;
  if (has_buckets(asked)) {
    const std::string buckets =
        asked.keys.before + bucket_group_prefix(family.prefix, family.bucket_group);
    keys = {buckets + kWrapper, buckets + kGradScaler};
  }
  for (const char* part : {kParamGroups, kGradScaler, kShardingType}) {
    keys.insert(asked.keys.settings + settings_key(module.config.name, family.chain, part));
  }
  std::vector<ObjectLeaf> objects;
  for (const auto& object : loaded.objects) {
    if (keys.contains(object.key)) objects.push_back(object);
  }
  const std::string path = who(module) + "'s optimizer " + std::to_string(family.chain);
  const Value* all = loaded.common.find(kOptimizerOfModules);
  const Value* own = all == nullptr ? nullptr : all->find(module.config.name);
  Value entry;
  if (const Dict* chains = own == nullptr ? nullptr : own->as<Dict>()) {
    for (const auto& [chain, rest] : *chains) {
      if (chain == Value(static_cast<std::int64_t>(family.chain))) entry = rest;
    }
  }
  const Value restored = job.policy.module.restored(std::move(entry), objects);
  require_same_sharding(module, restored, stored);
  return decode_optimizer(restored, path);
}

void take_settings(const JobData& job, Module& module, const StateDict& loaded,
                   const CommonState& stored) {
  for (auto& family : module.families) {
    const ModuleConfig& from = *module_named(stored.modules, module.config.name);
    if (!takes_optimizer(job.taking, module.config, from)) {
      family.settings = fresh_settings(job, module, family);
      family.optimizer->rebuild_slots();
      continue;
    }
    OptimizerSettings settings = stored.optimizer;
    if (!module.is_whole_job()) {
      OptimizerEntry entry = entry_of(job, module, family, loaded, stored);
      settings = std::move(entry.settings);
    }
    settings.groups =
        job.policy.settings.matched({family.settings.groups, settings.groups, who(module)});
    family.settings = std::move(settings);
  }
}

void take_module(const JobData& job, Module& module, const StateDict& loaded,
                 const CommonState& stored) {
  if (module_named(stored.modules, module.config.name) == nullptr) {
    start_anew(job, module, stored.progress.seed);
    start_streams_anew(module, stored.progress.seed);
    for (auto& family : module.families) family.optimizer->pack_stored(family.parameters);
    return;
  }
  for (const auto& object : loaded.objects) {
    for (const auto& family : module.families) {
      check_buckets(object, module, family);
    }
  }
  take_random(job, module, loaded, stored.progress.seed);
  take_settings(job, module, loaded, stored);
}

void take_progress(JobData& job, const TrainingProgress& stored) {
  const Schedule before = job.progress.schedule;
  job.progress =
      job.taking.finetune ? initial_progress(stored.seed, job.config.training.schedule) : stored;
  job.progress.schedule = job.taking.optimizer && job.taking.schedule
                              ? job.policy.settings.schedule(before, stored.schedule)
                              : job.config.training.schedule;
}

void take_values(JobData& job, const StateDict& loaded) {
  const CommonState common = decode_common(loaded.common);
  require_own(common, job.all_modules, job.config);
  take_progress(job, common.progress);
  for (auto& module : job.modules) {
    take_module(job, module, loaded, common);
    if (job.taking.optimizer && job.taking.schedule) continue;
    for (auto& family : module.families) family.settings.apply(job.progress.schedule);
  }
  take_rerun(job, loaded, common);
  job.parent_step = common.progress.iteration;
}

void go_on_as(const JobData& job, Module& module, Module& before) {
  if (job.taking.random) {
    module.streams = before.streams;
    module.streams_over_dp = {before.streams.host};  // the world has one rank
  }
  for (std::size_t f = 0; f < module.families.size(); ++f) {
    Family& family = module.families[f];
    Family& other = before.families[f];
    for (std::size_t p = 0; p < family.parameters.size(); ++p) {
      family.parameters[p].weight = other.parameters[p].weight.clone();
    }
    family.optimizer->pack_stored(family.parameters);
    if (!takes_optimizer(job.taking, module.config, before.config)) {
      family.optimizer->rebuild_slots();
      continue;
    }
    family.optimizer->take_slots(family.parameters, *other.optimizer, *family.group);
    family.settings = other.settings;
  }
}

}  // namespace

void take(JobData& job, StateDict& loaded) {
  agree_on(*job.world, [&] {
    take_values(job, loaded);
    return Bytes{};
  });
  const Loaded sources{job.modules, *job.world};
  for (const auto& step : job.policy.refresh(sources)) step.run();
}

void go_on_from(JobData& job, JobData& before) {
  CHECK(job.config.hardware.processor == before.config.hardware.processor);
  job.taking = job.config.load;
  job.taking.optimizer = job.taking.optimizer && !job.taking.finetune;
  job.taking.random = job.taking.random && !job.taking.finetune;
  const bool with_schedule = job.taking.optimizer && job.taking.schedule;
  const TrainingProgress old = before.progress;
  take_progress(job, old);
  for (auto& module : job.modules) {
    const auto source = std::find_if(
        before.modules.begin(), before.modules.end(),
        [&module](const Module& other) { return other.config.name == module.config.name; });
    start_anew(job, module, old.seed);
    start_streams_anew(module, old.seed);
    if (source != before.modules.end()) go_on_as(job, module, *source);
    if (with_schedule) continue;
    for (auto& family : module.families) family.settings.apply(job.progress.schedule);
  }
  job.batches =
      DataIterator({.cursor = job.progress.consumed_samples}, job.config.rerun.options.iterators);
  job.parent_step = old.iteration;
}

}  // namespace reprise::sim
