// Tests saves under one layout and loads of their checkpoints under another. Every element is
// checked.

#include <gtest/gtest.h>

#include <atomic>

#include "core/ports/passing_store.hpp"
#include "core/ports/whole_file.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/contracts/thread_world.hpp"
#include "tests/fixtures/round_trip.hpp"

namespace reprise {
namespace {

using contracts::error_of;
using contracts::run_ranks;
using contracts::TemporaryDirectory;
using testing_job::mesh_of;
using testing_job::RankState;
using testing_job::TensorSpec;

struct World {
  std::string name;
  std::vector<Axis> axes;

  std::int32_t size() const { return mesh_of(axes)->size(); }
};

const std::vector<World> kWorlds = {
    {"one", {{"tp", 1}}}, {"tp2", {{"tp", 2}}}, {"tp2dp2", {{"tp", 2}, {"dp", 2}}},
    {"dp3", {{"dp", 3}}}, {"tp4", {{"tp", 4}}}, {"tp2dp3", {{"tp", 2}, {"dp", 3}}},
};

/// Returns tensors of every element width. Some have uneven shards, no elements, or no dimensions.
/// Some are split over two axes, either along the same dimension or along two.
std::vector<TensorSpec> specs() {
  const Placement rows({{"tp", 0}});
  const Placement columns({{"tp", 1}});
  const Placement both({{"tp", 0}, {"dp", 0}});
  const Placement grid({{"tp", 1}, {"dp", 0}});
  return {{"rows", DType::kFloat32, {7, 5}, rows}, {"columns", DType::kBFloat16, {3, 10}, columns},
          {"both", DType::kFloat64, {9}, both},    {"grid", DType::kInt16, {5, 6, 2}, grid},
          {"few", DType::kUInt8, {3, 2}, rows},    {"none", DType::kFloat32, {0, 4}, rows},
          {"scalar", DType::kInt64, {}, {}},       {"complex", DType::kComplex128, {4, 3}, both},
          {"ends", DType::kInt32, {3, 2}, both},   {"flags", DType::kBool, {13}, {}}};
}

SaveOptions options_for(Step step) {
  SaveOptions options;
  options.directory = "run";
  options.step = step.value;
  options.batch_bytes = 4096;
  options.staging_bytes = 3 * 4096;
  return options;
}

void save_under(const World& world, const std::string& directory, Step step,
                const contracts::WrapStore& wrap = {}, const SaveOptions* given = nullptr) {
  const auto mesh = mesh_of(world.axes);
  const SaveOptions options = given != nullptr ? *given : options_for(step);
  run_ranks(
      world.size(), directory,
      [&](const Ports& ports) {
        RankState rank(specs(), mesh, ports.fabric.rank());
        testing_job::fill(rank.state);
        rank.state.objects = {{"rng",
                               {world.size()},
                               {ports.fabric.rank().value},
                               0,
                               Value(std::int64_t{100 + ports.fabric.rank().value})}};
        rank.state.common = Dict{{"iteration", Value(step.value)}};
        Save save = Save::begin(ports, ports.fabric.communicator(Group::world(world.size())),
                                rank.state, options);
        for (auto& leaf : rank.state.tensors) {  // changes the state at once, as a job would
          const auto bytes =
              static_cast<std::size_t>(leaf.pieces[0].box.elements()) * size_of(leaf.dtype);
          std::fill_n(leaf.data, bytes, std::byte{0x11});
        }
        save.finish();
      },
      wrap);
}

/// Loads on all ranks. Returns the number of wrong elements and the total number of elements.
std::pair<std::size_t, std::size_t> load_under(const World& world, const std::string& directory,
                                               const std::string& path = "run") {
  std::atomic<std::size_t> wrong = 0;
  std::atomic<std::size_t> all = 0;
  const auto mesh = mesh_of(world.axes);
  run_ranks(world.size(), directory, [&](const Ports& ports) {
    RankState rank(specs(), mesh, ports.fabric.rank());
    const auto group = ports.fabric.communicator(Group::world(world.size()));
    LoadOptions options;
    options.directory = path;
    options.excused = {"rng"};
    options.staging_bytes = 64;
    const LoadResult report = load(ports, *group, rank.state, options);
    // Short gaps are read too, but these layouts make nothing be read twice.
    std::uint64_t stored = 0;
    for (const auto& leaf : rank.state.tensors) {
      stored += static_cast<std::uint64_t>(volume(leaf.shape)) * size_of(leaf.dtype);
    }
    EXPECT_GE(report.bytes_read, report.bytes_needed);
    EXPECT_LE(report.bytes_read, stored);
    EXPECT_EQ(rank.state.common.find("iteration") != nullptr, true);
    wrong += testing_job::wrong_elements(rank.state);
    all += testing_job::element_count(rank.state);
  });
  return {wrong, all};
}

TEST(SaveLoad, every_pair_of_small_worlds_loads_every_element_bit_for_bit) {
  for (const auto& saver : kWorlds) {
    const TemporaryDirectory directory;
    save_under(saver, directory.path(), Step{3});
    for (const auto& loader : kWorlds) {
      const auto [wrong, all] = load_under(loader, directory.path());
      EXPECT_EQ(wrong, 0U) << saver.name << " to " << loader.name;
      EXPECT_GT(all, 150U);
    }
  }
}

TEST(SaveLoad, a_second_save_over_the_tracked_step_replaces_it_whole) {
  const TemporaryDirectory directory;
  save_under(kWorlds[4], directory.path(), Step{3});  // writes four files
  save_under(kWorlds[0], directory.path(), Step{3});  // writes one file
  PosixStore store(directory.path());
  const auto entries = store.list("run/iter_0000003");
  std::vector<std::string> names;
  for (const auto& entry : entries) names.push_back(entry.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{".metadata", "__0_0.distcp", "common.pt", "metadata.json"}));
  EXPECT_EQ(store.list("run").size(), 2U) << "nothing may be left next to it";
  EXPECT_EQ(load_under(kWorlds[1], directory.path()).first, 0U);
}

TEST(SaveLoad, the_tracker_names_the_newest_step_and_older_ones_stay) {
  const TemporaryDirectory directory;
  save_under(kWorlds[1], directory.path(), Step{3});
  save_under(kWorlds[1], directory.path(), Step{12});
  PosixStore store(directory.path());
  EXPECT_EQ(Checkpoint::open(store, "run").location().step, Step{12});
  EXPECT_EQ(load_under(kWorlds[0], directory.path(), "run/iter_0000003").first, 0U);
}

TEST(SaveLoad, a_manifest_lists_every_file) {
  const TemporaryDirectory directory;
  SaveOptions options = options_for(Step{1});
  options.checksums = Checksums::kCrc32AndSha256;
  save_under(kWorlds[1], directory.path(), Step{1}, {}, &options);
  PosixStore store(directory.path());
  const auto manifest = read_integrity(read_all(store, "run/iter_0000001/integrity.json", 1 << 20));
  for (const auto& entry : store.list("run/iter_0000001")) {
    if (entry.name == "integrity.json") continue;
    const FileDigest* digest = manifest.find(entry.name);
    ASSERT_NE(digest, nullptr) << entry.name;
    EXPECT_EQ(digest->digest,
              sha256_of(read_all(store, "run/iter_0000001/" + entry.name, 1 << 20)));
  }
}

// --- saves and loads that fail -------------------------------------------------------------------

/// A payload file whose writes fail. FailingStore wraps every payload file in one.
class FailingFile final : public WriteFile {
 public:
  explicit FailingFile(std::unique_ptr<WriteFile> inner) : inner_(std::move(inner)) {}
  void write_at(std::uint64_t offset, ByteSpan) override {
    throw Error(Code::kNoSpace, "no space left", {.file = "payload", .offset = offset});
  }
  void sync() override { inner_->sync(); }
  void close() override { inner_->close(); }

 private:
  std::unique_ptr<WriteFile> inner_;
};

class FailingStore final : public PassingStore {
 public:
  using PassingStore::PassingStore;
  std::unique_ptr<WriteFile> create(const std::string& path) override {
    auto file = inner().create(path);
    if (!path.ends_with(".distcp")) return file;
    return std::make_unique<FailingFile>(std::move(file));
  }
};

TEST(SaveLoad, a_failed_write_is_the_same_error_everywhere_and_invisible) {
  const TemporaryDirectory directory;
  save_under(kWorlds[2], directory.path(), Step{3});
  std::mutex mutex;
  std::vector<std::string> errors;
  const auto wrap = [](Store& store, GlobalRank rank) -> std::unique_ptr<Store> {
    return rank == GlobalRank{2} ? std::make_unique<FailingStore>(store) : nullptr;
  };
  const auto mesh = mesh_of(kWorlds[2].axes);
  run_ranks(
      4, directory.path(),
      [&](const Ports& ports) {
        const auto failed = error_of([&] {
          RankState rank(specs(), mesh, ports.fabric.rank());
          Save::begin(ports, ports.fabric.communicator(Group::world(4)), rank.state,
                      options_for(Step{4}))
              .finish();
        });
        ASSERT_TRUE(failed);
        const std::lock_guard lock(mutex);
        errors.emplace_back(failed->what());
      },
      wrap);
  ASSERT_EQ(errors.size(), 4U);
  for (const auto& error : errors) EXPECT_EQ(error, errors[0]);
  EXPECT_NE(errors[0].find("NO_SPACE"), std::string::npos);
  EXPECT_NE(errors[0].find("rank 2"), std::string::npos);
  PosixStore store(directory.path());
  EXPECT_FALSE(store.stat("run/iter_0000004"));
  EXPECT_EQ(Checkpoint::open(store, "run").location().step, Step{3});
  EXPECT_EQ(load_under(kWorlds[0], directory.path()).first, 0U);
}

TEST(SaveLoad, a_common_state_that_differs_is_refused_before_any_write) {
  const TemporaryDirectory directory;
  const auto mesh = mesh_of({{"dp", 2}});
  run_ranks(2, directory.path(), [&](const Ports& ports) {
    RankState rank(specs(), mesh, ports.fabric.rank());
    rank.state.common = Dict{{"step", Value(std::int64_t{ports.fabric.rank().value})}};
    const auto failed = error_of([&] {
      Save::begin(ports, ports.fabric.communicator(Group::world(2)), rank.state,
                  options_for(Step{1}));
    });
    ASSERT_TRUE(failed);
    EXPECT_EQ(failed->code(), Code::kCommonStateDiverges);
  });
  EXPECT_FALSE(PosixStore(directory.path()).stat("run"));
}

/// Loads on one rank, with the requested state as edited by `change`. Returns the error, and
/// whether the tensors kept their bits.
std::pair<std::optional<Error>, bool> refused_load(const std::string& directory,
                                                   const std::function<void(StateDict&)>& change,
                                                   Strictness strictness = Strictness::kRaiseAll) {
  std::optional<Error> failed;
  bool untouched = true;
  run_ranks(1, directory, [&](const Ports& ports) {
    RankState rank(specs(), mesh_of({{"tp", 1}}), ports.fabric.rank());
    change(rank.state);
    const auto group = ports.fabric.communicator(Group::world(1));
    LoadOptions options;
    options.directory = "run";
    options.strictness = strictness;
    options.excused = {"rng"};
    failed = error_of([&] { load(ports, *group, rank.state, options); });
    for (const auto& leaf : rank.state.tensors) {
      const auto bytes =
          static_cast<std::size_t>(leaf.pieces[0].box.elements()) * size_of(leaf.dtype);
      for (std::size_t b = 0; b < bytes; ++b) untouched = untouched && leaf.data[b] == std::byte{0};
    }
  });
  return {failed, untouched};
}

TEST(SaveLoad, refused_names_shapes_and_dtypes_leave_the_destination_alone) {
  const TemporaryDirectory directory;
  save_under(kWorlds[1], directory.path(), Step{3});
  struct Row {
    std::string what;
    std::function<void(StateDict&)> change;
    Code code;
    std::string key;
  };
  const std::vector<Row> rows = {
      {"a key that is not stored", [](StateDict& s) { s.tensors[1].key = "colums"; },
       Code::kNotStored, "colums"},
      {"a stored key that nobody wants", [](StateDict& s) { s.tensors.pop_back(); },
       Code::kNotRequested, "flags"},
      {"another dtype", [](StateDict& s) { s.tensors[0].dtype = DType::kInt32; }, Code::kDtypeDrift,
       "rows"},
      {"another shape",
       [](StateDict& s) {
         s.tensors[6].shape = {1};
         s.tensors[6].pieces = {contiguous_piece(Box::whole({1}))};
       },
       Code::kShapeDrift, "scalar"},
  };
  for (const auto& row : rows) {
    const auto [failed, untouched] = refused_load(directory.path(), row.change);
    ASSERT_TRUE(failed) << row.what;
    EXPECT_EQ(failed->code(), row.code) << failed->what();
    EXPECT_EQ(failed->place().key, row.key) << failed->what();
    EXPECT_TRUE(untouched) << row.what;
  }
}

TEST(SaveLoad, a_payload_cut_short_poisons_the_destination_on_every_rank) {
  const TemporaryDirectory directory;
  save_under(kWorlds[1], directory.path(), Step{3});
  std::filesystem::resize_file(directory.path() + "/run/iter_0000003/__1_0.distcp", 3000);
  const auto mesh = mesh_of({{"dp", 2}});
  run_ranks(2, directory.path(), [&](const Ports& ports) {
    RankState rank(specs(), mesh, ports.fabric.rank());
    const auto group = ports.fabric.communicator(Group::world(2));
    LoadOptions options;
    options.directory = "run";
    options.excused = {"rng"};
    const auto failed = error_of([&] { load(ports, *group, rank.state, options); });
    ASSERT_TRUE(failed);
    EXPECT_EQ(failed->code(), Code::kTornFile) << failed->what();
    EXPECT_NE(failed->place().file.find("__1_0.distcp"), std::string::npos);
    EXPECT_TRUE(failed->place().offset);
    for (const auto& leaf : rank.state.tensors) {
      if (!leaf.pieces[0].box.empty()) {
        EXPECT_EQ(leaf.data[0], std::byte{0xBD}) << leaf.key;
      }
    }
  });
}

// --- objects and the common state ----------------------------------------------------------------

/// Saves one rank's state, including one object "o" with a coordinate in a grid. Then loads the
/// checkpoint into a fresh rank.
struct OneRank {
  TemporaryDirectory directory;

  void save() {
    run_ranks(1, directory.path(), [&](const Ports& ports) {
      RankState rank(specs(), mesh_of({{"tp", 1}}), ports.fabric.rank());
      testing_job::fill(rank.state);
      rank.state.objects = {{"o", {1, 1}, {0, 0}, 0, Value(std::int64_t{7})}};
      rank.state.common = Dict{{"iteration", Value(3)}};
      Save::begin(ports, ports.fabric.communicator(Group::world(1)), rank.state,
                  options_for(Step{3}))
          .finish();
    });
  }

  LoadResult load(StateDict& into_objects, Strictness strictness = Strictness::kRaiseAll) {
    LoadResult report;
    run_ranks(1, directory.path(), [&](const Ports& ports) {
      RankState rank(specs(), mesh_of({{"tp", 1}}), ports.fabric.rank());
      rank.state.objects = into_objects.objects;
      const auto group = ports.fabric.communicator(Group::world(1));
      LoadOptions options;
      options.directory = "run";
      options.strictness = strictness;
      report = reprise::load(ports, *group, rank.state, options);
      into_objects.objects = rank.state.objects;
      into_objects.common = rank.state.common;
    });
    return report;
  }
};

TEST(SaveLoad, objects_and_common_state_come_back) {
  OneRank one;
  one.save();
  StateDict into;
  into.objects = {{"o", {1, 1}, {0, 0}, 0, Value(-1)}};
  const LoadResult report = one.load(into);
  EXPECT_EQ(into.objects[0].value, Value(7));
  EXPECT_EQ(report.objects, 1U);
  EXPECT_EQ(report.tensors, specs().size());
  ASSERT_NE(into.common.find("iteration"), nullptr);
  EXPECT_EQ(*into.common.find("iteration"), Value(3));
}

TEST(SaveLoad, an_absent_object_is_counted_as_absent_and_stays_as_it_was) {
  OneRank one;
  one.save();
  StateDict into;
  into.objects = {{"o", {1, 1}, {0, 0}, 0, Value(-1)}, {"p", {1}, {0}, 0, Value(-1)}};
  const LoadResult report = one.load(into, Strictness::kLogAll);
  EXPECT_EQ(into.objects[0].value, Value(7));
  EXPECT_EQ(into.objects[1].value, Value(-1));
  EXPECT_EQ(report.objects, 1U);
  EXPECT_EQ(report.tensors, specs().size());
}

TEST(SaveLoad, a_lost_common_state_is_refused) {
  OneRank one;
  one.save();
  std::filesystem::remove(one.directory.path() + "/run/iter_0000003/common.pt");
  StateDict into;
  into.objects = {{"o", {1, 1}, {0, 0}, 0, Value(-1)}};
  const auto failed = error_of([&] { one.load(into); });
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->code(), Code::kNotStored) << failed->what();
  EXPECT_NE(failed->message().find("common.pt"), std::string::npos);
}

TEST(SaveLoad, a_failed_save_stays_failed_however_often_it_is_asked) {
  const TemporaryDirectory directory;
  const auto wrap = [](Store& store, GlobalRank) -> std::unique_ptr<Store> {
    return std::make_unique<FailingStore>(store);
  };
  run_ranks(
      1, directory.path(),
      [&](const Ports& ports) {
        RankState rank({{"w", DType::kUInt8, {16}, {}}}, mesh_of({{"tp", 1}}), ports.fabric.rank());
        Save save = Save::begin(ports, ports.fabric.communicator(Group::world(1)), rank.state,
                                options_for(Step{1}));
        for (int i = 0; i < 3; ++i) {
          const auto failed = error_of([&] { save.finish(); });
          ASSERT_TRUE(failed) << i;
          EXPECT_EQ(failed->code(), Code::kNoSpace) << i;
        }
        EXPECT_TRUE(error_of([&] { save.poll(); }));
      },
      wrap);
  EXPECT_FALSE(PosixStore(directory.path()).stat("run/iter_0000001"));
}

}  // namespace
}  // namespace reprise
