#pragma once
// Lives of a small job in a simulated world with faults, through the real engine. What a life holds
// is a function of a step, so that what a load brings tells which checkpoint it is from, to the
// last element.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/hash.hpp"
#include "core/engine/load.hpp"
#include "core/engine/save.hpp"
#include "sim/faults/fault_book.hpp"
#include "sim/faults/faulty_ports.hpp"
#include "sim/faults/memory_meter.hpp"
#include "sim/world/sim_store.hpp"
#include "sim/world/world.hpp"

namespace reprise::sim {

inline constexpr const char* kRoot = "run";
inline constexpr std::int64_t kRows = 24;
inline constexpr std::int64_t kColumns = 250;
inline constexpr std::int64_t kObjects = 6;
inline constexpr std::uint64_t kDeadlineNs = 1'000'000'000;

/// What one rank of so many holds after a step: rows of one tensor, a copy of another, objects.
class SmallState {
 public:
  SmallState(GlobalRank rank, std::int32_t ranks)
      : rows_(kRows / ranks), first_(rows_ * rank.value) {
    CHECK(kRows % ranks == 0 && kObjects % ranks == 0, ranks);
    rows_data_.assign(static_cast<std::size_t>(rows_ * kColumns), -1);
    copy_data_.assign(7, -1);
    const Box box{{first_, 0}, {rows_, kColumns}};
    leaves_.tensors = {{.key = "rows",
                        .dtype = DType::kInt64,
                        .shape = {kRows, kColumns},
                        .pieces = {contiguous_piece(box)},
                        .data = reinterpret_cast<std::byte*>(rows_data_.data())},
                       {.key = "copy",
                        .dtype = DType::kInt64,
                        .shape = {7},
                        .pieces = {contiguous_piece(Box::whole({7}))},
                        .data = reinterpret_cast<std::byte*>(copy_data_.data()),
                        .replica = rank.value}};
    for (std::int64_t i = 0; i < kObjects / ranks; ++i) {
      leaves_.objects.push_back({.key = "note",
                                 .grid = {kObjects},
                                 .coordinate = {rank.value * (kObjects / ranks) + i},
                                 .replica = 0,
                                 .value = Value(None{})});
    }
    leaves_.common = Dict{{"step", -1}};
  }

  void become(std::int64_t step) {
    const std::int64_t base = first_ * kColumns;
    for (std::size_t i = 0; i < rows_data_.size(); ++i) {
      rows_data_[i] = element(step, base + static_cast<std::int64_t>(i));
    }
    for (std::size_t i = 0; i < copy_data_.size(); ++i) {
      copy_data_[i] = element(step, -1 - static_cast<std::int64_t>(i));
    }
    for (auto& object : leaves_.objects) object.value = note(step, object.coordinate[0]);
    leaves_.common = Dict{{"step", step}, {"lr", 1.0 / static_cast<double>(step + 1)}};
  }

  /// The step whose state this is, to the last bit; nothing if it is of no one step.
  std::optional<std::int64_t> step() const {
    const Value* stored = leaves_.common.find("step");
    const auto* step = stored == nullptr ? nullptr : stored->as<std::int64_t>();
    if (step == nullptr) return std::nullopt;
    SmallState right(*this);
    right.become(*step);
    bool same = right.rows_data_ == rows_data_ && right.copy_data_ == copy_data_ &&
                right.leaves_.common == leaves_.common;
    for (std::size_t i = 0; i < leaves_.objects.size(); ++i) {
      same = same && right.leaves_.objects[i].value == leaves_.objects[i].value;
    }
    return same ? std::optional(*step) : std::nullopt;
  }

  StateDict& leaves() { return leaves_; }
  std::uint64_t tensor_bytes() const { return 8 * (rows_data_.size() + copy_data_.size()); }

 private:
  static std::int64_t element(std::int64_t step, std::int64_t index) {
    return static_cast<std::int64_t>(
        mix64(static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(index)));
  }
  static Value note(std::int64_t step, std::int64_t place) {
    return Dict{{"of", "step " + std::to_string(step)}, {"place", place}};
  }

  std::int64_t rows_;
  std::int64_t first_;
  std::vector<std::int64_t> rows_data_;
  std::vector<std::int64_t> copy_data_;
  StateDict leaves_;
};

/// How one life of a world came out.
struct LifeEnd {
  struct Rank {
    RankEnd end = RankEnd::kReturned;
    std::optional<Error> error = {};        ///< of the save or load
    std::optional<std::int64_t> step = {};  ///< a load: what the rank holds, of one step
    std::string message = {};
    MemoryPeaks peaks = {};
    std::uint64_t bound = 0;  ///< that the save or load declared
    std::uint64_t tensor_bytes = 0;
  };
  std::vector<Rank> ranks;
  std::vector<FaultState> faults;
  bool hung = false;
  std::string verdict;
  std::uint64_t event_hash = 0;
};

struct LifePlan {
  std::int32_t ranks = 2;
  std::vector<FaultSpec> faults = {};
  LoadChecksums checksums = LoadChecksums::kVerified;
  std::uint64_t seed = 0;
  SavePolicy save = {};
  LoadPolicy load = {};
  /// Small: files are written in several parts.
  std::uint64_t staging_max = 16384;
  std::uint64_t batch = 8192;
};

inline LifeEnd live(const LifePlan& plan, Store& store,
                    const std::function<void(const Ports&, std::shared_ptr<Communicator>,
                                             LifeEnd::Rank&, SmallState&)>& program) {
  LifeEnd life;
  life.ranks.resize(static_cast<std::size_t>(plan.ranks));
  FaultBook book(plan.faults);
  World world({.seed = plan.seed, .world_size = plan.ranks, .deadline_ns = kDeadlineNs}, store);
  const RunResult result = world.run([&](Ports& ports, GlobalRank rank) {
    LifeEnd::Rank& own = life.ranks[static_cast<std::size_t>(rank.value)];
    FaultyPorts faulty(ports, book,
                       {.die = [&world, rank] { world.kill(rank); },
                        .sleep = [&world](std::uint64_t ns) { world.sleep(ns); }});
    MemoryMeter meter(faulty.ports());
    SmallState state(rank, plan.ranks);
    own.tensor_bytes = state.tensor_bytes();
    meter.set_own(state.leaves());
    try {
      auto group = meter.ports().fabric.communicator(Group::world(plan.ranks));
      for (std::size_t i = 0; i < plan.faults.size(); ++i) book.arm(i, rank);
      program(meter.ports(), group, own, state);
    } catch (const Error& error) {
      own.error = error;
    }
    own.peaks = meter.peaks();
    if (own.error) throw Error(*own.error);
  });
  for (std::size_t r = 0; r < life.ranks.size(); ++r) {
    life.ranks[r].end = result.ranks[r].end;
    life.ranks[r].message = result.ranks[r].message;
    life.hung = life.hung || result.ranks[r].end == RankEnd::kHung;
  }
  life.hung = life.hung || result.deadlock.has_value();
  if (result.deadlock) life.verdict = result.deadlock->what();
  life.faults = book.states();
  life.event_hash = result.event_hash;
  return life;
}

/// A life that saves the state of `step`.
inline LifeEnd save_step(std::int64_t step, SimStore& store, const LifePlan& plan = {}) {
  return live(
      plan, store,
      [&](const Ports& ports, const std::shared_ptr<Communicator>& group, LifeEnd::Rank& own,
          SmallState& state) {
        state.become(step);
        SaveOptions options;
        options.target = CommitTarget::iteration(kRoot, Step{step});
        options.image = {.staging_bytes_max = plan.staging_max, .batch_bytes = plan.batch};
        options.policy = plan.save;
        own.bound =
            Save::begin(ports, group, state.leaves(), std::move(options)).finish().bound_staging;
      });
}

/// A life that loads what there is.
inline LifeEnd load_newest(SimStore& store, const LifePlan& plan = {}) {
  return live(plan, store,
              [&](const Ports& ports, const std::shared_ptr<Communicator>& group,
                  LifeEnd::Rank& own, SmallState& state) {
                LoadOptions options;
                options.path = kRoot;
                options.checksums = plan.checksums;
                options.policy = plan.load;
                own.bound = load(ports, *group, state.leaves(), options).bound_staging;
                own.step = state.step();
              });
}

}  // namespace reprise::sim
