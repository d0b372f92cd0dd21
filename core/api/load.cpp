#include "reprise/load.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/api/access.hpp"
#include "core/api/agreed_options.hpp"
#include "core/api/calls.hpp"
#include "core/base/print.hpp"
#include "core/load/load_seamed.hpp"
#include "core/ports/store_path.hpp"

namespace reprise {
namespace {

/// Staging of this size is enough to read one element of any type.
constexpr std::uint64_t kLeastStaging = 64;

/// Collective. If an option is invalid on one rank or differs between ranks, or `common_wanted`
/// throws on one, all ranks throw. `common_wanted` returns the form in which this rank wants the
/// common state.
void agree_on(const JobState& job, const LoadOptions& options,
              const std::function<std::string()>& common_wanted) {
  agree_on_options(*job.all, [&]() -> std::vector<NamedOption> {
    std::string common = common_wanted();
    static_cast<void>(StepNames(options.step_names));  // throws if it names no step
    job.own.device->use_stream(options.stream);
    if (options.staging_bytes.value_or(kLeastStaging) < kLeastStaging) {
      throw Error(Code::kUsage, "staging_bytes: a load needs at least " +
                                    std::to_string(kLeastStaging) + " bytes, not " +
                                    std::to_string(*options.staging_bytes));
    }
    return {{"directory", options.directory},
            {"strictness", std::string(name_of(options.strictness))},
            {"excused", join(options.excused, ", ")},
            {"checksums", std::to_string(static_cast<int>(options.checksums))},
            {"fallback", std::to_string(static_cast<int>(options.fallback))},
            {"reads", std::to_string(static_cast<int>(options.reads))},
            {"step_names", options.step_names},
            {"the common state of the State", std::move(common)}};
  });
}

/// Returns the decisions of a load: the engine's own, unless the harness replaced some.
LoadSeams seams_of(const JobState& job) {
  return job.seams.load != nullptr ? *job.seams.load : LoadSeams();
}

/// Remembers the iterations that a load skipped as damaged.
void remember_damaged(const JobState& job, const LoadResult& result) {
  std::vector<Step>& known = job.memory->damaged[parent_path(result.directory)];
  for (const std::int64_t step : result.damaged) {
    if (std::count(known.begin(), known.end(), Step{step}) == 0) known.push_back(Step{step});
  }
}

}  // namespace

LoadResult load(Job& job, const LoadOptions& options, const Ask& ask) {
  const JobState& own = *JobAccess::state(job);
  agree_on(own, options, [] { return std::string(); });
  LoadResult result =
      load(own.ports(), *own.all, options, ask, seams_of(own), nullptr, own.memory->parsed);
  remember_damaged(own, result);
  return result;
}

LoadResult load(Job& job, State& state, const LoadOptions& options) {
  const JobState& own = *JobAccess::state(job);
  StateDict* into = nullptr;
  agree_on(own, options, [&]() -> std::string {
    into = &StateAccess::content(state);
    return into->common.as<Bytes>() != nullptr ? "wanted as stored" : "wanted as values";
  });
  LoadResult result =
      load(own.ports(), *own.all, *into, options, seams_of(own), own.memory->parsed);
  remember_damaged(own, result);
  return result;
}

std::optional<LoadResult> load_if_any(Job& job, State& state, const LoadOptions& options) {
  const JobState& own = *JobAccess::state(job);
  if (nothing_saved(*own.own.store, *own.all, options.directory)) return std::nullopt;
  return load(job, state, options);
}

std::optional<Value> read_common(Job& job, const std::string& directory,
                                 const std::string& step_names) {
  const JobState& own = *JobAccess::state(job);
  agree_on_options(*own.all, [&]() -> std::vector<NamedOption> {
    static_cast<void>(StepNames(step_names));  // throws if it names no step
    return {{"directory", directory}, {"step_names", step_names}};
  });
  return read_common(*own.own.store, *own.all, directory, StepNames(step_names));
}

}  // namespace reprise
