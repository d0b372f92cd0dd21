#include "reprise/save.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/api/access.hpp"
#include "core/api/agreed_options.hpp"
#include "core/checkpoint/locate_checkpoint.hpp"
#include "core/checkpoint/set_aside.hpp"
#include "core/format/metadata.hpp"
#include "core/format/tracker.hpp"
#include "core/ports/store_path.hpp"
#include "core/save/save.hpp"

namespace reprise {
namespace {

/// begin_save takes as much staging as the rank writes; no state is larger than this.
constexpr std::uint64_t kBesideStaging = std::uint64_t{1} << 60U;

/// A batch of copies needs this much.
constexpr std::uint64_t kLeastToSave = 4096;

[[noreturn]] void refuse(const std::string& what) { throw Error(Code::kUsage, what); }

/// Throws USAGE for options that no save can use.
void require_possible(const SaveOptions& options, const State& state) {
  if (options.step.value_or(0) < 0) {
    refuse("step: " + std::to_string(*options.step) + " is negative");
  }
  if (options.staging_bytes.value_or(kLeastToSave) < kLeastToSave) {
    refuse("staging_bytes: a save needs at least " + std::to_string(kLeastToSave) + ", not " +
           std::to_string(*options.staging_bytes) + "; leave it out for the usual amount");
  }
  static_cast<void>(StepNames(options.step_names));  // throws if it names no step
  if (options.keep && !options.step) {
    refuse("keep: it counts iterations, so the save needs a step");
  }
  const Value& common = state.common();  // throws if it was moved from
  if (common.as<Dict>() == nullptr && !common.is_none()) {
    refuse("common: the common state is neither a dict nor None");
  }
}

/// Throws USAGE if an iteration is to be saved into a plain checkpoint, or a plain checkpoint into
/// a directory with iterations. Saving a plain checkpoint would move all iterations away. An
/// iteration in a plain checkpoint would not be found by a load.
void require_same_form(Store& store, const SaveOptions& options) {
  const auto& directory = options.directory;
  if (options.step) {
    if (!store.stat(join_path(directory, std::string(kMetadataFile)))) return;
    refuse("step: '" + store.display(directory) +
           "' is a checkpoint itself and takes no iterations; name another directory");
  }
  if (!store.stat(directory)) return;
  const bool replaces = holds_metadata(store, directory);
  for (const Entry& entry : store.list(directory)) {
    const bool holds = entry.directory && !replaces && !aside_name(entry.name) &&
                       holds_metadata(store, join_path(directory, entry.name));
    if (!holds && entry.name != kTrackerFile && !tracker_of_directory(entry.name)) continue;
    refuse("'" + store.display(directory) + "' holds iterations ('" + entry.name +
           "'); give the save a step, or name another directory");
  }
}

/// Collective. If an option is invalid on one rank or differs between ranks, all ranks throw.
void agree_on(JobState& job, const State& state, const SaveOptions& options, bool planned) {
  agree_on_options(*job.all, [&]() -> std::vector<NamedOption> {
    require_possible(options, state);
    job.own.device->use_stream(options.stream);
    if (job.own.fabric->rank() == GlobalRank{0}) require_same_form(*job.own.store, options);
    return {{"directory", options.directory},
            {"step", options.step ? std::to_string(*options.step) : "none"},
            {"checksums", std::to_string(static_cast<int>(options.checksums))},
            {"keep", options.keep ? std::to_string(*options.keep) : "none"},
            {"replace", options.replace ? "true" : "false"},
            {"read_back", std::to_string(static_cast<int>(options.read_back))},
            {"step_names", options.step_names},
            {"writes", planned ? "given" : "none"},
            {"structure", options.structure},
            {"unequal", std::to_string(static_cast<int>(options.unequal))}};
  });
}

CommitTarget target_of(const SaveOptions& options) {
  CommitTarget target{.directory = options.directory, .step = {}};
  if (options.step) {
    target = CommitTarget::iteration(options.directory, Step{*options.step},
                                     StepNames(options.step_names));
  }
  target.keep = options.keep;
  target.replace = options.replace;
  return target;
}

SaveSettings settings_of(const SaveOptions& options, std::uint64_t staging) {
  SaveSettings settings{.target = target_of(options), .image = {.checksums = options.checksums}};
  settings.image.read_back = options.read_back;
  settings.image.staging_bytes_max = options.staging_bytes.value_or(staging);
  settings.image.batch_bytes =
      std::min(settings.image.batch_bytes, settings.image.staging_bytes_max);
  return settings;
}

/// Returns what the job keeps for saves of this structure; null if it keeps nothing.
PlanSlot* slot_of(JobState& job, const std::string& structure) {
  return structure.empty() ? nullptr : &job.plans[structure];
}

}  // namespace

struct Flight {
  std::shared_ptr<JobState> job;  ///< must outlive the save
  std::optional<Step> step;
  std::string directory;
  Save save;

  /// Removes the iteration from the job's list of damaged iterations, because this save replaced
  /// the damaged files.
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

Flight& JobAccess::flight(SaveInFlight& save) {
  if (save.flight_) return *save.flight_;
  refuse("save: it was moved from; another object is that save now");
}

void SaveInFlight::wait_for_staging() { JobAccess::flight(*this).save.wait_for_staging(); }

bool SaveInFlight::poll() {
  Flight& flight = JobAccess::flight(*this);
  const bool done = flight.save.poll();
  if (done) flight.settle();
  return done;
}

SaveResult SaveInFlight::finish() {
  Flight& flight = JobAccess::flight(*this);
  SaveReport report = flight.save.finish();
  flight.settle();
  return {.directory = flight.directory,
          .bytes = report.bytes,
          .tensors = report.tensors,
          .objects = report.objects,
          .planned = report.planned,
          .staging_bytes = report.peak_staging,
          .waited_for_staging = report.waited_for_staging,
          .unequal = std::move(report.unequal),
          .log = std::move(report.log)};
}

namespace {

using Writes = std::optional<std::vector<WriteItem>>;

SaveInFlight begin(Job& job, const State& state, const SaveOptions& options, std::uint64_t staging,
                   Writes writes = {}) {
  const auto& own = JobAccess::state(job);
  agree_on(*own, state, options, writes.has_value());
  SaveSettings settings = settings_of(options, staging);
  settings.image.returns = options.returns;
  settings.unequal = options.unequal;
  if (!writes) settings.plan = slot_of(*own, options.structure);
  settings.writes = std::move(writes);
  settings.target.damaged = own->damaged[parent_path(settings.target.directory)];
  const std::optional<Step> step = settings.target.step;
  std::string directory = settings.target.directory;
  Save save = Save::begin(own->ports(), own->all, StateAccess::content(state), std::move(settings));
  return JobAccess::in_flight(
      std::make_unique<Flight>(Flight{own, step, std::move(directory), std::move(save)}));
}

}  // namespace

SaveInFlight begin_save(Job& job, const State& state, const SaveOptions& options) {
  return begin(job, state, options, kBesideStaging);
}

SaveInFlight begin_save(Job& job, const State& state, const SaveOptions& options,
                        std::span<const WriteItem> writes) {
  return begin(job, state, options, kBesideStaging, Writes({writes.begin(), writes.end()}));
}

namespace {

SaveOptions blocking(SaveOptions options) {
  options.returns = BeginReturns::kWhenCopied;
  return options;
}

}  // namespace

SaveResult save(Job& job, const State& state, const SaveOptions& options) {
  return begin(job, state, blocking(options), kBlockingStaging).finish();
}

SaveResult save(Job& job, const State& state, const SaveOptions& options,
                std::span<const WriteItem> writes) {
  return begin(job, state, blocking(options), kBlockingStaging,
               Writes({writes.begin(), writes.end()}))
      .finish();
}

}  // namespace reprise
