#include "core/save/save_queue.hpp"

#include <algorithm>
#include <utility>

#include "core/base/caught.hpp"
#include "core/base/check.hpp"
#include "core/ports/store_path.hpp"

namespace reprise {
namespace {

bool ended(Save& save, SaveReport& report) {
  if (!save.poll()) return false;
  report = save.finish();
  return true;
}

bool waited_for(Save& save, SaveReport& report) {
  report = save.finish();
  return true;
}

}  // namespace

SaveQueue::SaveQueue(std::size_t in_flight_max, Begin begin)
    : in_flight_max_(in_flight_max), begin_(std::move(begin)) {
  CHECK(in_flight_max_ > 0);
}

SaveQueue::~SaveQueue() = default;

bool SaveQueue::end_oldest(bool (*try_to_end)(Save&, SaveReport&)) {
  EndedSave end;
  try {
    if (!try_to_end(saves_.front().save, end.report)) return false;
  } catch (const std::exception& caught) {
    end = {.report = {}, .error = error_from(caught)};
  }
  const OnEnd on_end = std::move(saves_.front().on_end);
  saves_.pop_front();  // destroys the save; waits for the background work of a failed save
  on_end(end);
  return true;
}

void SaveQueue::begin(const Ports& ports, std::shared_ptr<Communicator> group,
                      const StateDict& state, SaveSettings options, const OnEnd& on_end) {
  const auto same_place = [&options](const InFlight& one) {
    return one.directory == options.target.directory;
  };
  while (saves_.size() >= in_flight_max_ || std::any_of(saves_.begin(), saves_.end(), same_place)) {
    end_oldest(waited_for);
  }
  std::string directory = options.target.directory;
  for (const InFlight& one : saves_) {
    if (options.target.claim.root) break;
    options.target.claim.root = one.save.root_lock(ports.store, parent_path(directory));
  }
  std::optional<Error> refused;
  try {
    saves_.push_back(
        {begin_(ports, std::move(group), state, std::move(options)), std::move(directory), on_end});
  } catch (const std::exception& caught) {
    refused = error_from(caught);
  }
  if (refused) on_end({.report = {}, .error = refused});
}

void SaveQueue::wait_for_staging() {
  for (auto& one : saves_) one.save.wait_for_staging();
}

void SaveQueue::poll() {
  while (!saves_.empty() && end_oldest(ended)) continue;
}

void SaveQueue::finalize() {
  while (!saves_.empty()) end_oldest(waited_for);
}

std::uint64_t SaveQueue::bound_staging() const {
  std::uint64_t sum = 0;
  for (const auto& one : saves_) sum += one.save.bound_staging();
  return sum;
}

}  // namespace reprise
