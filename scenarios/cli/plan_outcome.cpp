#include "scenarios/cli/plan_outcome.hpp"

#include <algorithm>
#include <numeric>

#include "core/adapters/posix/posix_clock.hpp"
#include "core/plan/load_plan.hpp"

namespace reprise::cli {
namespace {

double seconds_since(PosixClock& clock, std::uint64_t start_ns) {
  return static_cast<double>(clock.now_ns() - start_ns) * 1e-9;
}

/// The planned chunks as stored ones: one file per rank, elements one after another.
Catalog catalog_of(const GlobalPlan& plan) {
  Catalog catalog;
  std::vector<std::uint64_t> ends(plan.bytes.size(), 0);
  for (std::size_t r = 0; r < plan.bytes.size(); ++r) {
    catalog.files.push_back("__" + std::to_string(r) + "_0.distcp");
  }
  for (const auto& tensor : plan.tensors) {
    StoredTensor stored{.key = tensor.key, .dtype = tensor.dtype, .shape = tensor.shape};
    for (std::size_t c = 0; c < tensor.owners.size(); ++c) {
      const Box& box = (*tensor.boxes)[c];
      const auto rank = static_cast<std::size_t>(tensor.owners[c].value);
      const std::uint64_t bytes =
          static_cast<std::uint64_t>(box.elements()) * size_of(tensor.dtype);
      stored.chunks.push_back({box, static_cast<FileIndex>(rank), {ends[rank], bytes}});
      ends[rank] += bytes;
    }
    catalog.tensors.push_back(std::move(stored));
  }
  return catalog;
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

PlanOutcome plan_save(std::span<const StateDict> states, Catalog& catalog) {
  PosixClock clock;
  const std::uint64_t start = clock.now_ns();
  std::vector<LocalPlan> locals;
  for (std::size_t r = 0; r < states.size(); ++r) {
    locals.push_back(local_plan(states[r], {static_cast<std::int32_t>(r)}));
  }
  const GlobalPlan plan = global_plan(locals);
  PlanOutcome outcome{.bytes = plan.bytes, .seconds = seconds_since(clock, start)};
  for (const auto& tensor : plan.tensors) outcome.items += tensor.owners.size();
  catalog = catalog_of(plan);
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
