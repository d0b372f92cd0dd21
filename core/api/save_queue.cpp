#include "reprise/save.hpp"

#include <algorithm>
#include <deque>
#include <string>
#include <tuple>
#include <utility>

#include "core/base/caught.hpp"

namespace reprise {
namespace {

/// The options that together name the checkpoint of a save.
using Place = std::tuple<std::string, std::optional<std::int64_t>, std::string>;

struct InFlight {
  SaveInFlight save;
  Place place;
  SaveQueue::OnEnd on_end;
};

bool is_committed(SaveInFlight& save) { return save.poll(); }
bool waits(SaveInFlight& /*save*/) { return true; }

}  // namespace

struct SaveQueue::Saves {
  std::size_t most;
  std::deque<InFlight> all = {};  ///< oldest first

  /// Ends the oldest save if `ends` says so. False if that save is still in flight.
  bool end_oldest(bool (*ends)(SaveInFlight&)) {
    EndedSave end;
    try {
      if (!ends(all.front().save)) return false;
      end.result = all.front().save.finish();
    } catch (const std::exception& caught) {
      end = {.result = {}, .error = error_from(caught)};
    }
    const OnEnd on_end = std::move(all.front().on_end);
    all.pop_front();  // destroys the save; waits for the background work of a failed save
    on_end(end);
    return true;
  }
};

SaveQueue::SaveQueue(std::size_t in_flight_max)
    : saves_(std::make_unique<Saves>(Saves{.most = in_flight_max})) {
  if (in_flight_max == 0) {
    throw Error(Code::kUsage, "in_flight_max: a queue needs room for at least one save");
  }
}

SaveQueue::~SaveQueue() = default;

void SaveQueue::begin(Job& job, const State& state, const SaveOptions& options,
                      const OnEnd& on_end) {
  begin(
      options, [&] { return begin_save(job, state, options); }, on_end);
}

void SaveQueue::begin(const SaveOptions& options, const std::function<SaveInFlight()>& save,
                      const OnEnd& on_end) {
  const Place place{options.directory, options.step, options.step_names};
  auto& all = saves_->all;
  const auto is_there = [&place](const InFlight& one) { return one.place == place; };
  while (all.size() >= saves_->most || std::any_of(all.begin(), all.end(), is_there)) {
    saves_->end_oldest(waits);
  }
  std::optional<Error> refused;
  try {
    all.push_back({save(), place, on_end});
  } catch (const std::exception& caught) {
    refused = error_from(caught);
  }
  if (refused) on_end({.result = {}, .error = refused});
}

void SaveQueue::wait_for_staging() {
  for (auto& one : saves_->all) one.save.wait_for_staging();
}

void SaveQueue::poll() {
  while (!saves_->all.empty() && saves_->end_oldest(is_committed)) continue;
}

void SaveQueue::finalize() {
  while (!saves_->all.empty()) saves_->end_oldest(waits);
}

std::size_t SaveQueue::in_flight() const { return saves_->all.size(); }

std::uint64_t SaveQueue::bound_staging() const {
  std::uint64_t sum = 0;
  for (const auto& one : saves_->all) sum += one.save.bound_staging();
  return sum;
}

}  // namespace reprise
