#include "reprise/save.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "core/api/access.hpp"
#include "core/api/agreed_options.hpp"
#include "core/api/calls.hpp"
#include "core/checkpoint/locate_checkpoint.hpp"
#include "core/checkpoint/set_aside.hpp"
#include "core/format/backend_info.hpp"
#include "core/format/common_state.hpp"
#include "core/format/integrity.hpp"
#include "core/format/metadata.hpp"
#include "core/format/tracker.hpp"
#include "core/ports/store_path.hpp"
#include "core/save/save_seamed.hpp"

namespace reprise {
namespace {

/// A batch of copies needs this much.
constexpr std::uint64_t kLeastToSave = 4096;

[[noreturn]] void refuse(const std::string& what) { throw Error(Code::kUsage, what); }

/// Returns the state of a call. Throws USAGE if it was moved from.
using Content = std::function<const StateDict&()>;

/// Throws USAGE for options that no save can use.
void require_possible(const SaveOptions& options, const StateDict& state) {
  if (options.step.value_or(0) < 0) {
    refuse("step: " + std::to_string(*options.step) + " is negative");
  }
  if (options.staging_bytes.value_or(kLeastToSave) < kLeastToSave) {
    refuse("staging_bytes: a save needs at least " + std::to_string(kLeastToSave) + " bytes, not " +
           std::to_string(*options.staging_bytes) + "; leave this option out for the default size");
  }
  if (options.batch_bytes < kLeastToSave) {
    refuse("batch_bytes: a save needs at least " + std::to_string(kLeastToSave) + " bytes, not " +
           std::to_string(options.batch_bytes));
  }
  static_cast<void>(StepNames(options.step_names));  // throws if it names no step
  if (options.keep && !options.step) {
    refuse("keep: this option counts iterations, so the save needs a step");
  }
  const Bytes* written = state.common.as<Bytes>();
  if (state.common.as<Dict>() == nullptr && written == nullptr && !state.common.is_none()) {
    refuse("common: the common state is neither a dict nor None nor bytes");
  }
  if (written != nullptr && written->empty()) refuse("common: there are no bytes to store");
}

/// True for the name of what a checkpoint without a step consists of, or has beside it for a while,
/// also after its writer was killed. `meta.pt` is Lightning's, which writes it again after each
/// save.
bool is_of_checkpoint(std::string_view name) {
  constexpr std::array kNames = {kCommonFile, kBackendFile, kIntegrityFile,
                                 std::string_view("meta.pt")};
  return name.starts_with(kMetadataFile) || name.ends_with(".distcp") ||
         name.ends_with(".metadata") || aside_name(name) || is_mark(name) ||
         std::ranges::find(kNames, name) != kNames.end();
}

/// Throws USAGE if an iteration is to be saved into a plain checkpoint, or a plain checkpoint into
/// a directory that holds iterations or anything else that is not part of one: saving a plain
/// checkpoint would move all of that away. An iteration in a plain checkpoint would not be found by
/// a load.
void require_same_form(Store& store, const SaveOptions& options) {
  const auto& directory = options.directory;
  if (options.step) {
    if (!store.stat(join_path(directory, std::string(kMetadataFile)))) return;
    refuse("step: '" + store.display(directory) +
           "' is itself a checkpoint and cannot hold iterations; name another directory");
  }
  if (!store.stat(directory)) return;
  const bool replaces = holds_metadata(store, directory);
  for (const Entry& entry : store.list(directory)) {
    const bool holds = entry.directory && !replaces && !aside_name(entry.name) &&
                       holds_metadata(store, join_path(directory, entry.name));
    if (holds || entry.name == kTrackerFile || tracker_of_directory(entry.name)) {
      refuse("'" + store.display(directory) + "' holds iterations ('" + entry.name +
             "'); give the save a step, or name another directory");
    }
    if (is_of_checkpoint(entry.name)) continue;
    refuse("'" + store.display(directory) + "' holds '" + entry.name +
           "', which is no part of a checkpoint, and a checkpoint replaces its directory as a "
           "whole; name another directory");
  }
}

/// Collective. If an option is invalid on one rank or differs between ranks, all ranks throw.
void agree_on(JobState& job, const Content& content, const SaveOptions& options, bool planned) {
  agree_on_options(*job.all, [&]() -> std::vector<NamedOption> {
    require_possible(options, content());
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
            {"unequal", std::to_string(static_cast<int>(options.unequal))},
            {"compare_tensors", options.compare_tensors ? "true" : "false"}};
  });
}

}  // namespace

struct Flight {
  std::shared_ptr<JobState> job;  ///< must outlive the save
  std::string root;               ///< directory of the iteration
  std::optional<std::int64_t> step;
  Save save;

  /// Removes the iteration from the job's list of damaged iterations, because this save replaced
  /// the damaged files.
  void forget_damage() {
    if (step) std::erase(job->memory->damaged[root], Step{*step});
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
  refuse("save: it was moved from; use the object that it was moved to");
}

void SaveInFlight::wait_for_staging() { JobAccess::flight(*this).save.wait_for_staging(); }

bool SaveInFlight::poll() {
  Flight& flight = JobAccess::flight(*this);
  const bool done = flight.save.poll();
  if (done) flight.forget_damage();
  return done;
}

SaveResult SaveInFlight::finish() {
  Flight& flight = JobAccess::flight(*this);
  SaveResult result = flight.save.finish();
  flight.forget_damage();
  return result;
}

std::uint64_t SaveInFlight::bound_staging() const {
  return flight_ ? flight_->save.bound_staging() : 0;
}

namespace {

using Writes = std::optional<std::vector<WriteItem>>;

SaveInFlight begin(Job& job, const Content& content, const SaveOptions& options, Writes writes) {
  const auto& own = JobAccess::state(job);
  JobMemory& memory = *own->memory;
  agree_on(*own, content, options, writes.has_value());
  const std::string root = options.step ? options.directory : parent_path(options.directory);
  auto& lock = memory.locks[root];
  SaveContext context{
      .writes = std::move(writes), .damaged = memory.damaged[root], .root = lock.lock()};
  if (!context.writes && !options.structure.empty())
    context.plan = &memory.plans[options.structure];
  const SaveSeams& seams = own->seams.save != nullptr ? *own->seams.save : SaveSeams();
  Save save = begin_save(own->ports(), own->all, content(), options, std::move(context), seams);
  if (lock.expired()) lock = save.root_lock();
  return JobAccess::in_flight(
      std::make_unique<Flight>(Flight{own, root, options.step, std::move(save)}));
}

SaveOptions blocking(SaveOptions options) {
  options.returns = BeginReturns::kWhenCopied;
  if (!options.staging_bytes) options.staging_bytes = kBlockingStaging;
  return options;
}

Content content_of(const State& state) {
  return [&state]() -> const StateDict& { return StateAccess::content(state); };
}

}  // namespace

SaveInFlight begin_save(Job& job, const StateDict& state, const SaveOptions& options) {
  return begin(job, [&state]() -> const StateDict& { return state; }, options, {});
}

SaveInFlight begin_save(Job& job, const State& state, const SaveOptions& options) {
  return begin(job, content_of(state), options, {});
}

SaveInFlight begin_save(Job& job, const State& state, const SaveOptions& options,
                        std::span<const WriteItem> writes) {
  return begin(job, content_of(state), options, Writes({writes.begin(), writes.end()}));
}

SaveResult save(Job& job, const State& state, const SaveOptions& options) {
  return begin(job, content_of(state), blocking(options), {}).finish();
}

SaveResult save(Job& job, const State& state, const SaveOptions& options,
                std::span<const WriteItem> writes) {
  return begin(job, content_of(state), blocking(options), Writes({writes.begin(), writes.end()}))
      .finish();
}

JobPorts borrowed_ports(const Ports& ports) {
  const auto borrowed = []<class Port>(Port& port) {
    return std::shared_ptr<Port>(std::shared_ptr<Port>(), &port);
  };
  JobPorts own{borrowed(ports.store), borrowed(ports.fabric), borrowed(ports.device),
               borrowed(ports.tasks), borrowed(ports.trace)};
  if (ports.data != nullptr) own.data = borrowed(*ports.data);
  if (ports.interrupted != nullptr) own.interrupted = *ports.interrupted;
  return own;
}

Job job_over(const Ports& ports, std::shared_ptr<Communicator> group,
             std::shared_ptr<JobMemory> memory, JobSeams seams) {
  return JobAccess::job(std::make_shared<JobState>(JobState{.own = borrowed_ports(ports),
                                                            .all = std::move(group),
                                                            .memory = std::move(memory),
                                                            .seams = seams}));
}

Job with_device(const Job& job, std::shared_ptr<Device> device) {
  JobState other = *JobAccess::state(job);
  other.own.device = std::move(device);
  return JobAccess::job(std::make_shared<JobState>(std::move(other)));
}

}  // namespace reprise
