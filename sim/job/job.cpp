#include "sim/job/job.hpp"

#include <utility>

#include "reprise/error.hpp"
#include "sim/job/bucket_leaves.hpp"
#include "sim/job/data/job_groups.hpp"
#include "sim/job/iteration.hpp"
#include "sim/job/job_memory.hpp"
#include "sim/job/job_start.hpp"
#include "sim/job/job_state.hpp"
#include "sim/job/load_intake.hpp"

namespace reprise::sim {

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

void TrainingJob::reallocate() { sim::reallocate(job_); }

std::vector<ByteSpan> TrainingJob::memory() { return sim::memory(job_); }

std::vector<Box> TrainingJob::padding_of(const std::string& key) const {
  return sim::padding_of(job_, key);
}

void TrainingJob::take(StateDict& loaded) { sim::take(job_, loaded); }

}  // namespace reprise::sim
