// Short histories of saves whose last step shows whether a single rule holds: what retention takes,
// how a save over itself is told apart, what a failed swap leaves, which metadata goes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/adapters/posix/posix_store.hpp"
#include "core/checkpoint/checkpoint.hpp"
#include "core/checkpoint/locate_checkpoint.hpp"
#include "core/ports/passing_store.hpp"
#include "core/ports/store_path.hpp"
#include "core/ports/whole_file.hpp"
#include "core/save/commit_protocol.hpp"
#include "core/save/retention.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/contracts/temporary_directory.hpp"

namespace reprise {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

const std::string kOther = "8888888888888888";

/// A store whose locks keep nobody out.
class LocklessStore final : public PassingStore {
 public:
  using PassingStore::PassingStore;
  std::unique_ptr<StoreLock> lock(const std::string& path) override {
    const auto real = PassingStore::lock(path);
    return std::make_unique<StoreLock>(real->token(), "this store has no locks");
  }
};

/// Fails the next sync of a directory.
class FailingSync final : public PassingStore {
 public:
  FailingSync(Store& inner, std::string directory)
      : PassingStore(inner), directory_(std::move(directory)) {}
  bool fails = false;
  void sync_directory(const std::string& directory) override {
    if (fails && directory == directory_) {
      fails = false;
      throw Error(Code::kIo, "injected");
    }
    PassingStore::sync_directory(directory);
  }

 private:
  std::string directory_;
};

class Histories : public testing::Test {
 protected:
  static std::string iteration(std::int64_t step) {
    return CommitTarget::iteration("run", Step{step}).directory;
  }
  std::vector<std::string> names(const std::string& directory) {
    std::vector<std::string> found;
    for (const Entry& entry : store_.list(directory)) found.push_back(entry.name);
    return found;
  }
  /// Saves a checkpoint without tensors. Its common state has `value`.
  static void save(Store& store, std::int64_t step, std::int64_t value,
                   std::optional<std::int32_t> keep = {}) {
    CommitTarget target = CommitTarget::iteration("run", Step{step});
    target.keep = keep;
    prepare(store, target);
    CommitContent content;
    content.common = Dict{{"value", value}};
    content.metadata.save_id = "00000000-0000-4000-a000-000000000000";
    for (const auto& one : commit_protocol(store, target, content)) one.run();
    for (const auto& one : retention_protocol(store, target)) one.run();
  }
  std::string save_id(const std::string& directory) {
    return Checkpoint::open(store_, directory).metadata().save_id;
  }
  Bytes common(std::int64_t step) {
    return read_all(store_, join_path(iteration(step), "common.pt"), 1U << 20U);
  }

  contracts::TemporaryDirectory directory_;
  PosixStore store_{directory_.path()};
};

TEST_F(Histories, retention_takes_no_copy_of_a_writer_that_no_lock_keeps_out) {
  save(store_, 1, 10);
  const std::string copy = aside_path(iteration(1), kReplacedSuffix, kOther);
  store_.make_directory(copy);
  write_durably(store_, join_path(copy, ".metadata"), as_bytes("x"));
  write_durably(store_, join_path(copy, old_mark_of(kOther)), {});
  LocklessStore lockless(store_);
  save(lockless, 2, 20, 1);
  EXPECT_THAT(names(copy), ElementsAre(".metadata", old_mark_of(kOther)))
      << "the other writer may be at work";
  EXPECT_FALSE(store_.stat(iteration(1)));
  save(store_, 1, 10);
  save(store_, 2, 21, 1);
  EXPECT_FALSE(store_.stat(copy)) << "locks keep others out, so its writer is dead";
}

TEST_F(Histories, retention_takes_no_copy_without_the_mark_of_its_token) {
  save(store_, 1, 10);
  const std::string copy = aside_path(iteration(1), kReplacedSuffix, kOther);
  store_.make_directory(copy);
  write_durably(store_, join_path(copy, ".metadata"), as_bytes("x"));
  save(store_, 2, 20, 1);
  EXPECT_THAT(names(copy), ElementsAre(".metadata"));
}

TEST_F(Histories, each_save_of_one_step_has_an_id_of_its_own) {
  std::vector<std::string> ids;
  for (const std::int64_t value : {10, 11, 10}) {
    save(store_, 1, value);
    EXPECT_THAT(ids, Not(Contains(save_id(iteration(1)))));
    ids.push_back(save_id(iteration(1)));
  }
}

TEST_F(Histories, a_swap_whose_sync_fails_is_undone) {
  save(store_, 1, 10);
  const Bytes before = common(1);
  FailingSync failing(store_, "run");
  CommitTarget target = CommitTarget::iteration("run", Step{1});
  prepare(failing, target);
  CommitContent content;
  content.common = Dict{{"value", std::int64_t{11}}};
  for (const auto& one : commit_protocol(failing, target, content)) {
    failing.fails = one.name == "sync_parent";
    if (failing.fails) {
      EXPECT_EQ(contracts::code_of([&] { one.run(); }), Code::kIo);
      break;
    }
    one.run();
  }
  EXPECT_EQ(common(1), before);
  EXPECT_THAT(names(iteration(1)), Not(Contains(old_mark_of(target.claim.token))));
  EXPECT_TRUE(store_.stat(target.saving())) << "the new one, until the save gives up";
  abandon(failing, target);
  EXPECT_FALSE(store_.stat(target.saving()));
  EXPECT_EQ(common(1), before);
}

TEST_F(Histories, what_is_removed_keeps_no_metadata_of_any_rank) {
  const std::string going = aside_path(iteration(1), kRemovingSuffix, kOther);
  store_.make_directory(going);
  for (const char* name : {".metadata", "__0.metadata", "__1.metadata", "__12.metadata"}) {
    write_durably(store_, join_path(going, name), as_bytes("x"));
  }
  write_durably(store_, join_path(going, old_mark_of(kOther)), {});
  write_durably(store_, join_path(going, "__0_0.distcp"), as_bytes("x"));
  unmark(store_, going);
  EXPECT_THAT(names(going), ElementsAre(old_mark_of(kOther), "__0_0.distcp"));
  EXPECT_THAT(discard(store_, going), IsEmpty());
  EXPECT_FALSE(store_.stat(going));
}

TEST_F(Histories, retention_finishes_a_killed_removal_of_metadata_per_rank) {
  save(store_, 2, 20);
  const std::string going = aside_path(iteration(1), kRemovingSuffix, kOther);
  store_.make_directory(going);
  write_durably(store_, join_path(going, "__0.metadata"), as_bytes("x"));
  write_durably(store_, join_path(going, "__1.metadata"), as_bytes("x"));
  write_durably(store_, join_path(going, old_mark_of(kOther)), {});
  save(store_, 3, 30, 2);
  EXPECT_THAT(names("run"),
              ElementsAre("iter_0000002", "iter_0000003", "latest_checkpointed_iteration.txt"));
}

}  // namespace
}  // namespace reprise
