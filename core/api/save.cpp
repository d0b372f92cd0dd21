#include "reprise/save.hpp"

#include <algorithm>
#include <utility>

#include "core/api/access.hpp"
#include "core/engine/save.hpp"
#include "core/ports/store_path.hpp"

namespace reprise {
namespace {

constexpr std::uint64_t kBesideStaging = std::uint64_t{256} << 20U;

/// Throws USAGE for numbers that no save can use.
void require_possible(const SaveOptions& options) {
  if (options.step.value_or(0) < 0) {
    throw Error(Code::kUsage, "step: " + std::to_string(*options.step) + " is negative");
  }
  if (options.staging_bytes.value_or(1) == 0) {
    throw Error(Code::kUsage,
                "staging_bytes: a save needs some; leave it out for the usual amount");
  }
}

CommitTarget target_of(const SaveOptions& options) {
  CommitTarget target{.directory = options.directory, .step = {}};
  if (options.step) target = CommitTarget::iteration(options.directory, Step{*options.step});
  target.keep = options.keep;
  target.replace = options.replace;
  return target;
}

SaveSettings settings_of(const SaveOptions& options, std::uint64_t staging) {
  require_possible(options);
  SaveSettings settings{.target = target_of(options), .image = {.checksums = options.checksums}};
  settings.image.staging_bytes_max = options.staging_bytes.value_or(staging);
  settings.image.batch_bytes =
      std::min(settings.image.batch_bytes, settings.image.staging_bytes_max);
  return settings;
}

}  // namespace

struct Flight {
  std::shared_ptr<JobState> job;  ///< must outlive the save
  std::optional<Step> step;
  std::string directory;
  Save save;

  /// Clears the iteration's damage record, because it has been saved again.
  void settle() {
    if (step) std::erase(job->damaged[parent_path(directory)], *step);
  }
};

SaveInFlight::SaveInFlight(std::unique_ptr<Flight> flight) : flight_(std::move(flight)) {}
SaveInFlight::SaveInFlight(SaveInFlight&&) noexcept = default;
SaveInFlight& SaveInFlight::operator=(SaveInFlight&&) noexcept = default;
SaveInFlight::~SaveInFlight() = default;

SaveInFlight JobAccess::in_flight(std::unique_ptr<Flight> flight) {
  return SaveInFlight(std::move(flight));
}

bool SaveInFlight::poll() {
  const bool done = flight_->save.poll();
  if (done) flight_->settle();
  return done;
}

SaveResult SaveInFlight::finish() {
  SaveReport report = flight_->save.finish();
  flight_->settle();
  return {.directory = flight_->directory,
          .bytes = report.bytes,
          .tensors = report.tensors,
          .objects = report.objects,
          .log = std::move(report.log)};
}

namespace {

SaveInFlight begin(Job& job, const State& state, const SaveOptions& options,
                   std::uint64_t staging) {
  const auto& own = JobAccess::state(job);
  SaveSettings settings = settings_of(options, staging);
  settings.target.damaged = own->damaged[parent_path(settings.target.directory)];
  const std::optional<Step> step = settings.target.step;
  std::string directory = settings.target.directory;
  Save save =
      Save::begin(own->ports(), own->all, StateAccess::with_common(state), std::move(settings));
  return JobAccess::in_flight(
      std::make_unique<Flight>(Flight{own, step, std::move(directory), std::move(save)}));
}

}  // namespace

SaveInFlight begin_save(Job& job, const State& state, const SaveOptions& options) {
  return begin(job, state, options, kBesideStaging);
}

SaveResult save(Job& job, const State& state, const SaveOptions& options) {
  return begin(job, state, options, kBlockingStaging).finish();
}

}  // namespace reprise
