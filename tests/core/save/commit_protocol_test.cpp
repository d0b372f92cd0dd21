// Tests single steps of a commit and of retention on files that no save wrote.
#include "core/save/commit_protocol.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/adapters/posix/posix_store.hpp"
#include "core/ports/passing_store.hpp"
#include "core/ports/store_path.hpp"
#include "core/ports/whole_file.hpp"
#include "core/save/retention.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/contracts/temporary_directory.hpp"

namespace reprise {
namespace {

using ::testing::ElementsAre;

class CommitProtocol : public ::testing::Test {
 protected:
  std::vector<std::string> names(const std::string& directory) {
    std::vector<std::string> found;
    for (const Entry& entry : store_.list(directory)) found.push_back(entry.name);
    return found;
  }

  contracts::TemporaryDirectory directory_;
  PosixStore store_{directory_.path()};
};

TEST_F(CommitProtocol, describes_no_payload_that_is_not_as_long_as_it_was_written) {
  for (const std::uint64_t written : {3U, 5U}) {
    CommitTarget target = CommitTarget::iteration("run", Step{1});
    prepare(store_, target);
    write_durably(store_, join_path(target.saving(), "__0_0.distcp"), as_bytes("four"));
    CommitContent content;
    content.payload = {{"__0_0.distcp", written}};
    const auto before = names(target.saving());
    const auto code = contracts::code_of([&] {
      for (const auto& step : commit_protocol(store_, target, content)) step.run();
    });
    EXPECT_NE(code, std::nullopt);
    EXPECT_EQ(names(target.saving()), before) << "no metadata was written";
    abandon(store_, target);
  }
}

TEST_F(CommitProtocol, removes_dead_writers_locks_of_other_iterations_and_says_so) {
  store_.make_directory("run");
  const auto alive = store_.lock("run/iter_0000003");
  for (const char* name : {".iter_0000001.lock", ".iter_0000002.lock"}) {
    write_durably(store_, join_path("run", name),
                  as_bytes("held by reprise: process 1 on host h\n"));
  }
  CommitTarget target = CommitTarget::iteration("run", Step{4});
  prepare(store_, target);
  EXPECT_THAT(target.claim.notes, ElementsAre("lock files of writers that have ended were removed: "
                                              ".iter_0000001.lock, .iter_0000002.lock"));
  EXPECT_TRUE(store_.stat("run/.iter_0000003.lock"));
  EXPECT_FALSE(store_.stat("run/.iter_0000001.lock"));
  abandon(store_, target);
}

/// A store whose listings do not show the newest iteration yet.
class LaggingStore final : public PassingStore {
 public:
  using PassingStore::PassingStore;
  std::vector<Entry> list(const std::string& directory) override {
    auto entries = PassingStore::list(directory);
    std::erase_if(entries, [](const Entry& entry) { return entry.name == "iter_0000003"; });
    return entries;
  }
};

TEST_F(CommitProtocol, retention_counts_the_new_checkpoint_before_listings_show_it) {
  for (std::int64_t step = 1; step <= 3; ++step) {
    const auto directory = CommitTarget::iteration("run", Step{step}).directory;
    store_.make_directory(directory);
    write_durably(store_, join_path(directory, ".metadata"), as_bytes("x"));
  }
  CommitTarget target = CommitTarget::iteration("run", Step{3});
  target.claim.token = "0123456789abcdef";
  target.keep = 2;
  move_tracker(store_, target);
  LaggingStore lagging(store_);
  for (const auto& step : retention_protocol(lagging, target)) step.run();
  EXPECT_THAT(names("run"),
              ElementsAre("iter_0000002", "iter_0000003", "latest_checkpointed_iteration.txt"));
}

/// The way of a store that has no call for it.
class PlainStore final : public PassingStore {
 public:
  using PassingStore::PassingStore;
  bool remove_empty(const std::string& directory) override {
    return Store::remove_empty(directory);  // NOLINT(bugprone-parent-virtual-call): on purpose
  }
};

TEST_F(CommitProtocol, a_store_removes_a_directory_only_if_it_is_empty) {
  PlainStore plain(store_);
  store_.make_directory("empty");
  store_.make_directory("full");
  write_durably(store_, "full/file", as_bytes("x"));
  EXPECT_TRUE(plain.remove_empty("empty"));
  EXPECT_FALSE(store_.stat("empty"));
  EXPECT_TRUE(plain.remove_empty("empty")) << "it is gone already";
  EXPECT_FALSE(plain.remove_empty("full"));
  EXPECT_TRUE(store_.stat("full/file"));
}

}  // namespace
}  // namespace reprise
