#include "sim/job/job.hpp"

#include <utility>

#include "reprise/error.hpp"
#include "sim/job/bucket_leaves.hpp"
#include "sim/job/data/job_groups.hpp"
#include "sim/job/iteration.hpp"
#include "sim/job/job_start.hpp"
#include "sim/job/job_state.hpp"
#include "sim/job/load_intake.hpp"
#include "sim/job/optimizer/slots.hpp"

namespace reprise::sim {
namespace {

template <class T>
Moved move_elsewhere(Array<T>& array) {
  Array<T> before = std::exchange(array, array.clone());
  return {.now = array.address_of(0), .bytes = array.size_bytes(), .old = before.memory()};
}

}  // namespace

TrainingJob::TrainingJob(JobConfig config, Fabric& fabric, JobPolicy policy)
    : job_(started(std::move(config), fabric, policy)) {}

TrainingJob::TrainingJob(JobConfig config, Fabric& fabric, TrainingJob&& before)
    : TrainingJob(std::move(config), fabric, JobPolicy{}) {
  go_on_from(job_, before.job_);
}

StepOutcome TrainingJob::advance() { return Iteration(job_).run(); }

StepRecord TrainingJob::step() {
  const StepOutcome outcome = advance();
  CHECK(!outcome.exit.has_value(), outcome.exit->code, outcome.exit->why);
  return *outcome.record;
}

StateDict TrainingJob::live_state(const SaveParts& parts) { return sim::live_state(job_, parts); }

StateDict TrainingJob::model_space() { return sim::model_space(job_); }

JobGroups TrainingJob::own_groups() const { return sim::own_groups(job_); }

JobGroups TrainingJob::given_groups() const { return sim::given_groups(job_); }

StateDict TrainingJob::state(const JobGroups& given, const SaveParts& parts) {
  return saved_state(job_, given, parts);
}

LoadRequest TrainingJob::load_request(const Stored& stored, const JobGroups& given) {
  return sim::load_request(job_, stored, given);
}

void TrainingJob::reallocate() {
  for (auto& module : job_.modules) {
    for (auto& family : module.families) {
      for (auto& parameter : family.parameters)
        job_.moved.push_back(move_elsewhere(parameter.weight));
      for (const Slot slot : kSlots) {
        job_.moved.push_back(move_elsewhere(family.optimizer->slot(slot)));
      }
      job_.moved.push_back(move_elsewhere(family.optimizer->stored()));
    }
  }
  if (job_.extra.size() > 0) job_.moved.push_back(move_elsewhere(job_.extra));
}

std::vector<ByteSpan> TrainingJob::memory() {
  std::vector<ByteSpan> all;
  const auto add = [&all](const auto& array) {
    if (array.size() > 0) all.emplace_back(array.address_of(0), array.size_bytes());
  };
  const auto add_shard = [&add](OptimizerShard& shard) {
    for (const Slot slot : kSlots) add(shard.slot(slot));
    add(shard.stored());
  };
  for (auto& module : job_.modules) {
    for (auto& family : module.families) {
      for (const auto& parameter : family.parameters) add(parameter.weight);
      add_shard(*family.optimizer);
      if (family.foreign) add_shard(*family.foreign);
    }
  }
  add(job_.extra);
  for (const auto& moved : job_.moved) all.emplace_back(moved.old.get(), moved.bytes);
  return all;
}

std::vector<Box> TrainingJob::padding_of(const std::string& key) const {
  return sim::padding_of(job_, key);
}

void TrainingJob::take(StateDict& loaded) { sim::take(job_, loaded); }

}  // namespace reprise::sim
