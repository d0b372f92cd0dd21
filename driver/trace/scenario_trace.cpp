#include "driver/trace/scenario_trace.hpp"

#include <vector>

#include "driver/judges/failure.hpp"
#include "driver/record/history.hpp"
#include "driver/trace/life_trace.hpp"

namespace reprise::driver {
namespace {

std::vector<std::string> names_of_ranks(const Scenario& scenario, std::size_t life) {
  const LifePlan& plan = scenario.lives[life];
  const auto modules = modules_of(scenario, life);
  std::vector<std::string> names;
  for (std::int32_t rank = 0; rank < plan.world_size(); ++rank) {
    const std::string place = coordinates_of(modules, rank);
    names.push_back("rank " + std::to_string(rank) + (place.empty() ? "" : " = " + place) +
                    (plan.has_member(rank) ? "" : ", not a member"));
  }
  return names;
}

}  // namespace

void ScenarioTrace::add(std::size_t life, const sim::Recording& recording) {
  const TracedLife traced{.number = first_number_ + static_cast<std::uint32_t>(life),
                          .name = scenario_.name + ", life " + std::to_string(life) + ": " +
                                  sim::to_string(modules_of(scenario_, life)),
                          .begin_ns = next_begin_ns_,
                          .ranks = names_of_ranks(scenario_, life)};
  packets_ += packets_of(traced, recording);
  next_begin_ns_ += recording.duration_ns + kBetweenLivesNs;
}

}  // namespace reprise::driver
