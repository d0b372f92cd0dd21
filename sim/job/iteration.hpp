#pragma once
// Runs an iteration of the job, and runs it again if its results require that.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/job/data/job_data.hpp"
#include "sim/job/data/step_agreement.hpp"
#include "sim/job/data/step_record.hpp"

namespace reprise::sim {

class Iteration {
 public:
  /// `job` must outlive this object.
  explicit Iteration(JobData& job) : job_(job) {}

  /// Collective over the world: runs the next iteration. All ranks exit or continue together.
  StepOutcome run();

 private:
  StepRecord skip_iteration();
  std::int64_t own_loss(const TrainingProgress& at) const;
  void validate(std::string_view what, int call, double right);
  void validate_results(std::int64_t own, std::int64_t loss, const TrainingProgress& at);
  RunEnd run_once(TrainingProgress& at, std::int64_t& loss);
  void rewind(bool again);
  void report_statistics(std::vector<std::string>& notes);
  std::vector<ModuleStep> own_steps(const TrainingProgress& at, std::int64_t loss) const;
  std::size_t index_of(const Module& module) const;
  void update_own(const TrainingProgress& at, std::int64_t loss, const StepAgreement& agreed);
  StepRecord record_of(const TrainingProgress& at, std::int64_t loss,
                       const StepAgreement& agreed) const;
  StepRecord update(const TrainingProgress& at, std::int64_t loss);

  JobData& job_;
};

}  // namespace reprise::sim
