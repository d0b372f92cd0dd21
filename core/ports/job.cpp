#include "reprise/job.hpp"

#include <utility>

#include "core/ports/job_state.hpp"
#include "reprise/error.hpp"

namespace reprise {
namespace {

JobPorts complete(JobPorts ports) {
  if (!ports.store || !ports.fabric || !ports.device || !ports.tasks) {
    throw Error(Code::kUsage, "a job needs a store, a fabric, a device and tasks");
  }
  if (!ports.trace) ports.trace = std::make_shared<NoTrace>();
  return ports;
}

const JobState& live(const std::shared_ptr<JobState>& state) {
  if (state) return *state;
  throw Error(Code::kUsage, "job: it was moved from; assign to it before you use it again");
}

}  // namespace

Job::Job(JobPorts ports)
    : state_(
          std::make_shared<JobState>(JobState{.own = complete(std::move(ports)), .all = nullptr})) {
  Fabric& fabric = *state_->own.fabric;
  state_->all = fabric.communicator(Group::world(fabric.world_size()));
}

Job::Job(std::shared_ptr<JobState> state) : state_(std::move(state)) {}
Job::Job(Job&&) noexcept = default;
Job& Job::operator=(Job&&) noexcept = default;
Job::~Job() = default;

GlobalRank Job::rank() const { return live(state_).own.fabric->rank(); }
std::int32_t Job::world_size() const { return live(state_).own.fabric->world_size(); }
Ports Job::ports() const { return live(state_).ports(); }

}  // namespace reprise
