#include "sim/mutants/mutants.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/base/codes.hpp"
#include "core/base/nearest.hpp"
#include "core/base/print.hpp"
#include "reprise/error.hpp"
#include "sim/mutants/registration.hpp"
#include "sim/mutants/seam_watch.hpp"

namespace reprise::sim {
namespace {

/// All mutants, sorted by name.
std::vector<Mutant>& registry() {
  static std::vector<Mutant> all;
  return all;
}

}  // namespace

Registration::Registration(Mutant mutant) {
  auto& all = registry();
  all.insert(std::ranges::upper_bound(all, mutant.name, {}, &Mutant::name), std::move(mutant));
}

std::span<const Mutant> mutants() { return registry(); }

const Mutant& mutant_named(std::string_view name) {
  std::vector<std::string> names;
  for (const auto& mutant : registry()) {
    if (mutant.name == name) return mutant;
    names.emplace_back(mutant.name);
  }
  constexpr std::size_t kShown = 5;
  throw Error(Code::kUsage, "there is no mutant '" + std::string(name) + "'; its nearest names: " +
                                join(nearest(name, std::move(names), kShown), ", ") +
                                "; 'reprise mutants --list' shows all");
}

SaveSeams save_seams(const Policies& policies, const std::function<Step()>& iteration) {
  SaveSeams seams = policies.save;
  if (policies.tracker_step == nullptr) return seams;
  seams.commit = [commit = policies.save.commit, name = policies.tracker_step, iteration](
                     Store& store, CommitTarget& target, const CommitContent& content, Role role) {
    if (target.step) target.step = name(*target.step, iteration());
    return commit(store, target, content, role);
  };
  return seams;
}

SaveResult save(const Policies& policies, const Ports& ports, std::shared_ptr<Communicator> group,
                const StateDict& state, const SaveOptions& options,
                std::shared_ptr<JobMemory> memory, const std::function<Step()>& iteration) {
  if (policies.before_save != nullptr) policies.before_save(*group, state);
  const SaveSeams seams = save_seams(policies, iteration);
  JobSeams replaced;
  if (has_replaced_seams(policies)) replaced.save = &seams;
  Job job = job_over(ports, std::move(group), std::move(memory), replaced);
  return begin_save(job, state, options).finish();
}

}  // namespace reprise::sim
