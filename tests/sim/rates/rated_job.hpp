#pragma once
// Defines a job of many equal tensors, and measures its saves and loads in a world with rates.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "core/load/load.hpp"
#include "core/save/save.hpp"
#include "core/state/state_dict.hpp"
#include "sim/world/world.hpp"
#include "tests/sim/world/tiny_job.hpp"

namespace reprise::sim {

struct RatedShape {
  std::size_t tensors = 1;
  std::size_t tensor_bytes = 8;  ///< a multiple of 8

  std::uint64_t bytes() const { return tensors * tensor_bytes; }
};

/// A job whose tensors are the same on every rank; each element has a value of its own.
class RatedJob {
 public:
  explicit RatedJob(const RatedShape& shape, bool filled) {
    data_.resize(shape.tensors, std::vector<std::int64_t>(shape.tensor_bytes / 8));
    for (std::size_t t = 0; t < data_.size(); ++t) {
      if (filled) fill(t);
      TensorLeaf leaf;
      leaf.key = "w" + std::to_string(t);
      leaf.dtype = DType::kInt64;
      leaf.shape = {static_cast<std::int64_t>(data_[t].size())};
      leaf.pieces = {contiguous_piece(Box::whole(leaf.shape))};
      leaf.data = reinterpret_cast<std::byte*>(data_[t].data());
      state.tensors.push_back(leaf);
    }
    state.common = Dict{{"iteration", std::int64_t{1}}};
  }
  RatedJob(const RatedJob&) = delete;
  RatedJob& operator=(const RatedJob&) = delete;

  /// Changes every element, as the next step of the job does.
  void overwrite() {
    for (auto& tensor : data_) std::fill(tensor.begin(), tensor.end(), -1);
  }
  bool same_as(const RatedJob& other) const { return data_ == other.data_; }

  StateDict state;

 private:
  void fill(std::size_t t) {
    std::iota(data_[t].begin(), data_[t].end(), static_cast<std::int64_t>(t << 32U));
  }

  std::vector<std::vector<std::int64_t>> data_;
};

inline const SaveOptions kRatedSave = {.directory = "run", .step = 1};

inline void expect_returned(const RunResult& result) {
  for (const auto& rank : result.ranks) {
    EXPECT_EQ(rank.end, RankEnd::kReturned)
        << (rank.error ? rank.error->what() : rank.message.c_str());
  }
}

/// Runs `program` on every rank of a world and returns how long it took there, in nanoseconds, by
/// rank. Ranks begin together.
inline std::vector<std::uint64_t> rated_times(WorldOptions options, Store& store,
                                              const std::function<void(Ports&)>& program) {
  std::vector<std::uint64_t> times(static_cast<std::size_t>(options.world_size));
  World world(std::move(options), store);
  const auto result = world.run([&](Ports& ports, GlobalRank rank) {
    all_ranks(ports)->barrier();
    const std::uint64_t begin = world.clock().now_ns();
    program(ports);
    times[static_cast<std::size_t>(rank.value)] = world.clock().now_ns() - begin;
  });
  expect_returned(result);
  return times;
}

/// Saves the job of this shape in a world that takes no time.
inline void rated_save(Store& store, const RatedShape& shape) {
  rated_times({}, store, [&](Ports& ports) {
    RatedJob job(shape, true);
    Save::begin(ports, all_ranks(ports), job.state, kRatedSave).finish();
  });
}

/// Loads that job and returns the time of the slowest rank.
inline std::uint64_t rated_load(const WorldOptions& options, Store& store, const RatedShape& shape,
                                LoadOptions settings) {
  settings.directory = "run";
  const auto times = rated_times(options, store, [&](Ports& ports) {
    RatedJob job(shape, false);
    load(ports, *all_ranks(ports), job.state, settings);
    EXPECT_TRUE(job.same_as(RatedJob(shape, true)));
  });
  return *std::max_element(times.begin(), times.end());
}

}  // namespace reprise::sim
