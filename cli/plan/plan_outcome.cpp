#include "cli/plan/plan_outcome.hpp"

#include <algorithm>
#include <numeric>

#include "core/adapters/posix/posix_clock.hpp"
#include "core/plan/job_load_plan.hpp"
#include "core/plan/load_plan.hpp"

namespace reprise::cli {
namespace {

double seconds_since(PosixClock& clock, std::uint64_t start_ns) {
  return static_cast<double>(clock.now_ns() - start_ns) * 1e-9;
}

}  // namespace

std::uint64_t PlanOutcome::most() const {
  return bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
}

double PlanOutcome::mean() const {
  if (bytes.empty()) return 0;
  const auto sum = std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0});
  return static_cast<double>(sum) / static_cast<double>(bytes.size());
}

double PlanOutcome::balance() const {
  return mean() == 0 ? 0 : static_cast<double>(most()) / mean();
}

PlannedSave plan_save(std::span<const LocalPlan> offers) {
  PosixClock clock;
  const std::uint64_t start = clock.now_ns();
  PlannedSave saved{global_plan(offers), {}};
  saved.outcome.bytes = saved.plan.bytes;
  saved.outcome.seconds = seconds_since(clock, start);
  for (const auto& tensor : saved.plan.tensors) saved.outcome.items += tensor.owners.size();
  return saved;
}

PlanOutcome plan_load(const GlobalPlan& stored, std::span<const LocalPlan> wanted) {
  PosixClock clock;
  const std::uint64_t start = clock.now_ns();
  const auto ranks = static_cast<std::int32_t>(wanted.size());
  const JobLoadPlan plan(stored, wanted, Group::world(ranks));
  PlanOutcome outcome;
  outcome.bytes.resize(wanted.size());
  for (std::int32_t r = 0; r < ranks; ++r) {
    std::uint64_t& bytes = outcome.bytes[static_cast<std::size_t>(r)];
    plan.for_each_read({r}, [&](std::uint32_t, std::uint32_t, std::uint64_t part) {
      ++outcome.items;
      bytes += part;
    });
  }
  outcome.seconds = seconds_since(clock, start);
  return outcome;
}

PlanOutcome plan_load(std::span<const StateDict> states, const Catalog& catalog) {
  PosixClock clock;
  const std::uint64_t start = clock.now_ns();
  PlanOutcome outcome;
  for (const StateDict& state : states) {
    const LoadPlan plan = load_plan(state.tensors, state.objects, catalog);
    if (!plan.mismatches.empty()) {
      const LoadMismatch& first = plan.mismatches.front();
      throw Error(first.code, first.message, {.key = first.key});
    }
    outcome.items += plan.reads.size();
    outcome.bytes.push_back(plan.bytes_needed);
  }
  outcome.seconds = seconds_since(clock, start);
  return outcome;
}

}  // namespace reprise::cli
