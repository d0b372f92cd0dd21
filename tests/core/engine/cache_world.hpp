#pragma once
// Several ranks that save repeatedly into one directory, each with a cache.

#include <array>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "core/engine/load_seamed.hpp"
#include "core/engine/plan_memory.hpp"
#include "core/engine/save_seamed.hpp"
#include "core/ports/passing_store.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/contracts/thread_world.hpp"
#include "tests/core/engine/round_trip.hpp"

namespace reprise::test {

/// A rank's state; leaves have their own buffers in the kit.
///
///   rows     split by a placement            own<r>   of one rank alone, in one piece
///   flat     split without one               same     the whole on every rank
///   rng      an object of each rank          note<r>  of one rank alone; alike: on every rank
class Kit {
 public:
  Kit(GlobalRank rank, std::int32_t world) : rank_(rank.value), world_(world) {
    const auto mesh = testing_job::mesh_of({{"dp", world}});
    const Placement rows({{"dp", 0}});
    const Dims shape{2 * world + 1, 3};
    add("rows", DType::kFloat32, shape, {rows.box(shape, *mesh, {rank_})}, 0).placed = {mesh, rows};
    add("flat", DType::kFloat32, {5 * world}, {{{5 * rank_}, {5}}}, 0);
    add(own(), DType::kFloat32, {6}, {{{0}, {6}}}, 0);
    add("same", DType::kInt16, {5, 2}, {{{0, 0}, {5, 2}}}, rank_);
    state.objects = {{"rng", {world}, {rank_}, 0, Value(std::int64_t{rank_})},
                     {note(), {1}, {0}, 0, Value(std::int64_t{rank_})},
                     {"alike", {1}, {0}, rank_, Value(std::int64_t{7})}};
  }

  StateDict state;

  std::int32_t rank() const { return rank_; }
  std::int32_t world() const { return world_; }
  std::string own() const { return "own" + std::to_string(rank_); }
  std::string note() const { return "note" + std::to_string(rank_); }

  TensorLeaf& add(const std::string& key, DType dtype, const Dims& shape,
                  const std::vector<Box>& boxes, std::int32_t replica) {
    TensorLeaf leaf{.key = key, .dtype = dtype, .shape = shape};
    leaf.replica = replica;
    state.tensors.push_back(leaf);
    place(state.tensors.back(), boxes);
    return state.tensors.back();
  }
  /// Gives a leaf other boxes, and memory for them.
  void place(TensorLeaf& leaf, const std::vector<Box>& boxes) {
    leaf.pieces.clear();
    std::int64_t elements = 0;
    for (const Box& box : boxes) {
      leaf.pieces.push_back(contiguous_piece(box));
      leaf.pieces.back().local = elements;
      elements += box.elements();
    }
    buffers_.emplace_back(static_cast<std::size_t>(elements) * size_of(leaf.dtype));
    leaf.data = buffers_.back().data();
  }
  TensorLeaf& tensor(const std::string& key) {
    return *std::find_if(state.tensors.begin(), state.tensors.end(),
                         [&key](const TensorLeaf& leaf) { return leaf.key == key; });
  }
  ObjectLeaf& object(const std::string& key) {
    return *std::find_if(state.objects.begin(), state.objects.end(),
                         [&key](const ObjectLeaf& leaf) { return leaf.key == key; });
  }

 private:
  std::int32_t rank_;
  std::int32_t world_;
  std::deque<Bytes> buffers_;
};

using Edit = std::function<void(Kit&)>;

/// A rank's store that does not wait for the disk, and fails on request.
class QuickStore final : public PassingStore {
 public:
  QuickStore(Store& inner, const std::function<void(const std::string& path)>& before_write)
      : PassingStore(inner), before_write_(before_write) {}

  std::unique_ptr<WriteFile> create(const std::string& path) override {
    if (before_write_) before_write_(path);
    return std::make_unique<File>(inner().create(path));
  }
  void sync_directory(const std::string&) override {}

 private:
  class File final : public WriteFile {
   public:
    explicit File(std::unique_ptr<WriteFile> inner) : inner_(std::move(inner)) {}
    void write_at(std::uint64_t offset, ByteSpan bytes) override {
      inner_->write_at(offset, bytes);
    }
    void sync() override {}
    void close() override { inner_->close(); }

   private:
    std::unique_ptr<WriteFile> inner_;
  };

  const std::function<void(const std::string&)>& before_write_;
};

/// Result of one save on one rank.
struct Saved {
  Planned planned = Planned::kFresh;
  std::vector<CacheKind> reused;
  std::vector<std::string> log;
  std::optional<Error> error;

  bool used(CacheKind kind) const {
    return std::find(reused.begin(), reused.end(), kind) != reused.end();
  }
  friend bool operator==(const Saved& a, const Saved& b) {
    return a.planned == b.planned && a.reused == b.reused && a.log == b.log &&
           a.error.has_value() == b.error.has_value() &&
           (!a.error || std::string(a.error->what()) == b.error->what());
  }
};

/// One save of a series.
struct Turn {
  Edit edit = {};                     ///< change of the saved state; nothing: none
  std::vector<GlobalRank> savers;     ///< empty: all ranks
  std::vector<GlobalRank> forgetful;  ///< ranks that lost their cache
};

class CacheWorld {
 public:
  explicit CacheWorld(std::int32_t world) : world_(world) {}

  SaveSeams seams;
  /// True: a failed save leaves its offer in the cache, next to an earlier save's plan.
  bool keeps_failed_offer = false;
  /// Called before each file that any rank writes; may throw.
  std::function<void(const std::string& path)> before_write;
  /// Nothing: no cache.
  std::optional<std::vector<CacheKind>> kinds =
      std::vector<CacheKind>(cache_kinds().begin(), cache_kinds().end());
  /// Called before the first save, with the rank's cache if there is one.
  std::function<void(const Ports&, Communicator&, PlanCache*)> first;
  std::uint64_t replans = 0;  ///< count on rank 0 after all saves

  /// Returns the result of each save on its first rank; checks that all savers have the same
  /// result.
  std::vector<Saved> run(const std::string& directory, const std::vector<Turn>& turns) {
    std::vector<std::map<std::int32_t, Saved>> all(turns.size());
    std::mutex mutex;
    contracts::run_ranks(
        world_, directory,
        [&](const Ports& ports) {
          const GlobalRank rank = ports.fabric.rank();
          std::optional<PlanCache> cache;
          if (kinds) cache.emplace(*kinds);
          const auto everybody = ports.fabric.communicator(Group::world(world_));
          if (first) first(ports, *everybody, cache ? &*cache : nullptr);
          for (std::size_t t = 0; t < turns.size(); ++t) {
            everybody->barrier();
            const auto forgets = turns[t].forgetful;
            const bool lost = std::find(forgets.begin(), forgets.end(), rank) != forgets.end();
            if (cache && lost) cache.emplace(*kinds);
            const auto saved = save(ports, turns[t], Step{static_cast<std::int64_t>(t) + 1},
                                    cache ? &*cache : nullptr);
            const std::lock_guard lock(mutex);
            if (saved) all[t][rank.value] = *saved;
          }
          if (cache && rank == GlobalRank{0}) replans = cache->replans();
        },
        [this](Store& store, GlobalRank) {
          return std::make_unique<QuickStore>(store, before_write);
        });
    std::vector<Saved> of_first;
    for (std::size_t t = 0; t < turns.size(); ++t) {
      for (const auto& [rank, saved] : all[t]) {
        EXPECT_EQ(saved, all[t].begin()->second) << "rank " << rank << ", save " << t + 1;
      }
      of_first.push_back(all[t].begin()->second);
    }
    return of_first;
  }

 private:
  /// Returns nothing if this rank does not save.
  std::optional<Saved> save(const Ports& ports, const Turn& turn, Step step,
                            PlanCache* cache) const {
    const Group group = turn.savers.empty() ? Group::world(world_) : Group(turn.savers);
    const auto self = group.rank_of(ports.fabric.rank());
    if (!self) return std::nullopt;
    Kit kit({self->value}, group.size());
    if (turn.edit) turn.edit(kit);
    if (!turn.savers.empty()) kit.tensor("rows").placed.reset();  // the mesh has all ranks
    testing_job::fill(kit.state);
    if (kit.state.common.find("iteration") == nullptr) {
      kit.state.common = Dict{{"iteration", Value(step.value)}};
    }
    SaveSettings options;
    options.target = CommitTarget::iteration("run", step);
    options.cache = cache;
    Saved saved;
    saved.error = contracts::error_of([&] {
      Save flight = begin_save(ports, ports.fabric.communicator(group), kit.state, options, seams);
      const SaveReport report = flight.finish();
      saved.planned = report.planned;
      saved.reused = report.reused;
      saved.log = report.log;
    });
    if (saved.error && keeps_failed_offer && cache->memory().offered) {
      ++cache->memory().offered->scope.structure;
    }
    return saved;
  }

  std::int32_t world_;
};

/// Returns every file below a directory, by its path.
inline std::map<std::string, std::string> files_of(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    std::ostringstream content;
    content << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    files[std::filesystem::relative(entry.path(), directory).string()] = content.str();
  }
  return files;
}

}  // namespace reprise::test
