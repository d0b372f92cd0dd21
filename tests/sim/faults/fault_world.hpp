#pragma once
// Runs lives of a small job in a simulated world with faults, using the real engine. The content of
// a checkpoint depends only on its step, so each loaded element shows from which checkpoint it was
// read.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/check.hpp"
#include "core/base/hash.hpp"
#include "core/load/load_seamed.hpp"
#include "core/save/save_seamed.hpp"
#include "sim/faults/fault_book.hpp"
#include "sim/faults/faulty_ports.hpp"
#include "sim/faults/memory_meter.hpp"
#include "sim/world/sim_store.hpp"
#include "sim/world/world.hpp"

namespace reprise::sim {

inline constexpr const char* kRoot = "run";
inline constexpr std::int64_t kRows = 24;
inline constexpr std::int64_t kColumns = 150;
inline constexpr std::int64_t kRest = 100;
inline constexpr std::int64_t kObjects = 6;
inline constexpr std::uint64_t kDeadlineNs = 1'000'000'000;

/// A rank's state after a step: the rank's rows of two tensors, a copy of a whole third tensor, and
/// objects.
class SmallState {
 public:
  SmallState(GlobalRank rank, std::int32_t ranks) {
    CHECK(kRows % ranks == 0 && kObjects % ranks == 0, ranks);
    const std::int64_t rows = kRows / ranks;
    add("rows", {kRows, kColumns}, {{rows * rank.value, 0}, {rows, kColumns}}, 0);
    add("rest", {kRows, kRest}, {{rows * rank.value, 0}, {rows, kRest}}, 0);
    add("copy", {7}, Box::whole({7}), rank.value);
    for (std::int64_t i = 0; i < kObjects / ranks; ++i) {
      leaves_.objects.push_back({.key = "note",
                                 .grid = {kObjects},
                                 .coordinate = {rank.value * (kObjects / ranks) + i},
                                 .replica = 0,
                                 .value = Value(NoneType{})});
    }
    leaves_.common = Dict{{"step", -1}};
  }

  void become(std::int64_t step) {
    for (std::size_t t = 0; t < data_.size(); ++t) {
      const auto values = elements(step, t);
      // Copies in place, because the leaves point to this memory.
      std::copy(values.begin(), values.end(), data_[t].begin());
    }
    for (auto& object : leaves_.objects) object.value = note(step, object.coordinate[0]);
    leaves_.common = common(step);
  }

  /// Returns the step to which the whole state belongs; nothing if the state mixes several steps.
  std::optional<std::int64_t> step() const {
    const Value* stored = leaves_.common.find("step");
    const auto* step = stored == nullptr ? nullptr : stored->as<std::int64_t>();
    if (step == nullptr || !(leaves_.common == common(*step))) return std::nullopt;
    for (std::size_t t = 0; t < data_.size(); ++t) {
      if (data_[t] != elements(*step, t)) return std::nullopt;
    }
    for (const auto& object : leaves_.objects) {
      if (!(object.value == note(*step, object.coordinate[0]))) return std::nullopt;
    }
    return *step;
  }

  StateDict& leaves() { return leaves_; }
  std::uint64_t tensor_bytes() const {
    std::uint64_t bytes = 0;
    for (const auto& data : data_) bytes += 8 * data.size();
    return bytes;
  }

 private:
  void add(const char* key, const Dims& shape, const Box& box, std::int32_t replica) {
    first_.push_back(box.offset[0] * (shape.size() > 1 ? shape[1] : 1));
    data_.emplace_back(static_cast<std::size_t>(box.elements()), -1);
    leaves_.tensors.push_back({.key = key,
                               .dtype = DType::kInt64,
                               .shape = shape,
                               .pieces = {contiguous_piece(box)},
                               .data = reinterpret_cast<std::byte*>(data_.back().data()),
                               .replica = replica});
  }

  /// Returns this rank's elements of a tensor. Their global indices are consecutive, because the
  /// rank's rows are.
  std::vector<std::int64_t> elements(std::int64_t step, std::size_t tensor) const {
    const auto seed = mix64(static_cast<std::uint64_t>(step), tensor);
    std::vector<std::int64_t> elements;
    for (std::size_t i = 0; i < data_[tensor].size(); ++i) {
      const auto index = static_cast<std::uint64_t>(first_[tensor]) + i;
      elements.push_back(static_cast<std::int64_t>(mix64(seed, index)));
    }
    return elements;
  }
  static Value common(std::int64_t step) {
    return Dict{{"step", step}, {"lr", 1.0 / static_cast<double>(step + 1)}};
  }
  static Value note(std::int64_t step, std::int64_t place) {
    return Dict{{"of", "step " + std::to_string(step)}, {"place", place}};
  }

  std::vector<std::vector<std::int64_t>> data_;  ///< for each tensor: this rank's elements
  std::vector<std::int64_t> first_;  ///< for each tensor: global index of this rank's first element
  StateDict leaves_;
};

/// The result of one life of a simulated job.
struct LifeEnd {
  struct Rank {
    RankEnd end = RankEnd::kReturned;
    std::optional<Error> error = {};        ///< error of the save or the load
    std::optional<std::int64_t> step = {};  ///< step of the rank's state after a load
    std::string message = {};
    MemoryPeaks peaks = {};
    std::uint64_t bound = 0;       ///< declared bound on the memory of the save or the load
    std::uint64_t bytes_read = 0;  ///< number of bytes that a load read
    std::uint64_t tensor_bytes = 0;
    std::uint64_t duration_ns = 0;  ///< virtual time of the whole life
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
  SaveSeams save = {};
  LoadSeams load = {};
  Reads reads = Reads::kByEach;
  /// Staging memory and batches are small, so that files are written in several parts.
  std::uint64_t staging_max = 16384;
  std::uint64_t batch = 8192;
  std::optional<std::int32_t> keep = {};
  Checksums written = Checksums::kCrc32;
  ReadBack read_back = ReadBack::kBeforeOlderGoes;
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
    own.duration_ns = world.clock().now_ns();
    own.peaks = meter.peaks();
    own.bytes_read = meter.bytes_read();
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

/// Runs a life that saves the state of `step`.
inline LifeEnd save_step(std::int64_t step, SimStore& store, const LifePlan& plan = {}) {
  return live(
      plan, store,
      [&](const Ports& ports, const std::shared_ptr<Communicator>& group, LifeEnd::Rank& own,
          SmallState& state) {
        state.become(step);
        SaveOptions options;
        options.directory = kRoot;
        options.step = step;
        options.keep = plan.keep;
        options.staging_bytes = plan.staging_max;
        options.batch_bytes = plan.batch;
        options.checksums = plan.written;
        options.read_back = plan.read_back;
        own.bound =
            begin_save(ports, group, state.leaves(), options, {}, plan.save).finish().bound_staging;
      });
}

/// Runs a life that loads the newest checkpoint.
inline LifeEnd load_newest(SimStore& store, const LifePlan& plan = {}) {
  return live(plan, store,
              [&](const Ports& ports, const std::shared_ptr<Communicator>& group,
                  LifeEnd::Rank& own, SmallState& state) {
                LoadOptions options;
                options.directory = kRoot;
                options.checksums = plan.checksums;
                options.reads = plan.reads;
                own.bound = load(ports, *group, state.leaves(), options, plan.load).bound_staging;
                own.step = state.step();
              });
}

}  // namespace reprise::sim
