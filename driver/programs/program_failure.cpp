#include "driver/programs/program_failure.hpp"

#include <algorithm>

#include "driver/judges/failure.hpp"

namespace reprise::driver {
namespace {

/// The report of a model with very many wrong tensors stays readable.
constexpr std::size_t kFindingsMax = 1000;

/// Returns the rank's place on each axis, if the trainer numbers its ranks along one axis alone.
std::string coordinates_of(const ProgramLife& life, std::int64_t rank) {
  std::string axis;
  for (const auto& [name, size] : life.layout) {
    if (size < 2) continue;
    if (!axis.empty()) return "";  // only the trainer knows which axis is innermost
    axis = name;
  }
  return axis.empty() ? "" : axis + std::to_string(rank);
}

reports::Consequence consequence_of(const Finding& finding) {
  reports::Consequence follows{.life = finding.life.value_or(0),
                               .code = std::string(name_of(finding.code)),
                               .text = finding.text};
  const std::string life = life_name(follows.life) + ": ";
  if (follows.text.starts_with(life)) follows.text.erase(0, life.size());
  if (finding.rank) follows.ranks = {finding.rank->value};
  return follows;
}

}  // namespace

reports::Failure program_failure(const ProgramPlan& plan, const Findings& findings,
                                 std::size_t cause, const reports::ScenarioResult& result) {
  const Finding& finding = findings.at(cause);
  reports::Failure failure = failure_from(finding);
  const std::size_t life = finding.life.value_or(0);
  failure.life = life;
  if (life < result.lives.size()) failure.layout = result.lives[life].layout;
  if (failure.rank && life < plan.lives.size()) {
    failure.coordinates = coordinates_of(plan.lives[life], *failure.rank);
  }
  if (result.first_difference) put_values(*result.first_difference, failure);
  for (std::size_t i = 0; i < findings.size(); ++i) {
    if (i == cause) continue;
    if (failure.consequences.size() < kFindingsMax) {
      failure.consequences.push_back(consequence_of(findings[i]));
    } else {
      ++failure.consequences_left_out;
    }
  }
  return failure;
}

}  // namespace reprise::driver
