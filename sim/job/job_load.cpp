// The part of the job that builds load requests and takes loaded state.

#include <algorithm>
#include <set>
#include <utility>

#include "core/agree/agreement.hpp"
#include "core/base/codes.hpp"
#include "core/base/print.hpp"
#include "reprise/error.hpp"
#include "sim/job/job.hpp"

namespace reprise::sim {
namespace {

bool has_buckets(const RequestNames& asked) {
  return asked.metadata.optimizer_sharding == Sharding::kDpReshardable;
}

/// Returns the unpadded sizes of this job's buckets.
Value unpadded_of(const OptimizerShard& optimizer) {
  List numbers;
  for (const auto& bucket : optimizer.table().buckets) numbers.emplace_back(bucket.unpadded);
  return numbers;
}

void check_buckets(const ObjectLeaf& object, const Module& module, const Family& family) {
  const OptimizerShard& optimizer = family.foreign ? *family.foreign : *family.optimizer;
  const std::string key = module.asked.keys.before +
                          bucket_group_prefix(family.prefix, family.bucket_group) +
                          std::string(kUnpaddedSizes);
  if (!has_buckets(module.asked)) return;
  if (object.key != key || object.value == unpadded_of(optimizer)) return;
  throw Error(
      Code::kLayoutMismatch,
      "the checkpoint's buckets are not this job's: they hold other numbers of elements; "
      "dp_reshardable state loads only where the parameters of each model-parallel rank are "
      "the same",
      {.key = object.key});
}

bool is_in(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string names_of(std::span<const ModuleConfig> modules) {
  std::vector<std::string> names;
  for (const auto& module : modules) names.push_back(module.name);
  return join(names, ", ");
}

[[noreturn]] void refuse_foreign(const CommonState& stored, std::span<const ModuleConfig> own,
                                 const JobConfig& config) {
  const auto what = [](std::span<const ModuleConfig> modules) {
    if (modules.size() == 1 && modules.front().name.empty()) {
      return "model " + modules.front().model;
    }
    std::vector<std::string> each;
    for (const auto& module : modules) each.push_back(module.name + " (" + module.model + ")");
    return "of the modules " + join(each, ", ");
  };
  const bool other_run = stored.identity.run != config.identity.run &&
                         !is_in(config.identity.adopts, stored.identity.run);
  throw Error(passed_on::kForeignCheckpoint,
              "the checkpoint is of run '" + stored.identity.run + "', " + what(stored.modules) +
                  "; this job is run '" + config.identity.run + "', " + what(own) +
                  (other_run ? ", and adopts no other run of that name" : ""));
}

/// Refuses another run's checkpoint, or returns a note if the job names that run.
std::optional<std::string> require_own(const CommonState& stored, std::span<const ModuleConfig> own,
                                       const JobConfig& config) {
  const std::string& run = stored.identity.run;
  const bool same_run = run == config.identity.run;
  const bool one_model = own.size() == 1 && own.front().name.empty();
  if ((!same_run && !is_in(config.identity.adopts, run)) || stored.is_one_model() != one_model) {
    refuse_foreign(stored, own, config);
  }
  for (const auto& module : own) {
    const ModuleConfig* other = module_named(stored.modules, module.name);
    if (other != nullptr && other->model != module.model) refuse_foreign(stored, own, config);
  }
  if (same_run) return std::nullopt;
  return "the checkpoint is of run '" + run + "' and is adopted by run '" + config.identity.run +
         "'";
}

/// Accepts another version's checkpoint like one's own, with a note.
std::optional<std::string> told_of_engine(const CommonState& stored, const JobConfig& config) {
  const std::string& engine = stored.identity.engine;
  if (engine == config.identity.engine) return std::nullopt;
  return "the checkpoint was written by '" + engine + "', and this is '" + config.identity.engine +
         "'";
}

/// Refuses modules that one side lacks, or adds a note on each if the job names them.
void require_modules(std::span<const ModuleConfig> stored, std::span<const ModuleConfig> own,
                     const LoadChoice& choice, std::vector<std::string>& notes) {
  for (const auto& module : own) {
    if (module_named(stored, module.name) != nullptr) continue;
    if (!is_in(choice.adds, module.name)) {
      throw Error(Code::kNotStored,
                  "the checkpoint has no module " + module.name + ", it has " + names_of(stored) +
                      "; name it among those that are added to begin it anew",
                  {.key = module_prefix(module.name)});
    }
    notes.push_back("the checkpoint has no module " + module.name + ": it begins anew");
  }
  for (const auto& module : stored) {
    if (module_named(own, module.name) != nullptr) continue;
    if (!is_in(choice.drops, module.name)) {
      throw Error(Code::kNotRequested,
                  "the checkpoint has a module " + module.name + ", this job has " + names_of(own) +
                      "; name it among those that are dropped to do without it",
                  {.key = module_prefix(module.name)});
    }
    notes.push_back("the module " + module.name + " of the checkpoint is left behind");
  }
}

bool is_random_key(std::string_view key) {
  return key.ends_with(kRngKey);  // includes kExpertRngKey
}
/// Keys of a job that is one model, or bare keys.
bool is_plain_optimizer_key(std::string_view key) {
  if (key.starts_with("chained_")) key.remove_prefix(std::min(key.find('.') + 1, key.size()));
  return key.starts_with("optimizer.");
}

/// Excuses the keys of the checkpoint for which `left` is true, objects' without their grids.
void excuse(const Catalog* catalog, const std::function<bool(const std::string&)>& left,
            std::vector<std::string>& excused) {
  if (catalog == nullptr) return;
  std::set<std::string> keys;
  for (const auto& tensor : catalog->tensors) keys.insert(tensor.key);
  for (const auto& object : catalog->objects) {
    const auto parsed = parse_object_key(object.key);
    keys.insert(parsed ? parsed->key : object.key);
  }
  for (const auto& key : keys) {
    if (left(key)) excused.push_back(key);
  }
}

/// Two records of the sharding must agree; if modules differ there is only one record.
void require_one_sharding(const Value& common, const CommonState& stored) {
  if (!stored.parts.optimizer) return;
  CHECK(!stored.modules.empty());
  const Sharding sharding = stored.modules.front().optimizer_sharding;
  const auto metadata = put_back(common, {sharding, {}});
  if (metadata.optimizer_sharding == sharding) return;
  throw Error(Code::kUnsupported, "the common state names two shardings of the optimizer, " +
                                      std::string(name_of(*metadata.optimizer_sharding)) + " and " +
                                      std::string(name_of(sharding)));
}

/// The sharding in the module's object must be the one in the common state, by which it was read.
void require_same_sharding(const Module& module, const std::string& told,
                           const CommonState& stored) {
  const std::string read_as(
      name_of(module_named(stored.modules, module.config.name)->optimizer_sharding));
  if (told == read_as) return;
  throw Error(
      Code::kLayoutMismatch,
      who(module) + "'s optimizer state says that it is " + told +
          ", and the checkpoint's common state that it is " + read_as,
      {.key = module.asked.keys.settings + settings_key(module.config.name, 0, kShardingType)});
}

void require_dp_alone(const ModuleConfig& stored, const ModuleConfig& own) {
  if (same_parts(stored.layout, own.layout)) return;
  throw Error(Code::kLayoutMismatch,
              "the checkpoint's optimizer state" +
                  (own.name.empty() ? "" : " of module " + own.name) +
                  " is dp_reshardable, saved under " + to_string(stored.layout) +
                  ": it survives a change of dp alone, and this job is " + to_string(own.layout) +
                  "; save it as fully_reshardable for that");
}

/// True if a module's optimizer loads stored state: not if it is, or was, a stub.
bool takes_optimizer(const LoadChoice& taking, const ModuleConfig& own, const ModuleConfig& from) {
  return taking.optimizer && !own.frozen && !from.frozen;
}

/// Handles the optimizer of a module that is newly frozen, or trained again.
void leave_frozen(LoadRequest& request, const ModuleConfig& own,
                  std::span<const ModuleConfig> stored, const Catalog* catalog,
                  const ModulePolicy& policy) {
  const ModuleConfig* from = module_named(stored, own.name);
  if (from == nullptr || from->frozen == own.frozen) return;
  if (from->frozen) {
    request.notes.push_back("module " + own.name +
                            " was not trained: its masters are made of its weights");
    return;
  }
  request.notes.push_back("module " + own.name +
                          " is not trained any more: its optimizer state is left behind");
  excuse(
      catalog,
      [&](const std::string& key) {
        return is_of_optimizer(key) && policy.owner(key, stored) == own.name;
      },
      request.excused);
}

/// Checks all modules: ranks without a part of one refuse it, too.
void require_readable(std::span<const ModuleConfig> stored, std::span<const ModuleConfig> own,
                      const ModulePolicy& policy) {
  for (const auto& module : own) {
    const ModuleConfig* from = module_named(stored, module.name);
    if (from == nullptr || module.frozen || from->frozen) continue;
    const Sharding sharding = policy.sharding(module, *from);
    if (sharding == Sharding::kDpReshardable) require_dp_alone(*from, module);
  }
}

}  // namespace

// --- requesting ---------------------------------------------------------------------------------

void TrainingJob::request_weights(StateDict& wanted, const Making& making) {
  for (auto& family : making.module.families) {
    family.foreign.reset();
    add_stored(wanted, family, making, &JobPolicy::described_load);
  }
}

void TrainingJob::request_optimizer(StateDict& wanted, Sharding stored, const Making& making) {
  const Sharding own = making.module.config.optimizer_sharding;
  for (auto& family : making.module.families) {
    family.foreign.reset();
    add_stored(wanted, family, making, &JobPolicy::described_load);
    if (stored != Sharding::kDpReshardable) {
      add_slots(wanted, family, stored, making, &JobPolicy::described_load);
      continue;
    }
    if (own != stored) {
      family.foreign.emplace(family.parameters, family.sharing, family.optimizer->own(),
                             family.instances, rule_of(stored), *config_.hardware.processor);
    }
    add_buckets(wanted, family, family.foreign ? *family.foreign : *family.optimizer);
  }
}

void TrainingJob::request_settings(StateDict& wanted, Sharding stored, const Making& making) const {
  for (const auto& family : making.module.families) add_settings(wanted, family, stored, making);
}

void TrainingJob::request_random(StateDict& wanted, const ModuleConfig& from,
                                 const Making& making) const {
  StateDict random;
  add_random(random, making);
  for (auto& object : random.objects) {
    const bool expert = object.key.ends_with(kExpertRngKey);
    if (policy_.module.streams(
            {from.layout, making.module.config.layout, expert, config_.training.random_by_dp})) {
      wanted.objects.push_back(std::move(object));
    }
  }
}

/// Excuses random states of all modules that no rank can use, since all ranks must excuse them.
void TrainingJob::leave_random(LoadRequest& request, std::span<const ModuleConfig> from,
                               KeyForm keys) const {
  for (const auto& module : all_modules_) {
    const ModuleConfig* stored = module_named(from, module.name);
    if (stored == nullptr) continue;
    for (const auto kind : {kRngKey, kExpertRngKey}) {
      const bool expert = kind == kExpertRngKey;
      if (expert && !model_named(module.model).has_experts()) continue;
      if (policy_.module.streams(
              {stored->layout, module.layout, expert, config_.training.random_by_dp})) {
        continue;
      }
      const std::string key =
          config_.checkpoint.rng_prefix + keys_of(keys, module.name).streams + std::string(kind);
      request.excused.push_back(key);
      request.notes.push_back("the random states " + key + " are of " + to_string(stored->layout) +
                              " and this job is " + to_string(module.layout) + ": they start anew");
    }
  }
}

void TrainingJob::request_module(LoadRequest& request, const ModuleConfig& from, Making& making) {
  const bool with_optimizer = takes_optimizer(taking_, making.module.config, from);
  StateDict tensors;
  Sharding stored = Sharding::kFullyReshardable;
  if (with_optimizer) {
    stored = policy_.module.sharding(making.module.config, from);
    making.metadata.optimizer_sharding = stored;
    request_optimizer(tensors, stored, making);
  } else {
    request_weights(tensors, making);
  }
  for (auto& leaf : tensors.tensors) {
    leaf.key.insert(0, making.keys.before);
    request.wanted.tensors.push_back(std::move(leaf));
  }
  for (auto& leaf : tensors.objects) {
    leaf.key.insert(0, making.keys.before);
    request.wanted.objects.push_back(std::move(leaf));
  }
  making.module.asked = {making.groups.rng_prefix, making.metadata, making.keys};
  if (with_optimizer && !making.module.is_whole_job()) {
    request_settings(request.wanted, stored, making);
  }
  if (taking_.random) request_random(request.wanted, from, making);
}

/// Excuses stored keys that are not requested for a good reason, with a note for each.
void TrainingJob::leave_behind(LoadRequest& request, const SaveParts& saved,
                               std::span<const ModuleConfig> from, const Stored& stored) const {
  const auto note = [&request](const char* text) { request.notes.emplace_back(text); };
  if (!saved.optimizer) {
    note("the checkpoint has no optimizer state: masters are made of its weights");
  } else if (!taking_.optimizer) {
    note("the checkpoint's optimizer state is left behind: masters are made of its weights");
    excuse(
        stored.catalog,
        [](const std::string& key) { return is_plain_optimizer_key(key) || is_of_optimizer(key); },
        request.excused);
  } else if (!taking_.schedule) {
    note("the checkpoint's schedule is left behind: it starts anew");
  }
  if (!saved.random) {
    note("the checkpoint has no random states: they start anew");
  } else if (!taking_.random) {
    note("the checkpoint's random states are left behind: they start anew");
    excuse(stored.catalog, is_random_key, request.excused);
  }
  if (taking_.finetune) note("the weights are taken, and the job is at iteration 0");
  for (const auto& module : all_modules_) {
    leave_frozen(request, module, from, stored.catalog, policy_.module);
  }
  excuse(
      stored.catalog,
      [this, from](const std::string& key) {
        const std::string owner = policy_.module.owner(key, from);
        return !owner.empty() && is_in(config_.load.drops, owner);
      },
      request.excused);
}

LoadRequest TrainingJob::load_request(const Stored& stored, const JobGroups& given) {
  Basis basis = agreed_basis("load", given, stored.common);
  KeyForm keys = config_.checkpoint.keys;
  std::vector<ModuleConfig> from = all_modules_;
  SaveParts saved;
  LoadRequest request;
  if (stored.common != nullptr) {
    CommonState common = decode_common(*stored.common);
    if (const auto adopted = require_own(common, all_modules_, config_)) {
      request.notes.push_back(*adopted);
    }
    if (const auto engine = told_of_engine(common, config_)) request.notes.push_back(*engine);
    require_modules(common.modules, all_modules_, config_.load, request.notes);
    require_one_sharding(*stored.common, common);
    if (!common.is_one_model() && stored.catalog != nullptr) {
      keys = policy_.module.form(*stored.catalog).value_or(keys);
    }
    from = std::move(common.modules);
    saved = common.parts;
  }
  taking_ = config_.load;
  taking_.finetune = taking_.finetune || stored.release;
  taking_.optimizer = taking_.optimizer && saved.optimizer && !taking_.finetune;
  taking_.random = taking_.random && saved.random && !taking_.finetune;
  if (taking_.optimizer) require_readable(from, all_modules_, policy_.module);
  const JobGroups own = own_groups();
  const JobGroups as_stored = groups_for(keys);
  for (std::size_t m = 0; m < modules_.size(); ++m) {
    Making making = making_of(policy_, m, basis, keys);
    making.catalog = stored.catalog;
    if (making.groups.rng_prefix == own[m].rng_prefix) {
      making.groups.rng_prefix = as_stored[m].rng_prefix;
    }
    const ModuleConfig* source = module_named(from, modules_[m].config.name);
    if (source != nullptr) request_module(request, *source, making);
  }
  if (taking_.random) leave_random(request, from, keys);
  leave_behind(request, saved, from, stored);
  request_rerun(request, stored.common);
  request.wanted = policy_.requested(std::move(request.wanted));
  return request;
}

// --- taking -------------------------------------------------------------------------------------

void TrainingJob::take_random(Module& module, const StateDict& loaded, std::uint64_t seed) {
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
                  {.rank = rank_, .key = object.key});
    }
    if (!module.dp_cp) {
      module.streams.host = streams.front();
      continue;
    }
    const auto& told = module.asked.metadata.dp_cp_group;
    module.streams.host = streams.at(static_cast<std::size_t>(rank_in(told, rank_).value));
    module.streams_over_dp = streams_of(module.dp_cp->group(), streams, told.value());
  }
}

/// Collects the entry of a family's optimizer from the objects and the common state.
OptimizerEntry TrainingJob::entry_of(const Module& module, const Family& family,
                                     const StateDict& loaded) const {
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
  return decode_optimizer(policy_.module.restored(std::move(entry), objects), path);
}

void TrainingJob::take_settings(Module& module, const StateDict& loaded,
                                const CommonState& stored) {
  for (auto& family : module.families) {
    const ModuleConfig& from = *module_named(stored.modules, module.config.name);
    if (!takes_optimizer(taking_, module.config, from)) {
      family.settings = fresh_settings(module, family);
      family.optimizer->rebuild_slots();
      continue;
    }
    OptimizerSettings settings = stored.optimizer;
    if (!module.is_whole_job()) {
      OptimizerEntry entry = entry_of(module, family, loaded);
      require_same_sharding(module, entry.sharding, stored);
      settings = std::move(entry.settings);
    }
    settings.groups =
        policy_.settings.matched({family.settings.groups, settings.groups, who(module)});
    family.settings = std::move(settings);
  }
}

void TrainingJob::take_module(Module& module, const StateDict& loaded, const CommonState& stored) {
  if (module_named(stored.modules, module.config.name) == nullptr) {
    start_anew(module, stored.progress.seed);
    start_streams_anew(module, stored.progress.seed);
    for (auto& family : module.families) family.optimizer->pack_stored(family.parameters);
    return;
  }
  for (const auto& object : loaded.objects) {
    for (const auto& family : module.families) {
      check_buckets(object, module, family);
    }
  }
  take_random(module, loaded, stored.progress.seed);
  take_settings(module, loaded, stored);
}

void TrainingJob::take_progress(const Progress& stored) {
  const Schedule before = progress_.schedule;
  progress_ = taking_.finetune ? initial_progress(stored.seed, config_.training.schedule) : stored;
  progress_.schedule = taking_.optimizer && taking_.schedule
                           ? policy_.settings.schedule(before, stored.schedule)
                           : config_.training.schedule;
}

void TrainingJob::take_values(const StateDict& loaded) {
  const CommonState common = decode_common(loaded.common);
  require_own(common, all_modules_, config_);
  take_progress(common.progress);
  for (auto& module : modules_) {
    take_module(module, loaded, common);
    if (taking_.optimizer && taking_.schedule) continue;
    for (auto& family : module.families) family.settings.apply(progress_.schedule);
  }
  take_rerun(loaded, common);
  parent_step_ = common.progress.iteration;
}

void TrainingJob::take(StateDict& loaded) {
  agree_on(*world_, [&] {
    take_values(loaded);
    return Bytes{};
  });
  const Loaded sources{modules_, *world_};
  for (const auto& step : policy_.refresh(sources)) step.run();
}

// --- going on without a checkpoint --------------------------------------------------------------

TrainingJob::TrainingJob(JobConfig config, Fabric& fabric, TrainingJob&& before)
    : TrainingJob(std::move(config), fabric, JobPolicy{}) {
  CHECK(config_.hardware.processor == before.config_.hardware.processor);
  taking_ = config_.load;
  taking_.optimizer = taking_.optimizer && !taking_.finetune;
  taking_.random = taking_.random && !taking_.finetune;
  const bool with_schedule = taking_.optimizer && taking_.schedule;
  const Progress old = before.progress_;
  take_progress(old);
  for (auto& module : modules_) {
    const auto source = std::find_if(
        before.modules_.begin(), before.modules_.end(),
        [&module](const Module& other) { return other.config.name == module.config.name; });
    start_anew(module, old.seed);
    start_streams_anew(module, old.seed);
    if (source != before.modules_.end()) go_on_as(module, *source);
    if (with_schedule) continue;
    for (auto& family : module.families) family.settings.apply(progress_.schedule);
  }
  data_ = DataIterator({.cursor = progress_.consumed_samples}, config_.rerun.options.iterators);
  parent_step_ = old.iteration;
}

void TrainingJob::go_on_as(Module& module, Module& before) const {
  if (taking_.random) {
    module.streams = before.streams;
    module.streams_over_dp = {before.streams.host};  // of one rank
  }
  for (std::size_t f = 0; f < module.families.size(); ++f) {
    Family& family = module.families[f];
    Family& other = before.families[f];
    for (std::size_t p = 0; p < family.parameters.size(); ++p) {
      family.parameters[p].weight = other.parameters[p].weight.clone();
    }
    family.optimizer->pack_stored(family.parameters);
    if (!takes_optimizer(taking_, module.config, before.config)) {
      family.optimizer->rebuild_slots();
      continue;
    }
    family.optimizer->take_slots(family.parameters, *other.optimizer, *family.group);
    family.settings = other.settings;
  }
}

}  // namespace reprise::sim
