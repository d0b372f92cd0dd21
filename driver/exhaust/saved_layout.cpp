#include "driver/exhaust/saved_layout.hpp"

#include <algorithm>

#include "core/checkpoint/checkpoint.hpp"
#include "core/save/save.hpp"

namespace reprise::driver {
namespace {

/// One rank of the job that saves.
struct Saver {
  std::unique_ptr<sim::TrainingJob> job;
  StateDict model;   // leaves point into the job's memory
  StateDict stored;  // leaves point into the job's memory
  std::uint64_t bytes = 0;
};

void save(Saver& saver, const Ports& ports, const Subject& subject, const sim::Layout& layout,
          const sim::Policies& policies) {
  saver.job = std::make_unique<sim::TrainingJob>(saving_config(subject, layout), ports.fabric,
                                                 policies.job);
  sim::TrainingJob& job = *saver.job;
  for (int i = 0; i < kExhaustSteps; ++i) job.step();
  saver.model = job.model_space();
  saver.stored = job.live_state();
  SaveOptions settings;
  settings.directory = kExhaustCheckpoint;
  settings.staging_bytes = kBlockingStaging;
  const StateDict handed = job.state();
  saver.bytes = sim::save(policies, ports, job.world_group(), handed, settings,
                          std::make_shared<JobMemory>(), [&job] { return job.iteration(); })
                    .bytes;
}

/// Assembles the states of all ranks into a single state. Throws if they contradict each other.
GlobalState whole(const std::vector<Saver>& savers, StateDict Saver::*part) {
  std::vector<RankState> ranks;
  for (std::size_t r = 0; r < savers.size(); ++r) {
    ranks.push_back({GlobalRank{static_cast<std::int32_t>(r)}, &(savers[r].*part)});
  }
  judged::Findings findings;
  GlobalState state = assemble(ranks, findings);
  if (findings.empty()) return state;
  throw Error(Code::kInternal, "the ranks that save are not one job: " + findings.front().text,
              {.rank = findings.front().rank, .key = findings.front().key});
}

/// True if all bytes of the element have the value to which memory is set before a load. No
/// comparison would notice if such an element were not loaded.
bool looks_untouched(const std::byte* element, std::size_t width) {
  return std::all_of(element, element + width, [](std::byte b) { return b == kBeforeLoad; });
}

std::uint64_t elements_of(const GlobalState& state) {
  std::uint64_t elements = 0;
  for (const auto& tensor : state.tensors) {
    const std::size_t width = size_of(tensor.dtype);
    for (std::size_t at = 0; at < tensor.data.size(); at += width) {
      CHECK(!looks_untouched(tensor.data.data() + at, width), tensor.key, at);
    }
    elements += tensor.data.size() / width;
  }
  return elements;
}

}  // namespace

void require_returned(const sim::RunResult& run) {
  for (const auto& rank : run.ranks) {
    if (rank.end == sim::RankEnd::kReturned) continue;
    if (rank.error) throw *rank.error;
    throw Error(Code::kInternal, std::string(name_of(rank.end)) + ": " + rank.message);
  }
}

SavedLayout save_under(const sim::Layout& layout, const Subject& subject,
                       const sim::Policies& policies) {
  SavedLayout saved{.layout = layout, .store = std::make_unique<sim::SimStore>()};
  sim::World world({.world_size = layout.world_size()}, *saved.store);
  std::vector<Saver> savers(static_cast<std::size_t>(layout.world_size()));
  require_returned(world.run([&](const Ports& ports, GlobalRank rank) {
    save(savers[static_cast<std::size_t>(rank.value)], ports, subject, layout, policies);
  }));
  for (auto& saver : savers) saved.bytes += saver.bytes;
  saved.model = whole(savers, &Saver::model);
  for (auto& saver : savers) saver.stored.tensors.clear();  // `model` has the tensors
  saved.stored = whole(savers, &Saver::stored);
  saved.elements = elements_of(saved.model);
  saved.metadata = {Checkpoint::open(*saved.store, kExhaustCheckpoint).shared_metadata(),
                    hash_of(read_metadata_files(*saved.store, kExhaustCheckpoint))};
  return saved;
}

}  // namespace reprise::driver
