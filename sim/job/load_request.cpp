#include "sim/job/load_request.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "reprise/error.hpp"
#include "sim/job/bucket_leaves.hpp"
#include "sim/job/data/job_groups.hpp"
#include "sim/job/data/state_parts.hpp"
#include "sim/job/extra_tensor.hpp"
#include "sim/job/job_start.hpp"
#include "sim/job/load_checks.hpp"
#include "sim/job/module_leaves.hpp"
#include "sim/job/rerun_checkpoint.hpp"

namespace reprise::sim {
namespace {

bool is_random_key(std::string_view key) {
  return key.ends_with(kRngKey);  // kExpertRngKey ends with kRngKey
}

/// True if the key belongs to optimizer state and has no module prefix. No key has such a prefix if
/// a checkpoint uses bare keys or its job is one model.
bool is_plain_optimizer_key(std::string_view key) {
  if (key.starts_with("chained_")) key.remove_prefix(std::min(key.find('.') + 1, key.size()));
  return key.starts_with("optimizer.");
}

/// Adds to `excused` each key of the checkpoint for which `left` returns true. Calls `left` with an
/// object's key without the coordinate.
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

/// Handles a module that is frozen only in the checkpoint or only in this job. In the first case,
/// adds a note that the masters are made from the weights. In the second case, leaves out the
/// stored optimizer state and adds a note.
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

void request_weights(StateDict& wanted, const ModuleLeaves& leaves) {
  for (auto& family : leaves.making().module.families) {
    family.foreign.reset();
    leaves.add_stored(wanted, family, &JobPolicy::described_load);
  }
}

void request_optimizer(const JobData& job, StateDict& wanted, Sharding stored,
                       const ModuleLeaves& leaves) {
  const Sharding own = leaves.making().module.config.optimizer_sharding;
  for (auto& family : leaves.making().module.families) {
    family.foreign.reset();
    leaves.add_stored(wanted, family, &JobPolicy::described_load);
    if (stored != Sharding::kDpReshardable) {
      leaves.add_slots(wanted, family, stored, &JobPolicy::described_load);
      continue;
    }
    if (own != stored) {
      family.foreign.emplace(family.parameters, family.sharing, family.optimizer->own(),
                             family.instances, rule_of(job, stored),
                             *job.config.hardware.processor);
    }
    add_buckets(wanted, family, family.foreign ? *family.foreign : *family.optimizer);
  }
}

void request_settings(StateDict& wanted, Sharding stored, const ModuleLeaves& leaves) {
  for (const auto& family : leaves.making().module.families) {
    leaves.add_settings(wanted, family, stored);
  }
}

/// If the checkpoint has the stream only as that of a rank alone, which is how ranks write it that
/// each describe their own part, requests it as that.
void ask_as_stored(ObjectLeaf& stream, const Catalog& catalog) {
  const Dims alone = Dims::filled(stream.grid.size(), 1);
  const Dims first = Dims::filled(stream.grid.size(), 0);
  if (catalog.object(stored_key(stream)) != nullptr) return;
  if (catalog.object(object_key(stream.key, first, alone)) == nullptr) return;
  stream.grid = alone;
  stream.coordinate = first;
}

void request_random(const JobData& job, StateDict& wanted, const ModuleConfig& from,
                    const ModuleLeaves& leaves) {
  const Catalog* catalog = leaves.making().catalog;
  StateDict random;
  leaves.add_random(random);
  for (auto& object : random.objects) {
    const bool expert = object.key.ends_with(kExpertRngKey);
    if (job.policy.module.streams({from.layout, leaves.making().module.config.layout, expert,
                                   job.config.training.random_by_dp})) {
      if (catalog != nullptr) ask_as_stored(object, *catalog);
      wanted.objects.push_back(std::move(object));
    }
  }
}

/// Lets the load leave out random states that no rank can use. Considers all modules, because all
/// ranks must leave out the same keys.
void leave_random(const JobData& job, LoadRequest& request, std::span<const ModuleConfig> from,
                  KeyForm keys) {
  for (const auto& module : job.all_modules) {
    const ModuleConfig* stored = module_named(from, module.name);
    if (stored == nullptr) continue;
    for (const auto kind : {kRngKey, kExpertRngKey}) {
      const bool expert = kind == kExpertRngKey;
      if (expert && !model_named(module.model).has_experts()) continue;
      if (job.policy.module.streams(
              {stored->layout, module.layout, expert, job.config.training.random_by_dp})) {
        continue;
      }
      const std::string key =
          job.config.checkpoint.rng_prefix + keys_of(keys, module.name).streams + std::string(kind);
      request.excused.push_back(key);
      request.notes.push_back("the random states " + key + " are of " + to_string(stored->layout) +
                              " and this job is " + to_string(module.layout) + ": they start anew");
    }
  }
}

void request_module(JobData& job, LoadRequest& request, const ModuleConfig& from, Making making) {
  const bool with_optimizer = takes_optimizer(job.taking, making.module.config, from);
  StateDict tensors;
  Sharding stored = Sharding::kFullyReshardable;
  if (with_optimizer) {
    stored = job.policy.module.sharding(making.module.config, from);
    making.metadata.optimizer_sharding = stored;
  }
  const ModuleLeaves leaves(job, making);
  if (with_optimizer) {
    request_optimizer(job, tensors, stored, leaves);
  } else {
    request_weights(tensors, leaves);
  }
  put_before(making.keys.before, tensors);
  append(request.wanted, std::move(tensors));
  making.module.asked = {making.groups.rng_prefix, making.metadata, making.keys};
  if (with_optimizer && !making.module.is_whole_job()) {
    request_settings(request.wanted, stored, leaves);
  }
  if (job.taking.random) request_random(job, request.wanted, from, leaves);
}

/// Lists in `request` the stored keys that the job leaves out on purpose. Adds a note for each
/// reason.
void leave_behind(const JobData& job, LoadRequest& request, const SaveParts& saved,
                  std::span<const ModuleConfig> from, const Stored& stored) {
  const auto note = [&request](const char* text) { request.notes.emplace_back(text); };
  if (!saved.optimizer) {
    note("the checkpoint has no optimizer state: masters are made of its weights");
  } else if (!job.taking.optimizer) {
    note("the checkpoint's optimizer state is left behind: masters are made of its weights");
    excuse(
        stored.catalog,
        [](const std::string& key) { return is_plain_optimizer_key(key) || is_of_optimizer(key); },
        request.excused);
  } else if (!job.taking.schedule) {
    note("the checkpoint's schedule is left behind: it starts anew");
  }
  if (!saved.random) {
    note("the checkpoint has no random states: they start anew");
  } else if (!job.taking.random) {
    note("the checkpoint's random states are left behind: they start anew");
    excuse(stored.catalog, is_random_key, request.excused);
  }
  if (job.taking.finetune) note("the weights are taken, and the job is at iteration 0");
  for (const auto& module : job.all_modules) {
    leave_frozen(request, module, from, stored.catalog, job.policy.module);
  }
  const auto& drops = job.config.load.drops;
  if (drops.empty()) return;
  excuse(
      stored.catalog,
      [&job, &drops, from](const std::string& key) {
        const std::string owner = job.policy.module.owner(key, from);
        return !owner.empty() && std::count(drops.begin(), drops.end(), owner) > 0;
      },
      request.excused);
}

}  // namespace

bool takes_optimizer(const LoadChoice& taking, const ModuleConfig& own, const ModuleConfig& from) {
  return taking.optimizer && !own.frozen && !from.frozen;
}

LoadRequest load_request(JobData& job, const Stored& stored, const JobGroups& given) {
  const Basis basis = agreed_basis(job, GroupCaller::kLoad, given, stored.common);
  KeyForm keys = job.config.checkpoint.keys;
  std::vector<ModuleConfig> from = job.all_modules;
  SaveParts saved;
  LoadRequest request;
  if (stored.common != nullptr) {
    CommonState common = decode_common(*stored.common);
    if (const auto adopted = require_own(common, job.all_modules, job.config)) {
      request.notes.push_back(*adopted);
    }
    if (const auto engine = engine_note(common, job.config)) request.notes.push_back(*engine);
    require_modules(common.modules, job.all_modules, job.config.load, request.notes);
    require_one_sharding(*stored.common, common);
    if (!common.is_one_model() && stored.catalog != nullptr) {
      keys = job.policy.module.form(*stored.catalog).value_or(keys);
    }
    from = std::move(common.modules);
    saved = common.parts;
  }
  job.taking = job.config.load;
  job.taking.finetune = job.taking.finetune || stored.release;
  job.taking.optimizer = job.taking.optimizer && saved.optimizer && !job.taking.finetune;
  job.taking.random = job.taking.random && saved.random && !job.taking.finetune;
  if (job.taking.optimizer) require_readable(from, job.all_modules, job.policy.module);
  const JobGroups own = own_groups(job);
  const JobGroups as_stored = groups_for(job, keys);
  for (std::size_t m = 0; m < job.modules.size(); ++m) {
    Making making = making_of(job, job.policy, m, basis, keys);
    making.catalog = stored.catalog;
    if (making.groups.rng_prefix == own[m].rng_prefix) {
      making.groups.rng_prefix = as_stored[m].rng_prefix;
    }
    const ModuleConfig* source = module_named(from, job.modules[m].config.name);
    if (source != nullptr) request_module(job, request, *source, std::move(making));
  }
  if (job.taking.random) leave_random(job, request, from, keys);
  leave_behind(job, request, saved, from, stored);
  add_extra(job, request.wanted);
  request_rerun(job, request, stored.common);
  request.wanted = job.policy.requested(std::move(request.wanted));
  return request;
}

}  // namespace reprise::sim
