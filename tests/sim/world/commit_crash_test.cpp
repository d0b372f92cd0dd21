// Interrupts a save at each of its calls to the store, by killing the process or by cutting the
// power. Then cuts the power at each call of the next save, too. Afterwards, a reader must find one
// complete checkpoint.

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>

#include "core/checkpoint/checkpoint.hpp"
#include "core/format/tensor_item.hpp"
#include "core/format/zip/crc32.hpp"
#include "core/load/load_seamed.hpp"
#include "core/ports/store_path.hpp"
#include "core/save/commit_protocol.hpp"
#include "core/save/save_seamed.hpp"
#include "sim/mutants/mutants.hpp"
#include "sim/world/sim_store.hpp"

namespace reprise::sim::commit_crash_test {
namespace {

/// Thrown to end a process. Not a std::exception, so that no code on the way catches it.
struct Killed {};

/// A store that permits a given number of changes and syncs, and then throws Killed. It removes a
/// tree one name at a time, and makes each removal durable at once. This models the worst possible
/// file system.
class MortalStore final : public Store {
 public:
  MortalStore(SimStore& store, int calls_left) : store_(store), calls_left_(calls_left) {}

  StoreCapabilities capabilities() const override { return store_.capabilities(); }
  std::unique_ptr<ReadFile> open(const std::string& path) override { return store_.open(path); }
  std::unique_ptr<WriteFile> create(const std::string& path) override {
    live();
    return std::make_unique<MortalFile>(*this, store_.create(path));
  }
  std::optional<Entry> stat(const std::string& path) override { return store_.stat(path); }
  std::vector<Entry> list(const std::string& directory) override { return store_.list(directory); }
  void make_directory(const std::string& path) override {
    live();
    store_.make_directory(path);
  }
  void publish(const NameChange& change) override {
    live();
    store_.publish(change);
  }
  void replace(const NameChange& change) override {
    live();
    store_.replace(change);
  }
  void put_aside(const NameChange& change) override {
    live();
    store_.put_aside(change);
  }
  void remove(const std::string& path) override {
    const auto entry = store_.stat(path);
    if (!entry) return;
    if (entry->directory) {
      for (const auto& inner : store_.list(path)) {
        remove(join_path(path, inner.name));
        store_.sync_directory(path);
      }
    }
    live();
    store_.remove(path);
  }
  void sync_directory(const std::string& directory) override {
    live();
    store_.sync_directory(directory);
  }
  std::unique_ptr<StoreLock> lock(const std::string& path) override { return store_.lock(path); }
  std::string display(const std::string& path) const override { return store_.display(path); }

 private:
  class MortalFile final : public WriteFile {
   public:
    MortalFile(MortalStore& store, std::unique_ptr<WriteFile> file)
        : store_(store), file_(std::move(file)) {}
    void write_at(std::uint64_t offset, ByteSpan bytes) override {
      store_.live();
      file_->write_at(offset, bytes);
    }
    void sync() override {
      store_.live();
      file_->sync();
    }
    void close() override { file_->close(); }

   private:
    MortalStore& store_;
    std::unique_ptr<WriteFile> file_;
  };

  void live() {
    if (calls_left_-- <= 0) throw Killed();
  }

  SimStore& store_;
  int calls_left_;
};

constexpr int kForEver = 1 << 20;
constexpr std::int64_t kElements = 3;

using Commit = decltype(SaveSeams::commit);

/// Saves generation `n`. Each file contains the number of its generation.
void save(Store& store, CommitTarget target, std::int64_t n, const Commit& protocol) {
  prepare(store, target);
  const TensorItemLayout layout(DType::kInt64, {kElements});
  Bytes elements;
  for (std::int64_t i = 0; i < kElements; ++i) append_le(elements, n);
  Crc32 crc;
  crc.update(elements);
  Bytes item = layout.head();
  append(item, elements);
  append(item, layout.tail(crc.value()));
  const auto file = store.create(join_path(target.saving(), "__0_0.distcp"));
  file->write_at(0, item);
  file->sync();
  file->close();

  CommitContent content;
  content.metadata.catalog.files = {"__0_0.distcp"};
  content.metadata.catalog.tensors = {
      {.key = "w" + std::to_string(n),
       .dtype = DType::kInt64,
       .shape = {kElements},
       .chunks = {{.box = Box::whole({kElements}), .file = 0, .range = {0, item.size()}}},
       .original_shape = {}}};
  content.common = Dict{{"generation", n}};
  NoTrace trace;
  run_protocol(protocol(store, target, content, Role::kLeader), phase::kCommit, trace);
}

/// Returns the generation that a reader finds. Throws or fails the test if that checkpoint is not
/// complete.
std::int64_t found(Store& store, const std::string& path) {
  Checkpoint checkpoint = Checkpoint::open(store, path);
  const auto common = checkpoint.common();
  EXPECT_TRUE(common && common->item.value);
  const auto n = *common->item.value->find("generation")->as<std::int64_t>();
  const StoredTensor* tensor = checkpoint.catalog().tensor("w" + std::to_string(n));
  EXPECT_NE(tensor, nullptr) << "metadata of another save";
  if (tensor == nullptr) return -1;
  const StoredChunk& chunk = tensor->chunks.at(0);
  const TensorItem item = checkpoint.tensor_item(*tensor, chunk);
  const Bytes data = read_range(*checkpoint.slice("w", chunk.file, chunk.range),
                                {item.data_offset, item.data_bytes});
  for (std::int64_t i = 0; i < kElements; ++i) {
    EXPECT_EQ(load_le<std::int64_t>(ByteSpan(data).subspan(static_cast<std::size_t>(8 * i))), n)
        << "payload of another save";
  }
  EXPECT_TRUE(store.stat(checkpoint.location().directory + "/metadata.json"));
  return n;
}

enum class End { kKill, kPowerCut };

/// Saves through a store that throws Killed after `calls` calls. Returns true if the save ended
/// before that.
bool save_until(SimStore& store, const CommitTarget& target, std::int64_t n, int calls, End end,
                const Commit& protocol = commit_part) {
  bool finished = false;
  try {
    MortalStore mortal(store, calls);
    save(mortal, target, n, protocol);
    finished = true;
  } catch (const Killed&) {  // expected; found() checks what the killed save left in the store
  }
  if (end == End::kPowerCut) store.crash();
  store.pass_term();  // the lease expires before the next writer starts
  return finished;
}

struct Case {
  const char* name;
  std::string path;     ///< path from which a reader loads
  CommitTarget first;   ///< target of generation 1
  CommitTarget second;  ///< target of generations 2 and 3
};

const Case kCases[] = {
    {"a new directory", "run", CommitTarget::iteration("run", Step{1}),
     CommitTarget::iteration("run", Step{2})},
    {"the directory that the tracker names", "run", CommitTarget::iteration("run", Step{1}),
     CommitTarget::iteration("run", Step{1})},
    {"the same directory, given by its own name", "run/iter_0000001",
     CommitTarget::iteration("run", Step{1}), CommitTarget::iteration("run", Step{1})},
    {"the same directory without a tracker", "out", {"out", std::nullopt}, {"out", std::nullopt}},
};

class CommitCrash : public testing::TestWithParam<StoreCapabilities> {
 protected:
  SimStore with_generation_one(const Case& row) {
    SimStore store("sim:", GetParam());
    save_until(store, row.first, 1, kForEver, End::kPowerCut);
    return store;
  }
};

TEST_P(CommitCrash, leaves_the_old_checkpoint_or_the_new_one_whole) {
  for (const Case& row : kCases) {
    for (const End end : {End::kKill, End::kPowerCut}) {
      std::int64_t last = 1;
      bool finished = false;
      for (int calls = 0; !finished; ++calls) {
        SCOPED_TRACE(std::string(row.name) + (end == End::kKill ? ", killed" : ", power cut") +
                     " after " + std::to_string(calls) + " calls");
        SimStore store = with_generation_one(row);
        ASSERT_EQ(found(store, row.path), 1);
        finished = save_until(store, row.second, 2, calls, end);
        std::int64_t now = 0;
        ASSERT_NO_THROW(now = found(store, row.path));
        EXPECT_TRUE(now == 1 || now == 2) << now;
        EXPECT_GE(now, last) << "it was committed before and is not any more";
        last = now;
        if (HasFailure()) return;
      }
      EXPECT_EQ(last, 2);
    }
  }
}

TEST_P(CommitCrash, and_a_power_cut_in_the_next_save_leaves_one_whole) {
  int runs = 0;
  for (const Case& row : kCases) {
    for (const End end : {End::kKill, End::kPowerCut}) {
      bool first_finished = false;
      for (int calls = 0; !first_finished; ++calls) {
        bool second_finished = false;
        for (int again = 0; !second_finished; ++again) {
          SCOPED_TRACE(std::string(row.name) + (end == End::kKill ? ", killed" : ", power cut") +
                       " after " + std::to_string(calls) + " calls, power cut after " +
                       std::to_string(again) + " of the next");
          SimStore store = with_generation_one(row);
          first_finished = save_until(store, row.second, 2, calls, end);
          second_finished = save_until(store, row.second, 3, again, End::kPowerCut);
          std::int64_t now = 0;
          ASSERT_NO_THROW(now = found(store, row.path));
          EXPECT_TRUE(now >= 1 && now <= 3) << now;
          EXPECT_TRUE(now == 3 || !second_finished) << now;
          if (HasFailure()) return;
          ++runs;
        }
      }
    }
  }
  EXPECT_GT(runs, 1000);
}

TEST_P(CommitCrash, needs_no_root_whose_name_was_durable_before) {
  for (const std::string root : {"run", "jobs/llm/run"}) {
    SimStore store("sim:", GetParam());
    std::string made;
    for (const std::string part : {"jobs", "llm", "run"}) {
      if (root == "run" && part != "run") continue;
      made = join_path(made, part);
      store.make_directory(made);  // not synced, as if its creator had died
    }
    save_until(store, CommitTarget::iteration(root, Step{1}), 1, kForEver, End::kPowerCut);
    ASSERT_NO_THROW(EXPECT_EQ(found(store, root), 1)) << root;
  }
}

// Some of these saves write no tracker. They have no later step that makes the checkpoint's name
// durable.
TEST_P(CommitCrash, what_a_save_said_is_saved_survives_a_power_cut_right_after) {
  for (const Case& row : kCases) {
    for (const std::int64_t saves : {1, 2, 3}) {
      SCOPED_TRACE(std::string(row.name) + ", saves: " + std::to_string(saves));
      SimStore store("sim:", GetParam());
      for (std::int64_t n = 1; n <= saves; ++n) {
        save(store, n == 1 ? row.first : row.second, n, commit_part);
      }
      store.crash();
      ASSERT_NO_THROW(EXPECT_EQ(found(store, row.path), saves));
    }
  }
}

// This is a defect of Megatron. It updates the tracker before the payload is in place, so a crash
// in between leaves a tracker without a checkpoint.
TEST_P(CommitCrash, a_tracker_that_moves_first_is_left_dangling) {
  Policies historical;
  mutant_named("tracker-before-payload").apply(historical);
  const Case& row = kCases[0];
  int dangling = 0;
  bool finished = false;
  for (int calls = 0; !finished; ++calls) {
    SimStore store = with_generation_one(row);
    finished = save_until(store, row.second, 2, calls, End::kPowerCut, historical.save.commit);
    try {
      found(store, row.path);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kTrackerDangling) << error.what();
      ++dangling;
    }
  }
  EXPECT_GT(dangling, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Store, CommitCrash,
    testing::Values(StoreCapabilities{.exchange = true}, StoreCapabilities{.exchange = false},
                    StoreCapabilities{.exchange = true, .renames = false, .lists_lag = true}),
    [](const auto& kind) {
      if (!kind.param.renames) return "without_rename";
      return kind.param.exchange ? "that_exchanges" : "that_only_renames";
    });

}  // namespace
}  // namespace reprise::sim::commit_crash_test
