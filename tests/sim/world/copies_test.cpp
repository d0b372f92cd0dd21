// Tests what several ranks save under one key: copies without numbers, bytes, paths, and parts in
// memory of two kinds.

#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/api/calls.hpp"
#include "core/checkpoint/checkpoint.hpp"
#include "reprise/reprise.hpp"
#include "sim/world/sim_store.hpp"
#include "sim/world/world.hpp"

namespace reprise::copies_test {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

class Copies : public testing::Test {
 protected:
  /// Runs `program` on so many ranks. Returns the text of each rank's error, "" if it has none.
  std::vector<std::string> run(std::int32_t ranks,
                               const std::function<void(Job&, std::int32_t rank)>& program) {
    sim::World world({.seed = 3, .world_size = ranks}, store_);
    std::vector<std::string> complaints(static_cast<std::size_t>(ranks));
    world.run([&](Ports& ports, GlobalRank rank) {
      Job job(borrowed_ports(ports));
      try {
        program(job, rank.value);
      } catch (const Error& error) {
        complaints[static_cast<std::size_t>(rank.value)] = error.what();
      }
    });
    return complaints;
  }
  Metadata stored() { return Checkpoint::open(store_, "run").metadata(); }

  sim::SimStore store_{"sim:"};
};

TensorPart part_of(Dims offset, std::vector<float>& memory) {
  const Dims extent = {static_cast<std::int64_t>(memory.size())};
  return {.offset = offset, .extent = extent, .data = memory.data()};
}

/// FSDP over ranks {0, 2} and {1, 3} of a tensor that tensor parallelism does not split: ranks 0
/// and 1 hold the first half, 2 and 3 the second. No rank can tell the number of its copy.
TEST_F(Copies, equal_boxes_are_written_once_and_spread_over_their_holders) {
  const auto half = [](std::int32_t rank) { return Dims{rank / 2 * 3}; };
  const auto done = run(4, [&](Job& job, std::int32_t rank) {
    State state;
    std::vector<std::vector<float>> memory(8, std::vector<float>(3, rank < 2 ? 0.5F : 1.5F));
    for (std::size_t i = 0; i < memory.size(); ++i) {
      const TensorPart part = part_of(half(rank), memory[i]);
      state.add("w" + std::to_string(i), DType::kFloat32, {6}, {&part, 1});
    }
    save(job, state, {.directory = "run"});
  });
  EXPECT_THAT(done, Each(std::string()));
  std::vector<int> written(4);
  const Metadata metadata = stored();
  ASSERT_EQ(metadata.catalog.tensors.size(), 8U);
  for (const auto& tensor : metadata.catalog.tensors) {
    ASSERT_EQ(tensor.chunks.size(), 2U);
    for (const auto& chunk : tensor.chunks) {
      ++written[static_cast<std::size_t>(metadata.catalog.files[chunk.file][2] - '0')];
    }
  }
  EXPECT_THAT(written, Each(4)) << "each of two holders writes half of what both have";
  const auto loaded = run(3, [&](Job& job, std::int32_t /*rank*/) {
    std::vector<float> whole(6);
    State state;
    const TensorPart part = part_of({0}, whole);
    state.add("w5", DType::kFloat32, {6}, {&part, 1});
    load(job, state, {.directory = "run", .strictness = Strictness::kIgnoreAll});
    EXPECT_THAT(whole, testing::ElementsAre(0.5F, 0.5F, 0.5F, 1.5F, 1.5F, 1.5F));
  });
  EXPECT_THAT(loaded, Each(std::string()));
}

TEST_F(Copies, numbers_on_some_ranks_still_count) {
  const auto with = [&](std::int32_t first, std::int32_t second) {
    return run(2, [&](Job& job, std::int32_t rank) {
      std::vector<float> memory(2, 1);
      const TensorPart part = part_of({0}, memory);
      State state;
      state.add("w", DType::kFloat32, {2}, {&part, 1}, rank == 0 ? first : second);
      save(job, state, {.directory = "run"});
    });
  };
  EXPECT_THAT(with(kAnyCopy, 0), Each(std::string()));
  EXPECT_THAT(with(1, kAnyCopy), Each(std::string()));
  EXPECT_THAT(with(0, 0), Each(HasSubstr("MULTI_WRITER")));
  EXPECT_THAT(with(1, 2), Each(HasSubstr("NO_WRITER")));
}

TEST_F(Copies, bytes_are_written_once_and_each_rank_gets_its_own) {
  const Bytes same = {std::byte{5}};
  const auto done = run(3, [&](Job& job, std::int32_t rank) {
    State state;
    state.add_bytes("lr", same);
    state.add_bytes("of." + std::to_string(rank), {std::byte{9}, std::byte(rank)});
    save(job, state, {.directory = "run"});
    State into;
    into.add_bytes("lr", {std::byte{1}});
    into.add_bytes("of." + std::to_string(rank), {std::byte{1}});
    load(job, into, {.directory = "run"});
    EXPECT_EQ(into.bytes("lr"), same);
    EXPECT_EQ(into.bytes("of." + std::to_string(rank)), (Bytes{std::byte{9}, std::byte(rank)}));
  });
  EXPECT_THAT(done, Each(std::string()));
  EXPECT_EQ(stored().catalog.objects.size(), 4U);
}

TEST_F(Copies, a_key_of_a_tensor_here_and_bytes_there_fails_all_ranks) {
  const auto done = run(2, [&](Job& job, std::int32_t rank) {
    std::vector<float> memory(2, 1);
    const TensorPart part = part_of({0}, memory);
    State state;
    if (rank == 0) state.add("w", DType::kFloat32, {2}, {&part, 1});
    if (rank == 1) state.add_bytes("w", {std::byte{1}});
    save(job, state, {.directory = "run"});
  });
  EXPECT_THAT(done, Each(AllOf(HasSubstr("LAYOUT_MISMATCH"), HasSubstr("key w"))));
}

TEST_F(Copies, paths_of_all_ranks_are_stored_and_must_agree) {
  const auto with = [&](const KeyPath& second) {
    return run(2, [&](Job& job, std::int32_t rank) {
      State state;
      state.add_bytes("lr", {std::byte{1}});
      state.set_path("lr", rank == 0 ? KeyPath{"optim", "lr"} : second);
      const std::string own = "of." + std::to_string(rank);
      state.add_bytes(own, {std::byte{1}});
      state.set_path(own, {"of", std::int64_t{rank}});
      save(job, state, {.directory = "run"});
    });
  };
  EXPECT_THAT(with({"optim", "lr"}), Each(std::string()));
  ASSERT_EQ(stored().planner_data.size(), 3U);
  EXPECT_EQ(stored().planner_data[2].path, (KeyPath{"of", std::int64_t{1}}));
  EXPECT_THAT(with({"other", "lr"}), Each(AllOf(HasSubstr("LAYOUT_MISMATCH"),
                                                HasSubstr("another path"), HasSubstr("lr"))));
}

}  // namespace
}  // namespace reprise::copies_test
