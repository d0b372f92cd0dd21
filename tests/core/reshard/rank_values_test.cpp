// Tests checkpoints in which each rank wrote its own metadata. No command may confuse the values of
// one rank with those of another.

#include "core/reshard/rank_values.hpp"
#include "core/ports/store_path.hpp"
#include "core/ports/whole_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/adapters/posix/host_device.hpp"
#include "core/adapters/posix/thread_tasks.hpp"
#include "core/diff/diff.hpp"
#include "core/format/bytes_item.hpp"
#include "core/format/zip/crc32.hpp"
#include "core/load/load.hpp"
#include "core/reshard/reshard.hpp"
#include "core/verify/verify.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/contracts/thread_world.hpp"
#include "tests/fixtures/stored_fixture.hpp"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

/// The state of one rank: half of "w" (4 elements in all), the whole of "b", and the object "rng".
struct SavedRank {
  float b = 1;
  std::int64_t rng = 0;
  std::optional<std::int64_t> step = {};  ///< an object "step", if given
};

/// The payload of one rank, built item by item.
class Payload {
 public:
  Payload(Metadata& metadata, std::int32_t rank) {
    metadata.catalog.files.push_back("__" + std::to_string(rank) + "_0.distcp");
  }

  ByteRange tensor(const Dims& extent, float first) {
    const TensorItemLayout layout(DType::kFloat32, extent);
    std::vector<float> elements(static_cast<std::size_t>(volume(extent)), first);
    const ByteSpan content = std::as_bytes(std::span(elements));
    Bytes item = layout.head();
    append(item, content);
    append(item, layout.tail(crc32_of(content)));
    return put(item);
  }
  ByteRange object(std::int64_t value) { return put(write_bytes_item(Value(value), "archive")); }
  const Bytes& bytes() const { return bytes_; }

 private:
  ByteRange put(ByteSpan item) {
    const ByteRange range{bytes_.size(), item.size()};
    append(bytes_, item);
    return range;
  }

  Bytes bytes_;
};

/// Writes the checkpoint as torch does with use_collectives=False.
void save(Store& store, const std::string& directory, const std::vector<SavedRank>& ranks) {
  store.make_directory(directory);
  const auto count = static_cast<std::int64_t>(ranks.size());
  for (std::int32_t rank = 0; rank < count; ++rank) {
    const SavedRank& state = ranks[static_cast<std::size_t>(rank)];
    Metadata metadata;
    Payload payload(metadata, rank);
    const Box part{{rank * 2}, {2}};
    metadata.catalog.tensors = {
        {.key = "b", .shape = {3}, .chunks = {{Box::whole({3}), 0, payload.tensor({3}, state.b)}}},
        {.key = "w",
         .shape = {2 * count},
         .chunks = {{part, 0, payload.tensor({2}, static_cast<float>(rank))}}}};
    metadata.catalog.objects = {{"rng", 0, payload.object(state.rng)}};
    metadata.planner_data = {{"b", {"model", "b"}}, {"rng", {"rng"}}, {"w", {"model", "w"}}};
    if (state.step) {
      metadata.catalog.objects.push_back({"step", 0, payload.object(*state.step)});
      metadata.planner_data.push_back({"step", {"step"}});
    }
    write_durably(store, join_path(directory, metadata.catalog.files[0]), payload.bytes());
    write_durably(store, join_path(directory, "__" + std::to_string(rank) + ".metadata"),
                  write_metadata(metadata));
  }
}

class RankValues : public test::StoreTest {
 protected:
  RankValues() {
    save(store_, "a", {{1, 10}, {1, 11}});
    save(store_, "other_tensor", {{1, 10}, {2, 11}});
    save(store_, "other_object", {{1, 10}, {1, 12}});
  }

  DiffReport between(const std::string& left, const std::string& right) {
    return test::diff_of(store_, left, store_, right);
  }
  std::vector<std::string> differing(const std::string& left, const std::string& right) {
    std::vector<std::string> keys;
    const DiffReport report = between(left, right);
    for (const auto& tensor : report.tensors) {
      if (counts_as_different(tensor.verdict)) keys.push_back(tensor.key);
    }
    for (const auto& object : report.objects) {
      if (counts_as_different(object.verdict)) keys.push_back(object.key);
    }
    return keys;
  }
  ReshardReport run(const std::string& from, const RankChoice& choice) {
    Checkpoint source = Checkpoint::open(store_, from);
    const CutRule rule = [&choice](const std::string&, const Dims&) -> std::optional<Cut> {
      return choice.ranks == 0 ? std::nullopt : std::optional(Cut{0, choice.ranks});
    };
    return reshard(source, {"out"}, {.rule = rule, .writers = 2, .ranks = choice},
                   {store_, device_, tasks_, trace_, progress_});
  }
  /// Returns for each key the first step of its path in the nested state dict.
  std::map<std::string, std::string> paths_of(const std::string& path) {
    std::map<std::string, std::string> paths;
    const Checkpoint checkpoint = Checkpoint::open(store_, path);
    for (const auto& entry : checkpoint.metadata().planner_data) {
      paths[entry.key] = std::get<std::string>(entry.path.at(0));
    }
    return paths;
  }
  std::vector<std::string> keys_of(const std::string& path) {
    std::vector<std::string> keys;
    const Checkpoint checkpoint = Checkpoint::open(store_, path);
    for (const auto& tensor : checkpoint.catalog().tensors) keys.push_back(tensor.key);
    for (const auto& object : checkpoint.catalog().objects) keys.push_back(object.key);
    return keys;
  }
};

TEST_F(RankValues, equal_copies_become_one_and_others_stay_apart) {
  save(store_, "two_of_three", {{1, 10}, {1, 10}, {2, 10}});
  const auto merged = [this](const std::string& path) {
    Checkpoint checkpoint = Checkpoint::open(store_, path);
    return with_equal_copies_merged(checkpoint, device_);
  };
  const auto keys = [](const Metadata& metadata) {
    std::vector<std::string> found;
    for (const auto& tensor : metadata.catalog.tensors) found.push_back(tensor.key);
    for (const auto& object : metadata.catalog.objects) found.push_back(object.key);
    return found;
  };
  const Metadata equal = merged("a");
  EXPECT_THAT(keys(equal), ElementsAre("b", "w", "rng@rank0", "rng@rank1"));
  EXPECT_FALSE(equal.catalog.tensors[0].known_by.own);
  EXPECT_THAT(equal.catalog.tensors[0].known_by.ranks, ElementsAre(0, 1));
  std::vector<std::string> paths;
  for (const auto& entry : equal.planner_data) paths.push_back(entry.key);
  EXPECT_THAT(paths, UnorderedElementsAre("b", "rng@rank0", "w", "rng@rank1"));
  EXPECT_THAT(keys(merged("other_tensor")),
              ElementsAre("b@rank0", "b@rank1", "w", "rng@rank0", "rng@rank1"));
  EXPECT_THAT(keys(merged("two_of_three")),
              ElementsAre("b@rank0", "b@rank1", "b@rank2", "w", "rng"));
}

TEST_F(RankValues, are_items_of_their_own_and_all_of_them_are_verified) {
  EXPECT_THAT(keys_of("a"), ElementsAre("b@rank0", "b@rank1", "w", "rng@rank0", "rng@rank1"));
  const VerifyReport report = verify(store_, "a", PayloadCheck::kRead, progress_);
  EXPECT_TRUE(report.whole());
  EXPECT_EQ(report.elements, 3U + 3U + 4U);
  EXPECT_EQ(report.objects, 2U);
}

TEST_F(RankValues, that_differ_on_rank_1_alone_are_a_difference) {
  EXPECT_THAT(differing("a", "a"), IsEmpty());
  EXPECT_THAT(differing("a", "other_tensor"), ElementsAre("b@rank1"));
  EXPECT_THAT(differing("a", "other_object"), ElementsAre("rng@rank1"));
}

TEST_F(RankValues, are_kept_rank_by_rank_when_their_number_is) {
  const ReshardReport report = run("other_object", {.ranks = 2});
  EXPECT_EQ(report.ranks, 2U);
  EXPECT_THAT(differing("other_object", "out"), IsEmpty());
  EXPECT_THAT(differing("a", "out"), ElementsAre("rng@rank1"));
  EXPECT_TRUE(store_.stat("out/__0.metadata"));
  EXPECT_TRUE(store_.stat("out/__1.metadata"));
  EXPECT_FALSE(store_.stat("out/.metadata"));
  EXPECT_TRUE(verify(store_, "out", PayloadCheck::kRead, progress_).whole());
}

TEST_F(RankValues, that_disagree_on_the_step_are_told_and_others_are_not) {
  const auto warnings = [this](const std::string& path) {
    return verify(store_, path, PayloadCheck::kRead, progress_).strict_warnings();
  };
  EXPECT_EQ(warnings("a"), 0U) << "random states differ";
  save(store_, "same_step", {{1, 10, 100}, {1, 11, 100}});
  EXPECT_EQ(warnings("same_step"), 0U);
  save(store_, "two_steps", {{1, 10, 100}, {1, 11, 99}});
  EXPECT_EQ(warnings("two_steps"), 1U);
  const auto report = verify(store_, "two_steps", PayloadCheck::kRead, progress_);
  ASSERT_FALSE(report.findings.empty());
  EXPECT_THAT(report.findings[0].message, HasSubstr("step@rank0 is 100, step@rank1 is 99"));
}

TEST_F(RankValues, are_refused_by_name_when_there_is_one_metadata_for_all) {
  const auto error = contracts::error_of([&] { run("a", {.ranks = 3}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), Code::kUsage);
  EXPECT_EQ(error->place().key, "rng");
  EXPECT_THAT(error->message(), HasSubstr("--per-rank first"));
  EXPECT_FALSE(store_.stat("out"));
}

TEST_F(RankValues, become_the_first_ones_or_are_dropped_where_that_is_asked_for) {
  const ReshardReport first = run("other_tensor", {.per_rank = PerRank::kFirst, .ranks = 3});
  EXPECT_THAT(first.of_first, UnorderedElementsAre("b", "rng"));
  EXPECT_THAT(first.left_out, testing::IsEmpty()) << "all metadata is of this save";
  EXPECT_THAT(keys_of("out"), ElementsAre("b", "w", "rng"));
  EXPECT_THAT(differing("a", "out"), ElementsAre("rng@rank1"));
  using Paths = std::map<std::string, std::string>;
  EXPECT_EQ(paths_of("out"), (Paths{{"b", "model"}, {"rng", "rng"}, {"w", "model"}}));
  const ReshardReport dropped = run("a", {.per_rank = PerRank::kDrop});
  EXPECT_THAT(dropped.dropped, ElementsAre("rng"));
  EXPECT_THAT(keys_of("out"), ElementsAre("b", "w")) << "b must be the same on both ranks";
  EXPECT_EQ(paths_of("out"), (Paths{{"b", "model"}, {"w", "model"}}));
  EXPECT_THAT(differing("a", "out"), ElementsAre("rng@rank0", "rng@rank1"));
}

TEST_F(RankValues, that_are_equal_need_no_choice) {
  save(store_, "equal", {{1, 10}, {1, 10}});
  const ReshardReport report = run("equal", {.ranks = 3});
  EXPECT_THAT(report.of_first, IsEmpty());
  EXPECT_THAT(keys_of("out"), ElementsAre("b", "w", "rng"));
  save(store_, "longer", {{1, 10}, {1, 1000000}});
  EXPECT_EQ(contracts::code_of([&] { run("longer", {.ranks = 3}); }), Code::kUsage);
}

TEST_F(RankValues, are_not_loaded_by_another_number_of_ranks) {
  contracts::run_ranks(1, directory_.path(), [](const Ports& ports) {
    StateDict nothing;
    const auto group = ports.fabric.communicator(Group::world(1));
    const auto error = contracts::error_of([&] {
      load(ports, *group, nothing, {.directory = "a", .strictness = Strictness::kIgnoreAll});
    });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), Code::kUnsupported);
    EXPECT_EQ(error->place().key, "b@rank0");
  });
}

TEST_F(RankValues, are_not_there_to_choose_from_in_one_metadata_for_all) {
  run("a", {.per_rank = PerRank::kFirst});
  EXPECT_EQ(contracts::code_of([&] { run("out", {.per_rank = PerRank::kFirst}); }), Code::kUsage);
}

TEST_F(RankValues, of_replicas_of_a_sharded_tensor_are_as_many_copies) {
  std::vector<MetadataFile> files;
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    Metadata metadata;
    metadata.catalog.files = {"__" + std::to_string(rank) + "_0.distcp"};
    metadata.catalog.tensors = {
        {.key = "w", .shape = {4}, .chunks = {{{{2 * (rank / 2)}, {2}}, 0, {0, 600}}}}};
    files.push_back({"__" + std::to_string(rank) + ".metadata", write_metadata(metadata)});
  }
  std::vector<ByteSpan> contents;
  std::vector<std::string> names;
  for (const auto& file : files) {
    contents.emplace_back(file.content);
    names.push_back(file.name);
  }
  const Metadata read = read_metadata(contents, names);
  ASSERT_EQ(read.catalog.tensors.size(), 2U);
  EXPECT_EQ(read.catalog.tensors[0].key, "w@rank0");
  EXPECT_THAT(read.catalog.tensors[0].known_by.ranks, ElementsAre(0, 2));
  EXPECT_THAT(read.catalog.tensors[1].known_by.ranks, ElementsAre(1, 3));
  for (const auto& tensor : read.catalog.tensors) EXPECT_EQ(tensor.chunks.size(), 2U);
}

}  // namespace
}  // namespace reprise
