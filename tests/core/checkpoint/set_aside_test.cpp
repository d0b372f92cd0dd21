// Tests which set-aside directories a save removes, in which order, and which of them it keeps.

#include "core/checkpoint/set_aside.hpp"
#include "core/ports/whole_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "core/checkpoint/generations.hpp"
#include "tests/fixtures/one_writer.hpp"

namespace reprise::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kA = "0123456789abcdef";
const std::string kB = "8888888888888888";
const std::string kC = "fedcba9876543210";

class SetAside : public OneWriter {
 protected:
  /// Copies the first iteration to a set-aside directory. If `marked`, adds the file that marks a
  /// replaced checkpoint.
  std::string copy(const std::string& suffix, const std::string& token, bool marked) {
    std::string path = aside_path(kFirst, suffix, token);
    fs::copy(store_.display(kFirst), store_.display(path), fs::copy_options::recursive);
    if (marked) put(path + "/" + old_mark_of(token), "");
    return path;
  }
  /// Sets the times of a directory's files, in hours from now.
  void age(const std::string& directory, int hours) {
    for (const auto& file : fs::directory_iterator(store_.display(directory))) {
      fs::last_write_time(file, fs::file_time_type::clock::now() + std::chrono::hours(hours));
    }
  }
  void remove_first() { fs::remove_all(store_.display(kFirst)); }
};

TEST_F(SetAside, what_carries_no_mark_is_read_and_neither_moved_nor_removed) {
  save(7, options_of(1));
  const std::vector<std::string> own = {copy(".replaced", "", false), copy(".replaced", kA, false),
                                        copy(".saving", kA, false), copy(".removing", kA, false)};
  remove_first();
  EXPECT_EQ(loaded("run"), 7);
  for (const std::int64_t content : {8, 9}) {
    save(content, options_of(1));
    EXPECT_EQ(loaded("run"), content);
  }
  remove_first();
  save(2, options_of(2, 1));  // retention can remove only copies of the first iteration
  for (const auto& path : own) EXPECT_EQ(loaded(path), 7) << path;
}

TEST_F(SetAside, the_newest_copy_that_is_whole_is_read_and_put_back) {
  save(6, options_of(1));
  const std::string oldest = copy(".replaced", kA, true);
  const std::string older = copy(".replaced", kC, true);
  for (const auto& path : {oldest, older}) {
    fs::rename(store_.display(path), directory_.path() + path.substr(path.rfind('-')));
  }
  save(7, options_of(1));
  const std::string newer = copy(".replaced", kB, true);
  for (const auto& path : {oldest, older}) {
    fs::rename(directory_.path() + path.substr(path.rfind('-')), store_.display(path));
  }
  age(newer, -1);
  age(older, -2);
  age(oldest, -3);
  remove_first();
  EXPECT_EQ(replaced_copy(store_, kFirst), newer);
  const auto present = generations(store_, "run");
  ASSERT_EQ(present.size(), 3U);
  EXPECT_EQ(present.back().directory, newer);
  EXPECT_EQ(loaded("run"), 7);
  store_.remove(newer + "/.metadata");  // only half of it was removed
  EXPECT_EQ(loaded("run"), 6);
  const auto full = [](Store&, const std::string& call, const std::string& path) {
    if (call == "create" && path.ends_with(".distcp")) throw Error(Code::kNoSpace, "full");
  };
  EXPECT_EQ(code_of([&] { save(8, options_of(1), full); }), Code::kNoSpace);
  EXPECT_EQ(loaded(kFirst), 6);
  EXPECT_TRUE(asides_of(store_, kFirst).empty());
}

TEST_F(SetAside, old_copies_are_removed_only_beside_a_confirmed_checkpoint) {
  const auto full = [](Store&, const std::string& call, const std::string& path) {
    if (call == "create" && path.ends_with(".distcp")) throw Error(Code::kNoSpace, "full");
  };
  save(7, options_of(1));
  copy(".replaced", kA, true);
  put(kFirst + "/" + mark_of(kA), "");
  EXPECT_EQ(code_of([&] { save(8, options_of(1), full); }), Code::kNoSpace);
  EXPECT_EQ(asides_of(store_, kFirst).size(), 1U) << "the checkpoint in place is not confirmed";
  store_.remove(kFirst + "/" + mark_of(kA));
  EXPECT_EQ(code_of([&] { save(8, options_of(1), full); }), Code::kNoSpace);
  EXPECT_TRUE(asides_of(store_, kFirst).empty());
  EXPECT_EQ(loaded("run"), 7);
}

TEST_F(SetAside, removal_takes_metadata_first_durably_and_the_mark_last) {
  save(7, options_of(1));
  const std::string path = copy(".removing", kA, true);
  std::vector<std::string> calls;
  WatchedStore watched(store_,
                       [&](Store& inner, const std::string& call, const std::string& at) {
                         calls.push_back(call == "remove" ? at.substr(at.rfind('/') + 1) : call);
                         if (call == "remove_empty")
                           write_durably(inner, path + "/thesis.txt", as_bytes("mine"));
                       },
                       {});
  EXPECT_THAT(discard(watched, path), Not(IsEmpty()));
  EXPECT_THAT(calls, ElementsAre(".metadata", "sync_directory", "__0_0.distcp", "common.pt",
                                 "metadata.json", old_mark_of(kA), "remove_empty"));
  EXPECT_THAT(names(path), ElementsAre("thesis.txt")) << "created meanwhile";
}

TEST_F(SetAside, what_a_user_put_into_an_unfinished_save_stays_and_is_named) {
  const std::string path = aside_path(kFirst, kSavingSuffix, kA);
  store_.make_directory(path + "/mine");
  store_.make_directory(path + "/modelopt_state");
  const std::vector<std::string> files = {
      mark_of(kA),          "__0_0.distcp", "common.pt",        "meta.pt", "modelopt_state/written",
      "modelopt_state/own", "notes.txt",    "mine/precious.txt"};
  for (const auto& name : files) put(path + "/" + name, name == files[0] ? "" : "x");
  note_beside(
      store_, path, kA,
      {"modelopt_state", "link", "meta.pt", "modelopt_state/written", "link/precious.txt", "gone"});
  fs::create_directory_symlink("mine", store_.display(path + "/link"));
  const std::vector<std::string> log = save(7, options_of(1));
  EXPECT_EQ(loaded("run"), 7);
  EXPECT_THAT(names(path), ElementsAre("mine", "modelopt_state", "notes.txt"));
  EXPECT_THAT(names(path + "/mine"), ElementsAre("precious.txt"));
  EXPECT_THAT(names(path + "/modelopt_state"), ElementsAre("own"));
  ASSERT_FALSE(log.empty());
  EXPECT_THAT(log[0], HasSubstr("were kept: mine, modelopt_state, notes.txt in"));
}

TEST_F(SetAside, leftovers_of_a_dropped_save_go_with_the_next_that_keeps_few) {
  save(7, options_of(1));
  run_ranks(1, directory_.path(), [](const Ports& ports) {
    TinyState tiny(8);
    Save::begin(ports, ports.fabric.communicator(Group::world(1)), tiny.state, options_of(2));
  });
  const std::string replaced = copy(".replaced", kA, true);
  put("run/iter_0000003.saving-" + kB + "/__0_0.distcp", "mine: it has no mark");
  const auto before = names("run");
  ASSERT_EQ(before.size(), 5U);
  {
    const auto in_flight = store_.lock("run/iter_0000002");
    const auto its_own = store_.lock(kFirst);
    save(9, options_of(4, 2));
    EXPECT_THAT(names("run"), testing::IsSupersetOf(before)) << "its writer is alive";
  }
  EXPECT_THAT(save(9, options_of(4, 2)), IsEmpty());
  EXPECT_THAT(names("run"), ElementsAre("iter_0000001", "iter_0000003.saving-" + kB, "iter_0000004",
                                        "latest_checkpointed_iteration.txt"));
}

/// Otherwise a power cut could bring back an old name, and what it names would be half removed.
TEST_F(SetAside, names_are_durable_before_leftovers_are_cleared) {
  save(7, options_of(1));
  copy(".replaced", kA, true);
  std::vector<std::string> calls;
  save(9, options_of(4, 2), [&](Store&, const std::string& call, const std::string& path) {
    if (call == "publish" && path.ends_with("iteration.txt")) calls = {"tracker"};
    if (call == "sync_directory" && path == "run") calls.emplace_back("sync");
    if (call == "remove" && path.find(kReplacedSuffix) != std::string::npos &&
        calls.back() != "remove") {
      calls.emplace_back("remove");
    }
  });
  EXPECT_THAT(calls, ElementsAre("tracker", "sync", "sync", "remove"));
}

TEST_F(SetAside, what_was_exchanged_goes_with_its_iteration) {
  save(7, options_of(1));
  copy(".saving", kA, true);
  const auto killed = [](Store&, const std::string& call, const std::string& path) {
    if (call == "remove" && path.find(".saving-" + kA) != std::string::npos) {
      throw Error(Code::kIo, "killed");
    }
  };
  EXPECT_THAT(save(9, options_of(4, 1), killed), Not(IsEmpty()));
  EXPECT_EQ(loaded("run"), 9);
  EXPECT_THAT(save(9, options_of(4, 1)), IsEmpty());
  EXPECT_THAT(names("run"), ElementsAre("iter_0000004", "latest_checkpointed_iteration.txt"));
}

TEST_F(SetAside, what_a_dropped_save_wrote_stays_beside_the_only_copy) {
  save(7, options_of(1));
  const std::string replaced = copy(".replaced", kA, true);
  remove_first();
  save(9, options_of(4, 2));
  EXPECT_EQ(loaded(replaced), 7);
  save(9, options_of(4, 1));
  EXPECT_FALSE(store_.stat(replaced));
}

TEST_F(SetAside, what_is_not_known_to_be_back_for_good_keeps_both) {
  save(7, options_of(1));
  bool swapped = false;
  const auto fail = [&swapped](Store&, const std::string& call, const std::string& path) {
    swapped = swapped || call == "replace";
    if (swapped && call == "sync_directory" && path == "run") throw Error(Code::kIo, "no sync");
  };
  EXPECT_EQ(code_of([&] { save(8, options_of(1), fail); }), Code::kIo);
  EXPECT_EQ(loaded("run"), 7);
  const auto left = asides_of(store_, kFirst);
  ASSERT_EQ(left.size(), 1U);
  store_.replace({left[0].path, kFirst});  // as if a power cut restored the old names
  EXPECT_EQ(loaded("run"), 8);
  save(9, options_of(1));
  EXPECT_EQ(loaded("run"), 9);
  EXPECT_TRUE(asides_of(store_, kFirst).empty());
}

TEST_F(SetAside, the_tracker_has_its_own_temporary_name_and_dead_ones_go) {
  const std::string tracker = "run/latest_checkpointed_iteration.txt";
  put(aside_path(tracker, kNextSuffix, kA), "7");
  put(tracker + ".tmp", "mine");
  std::string written;
  save(7, options_of(1), [&](Store&, const std::string& call, const std::string& path) {
    if (call == "create" && path.starts_with(tracker)) written = path;
  });
  const auto name = aside_name(written.substr(written.rfind('/') + 1));
  ASSERT_TRUE(name) << written;
  EXPECT_EQ(name->token.size(), kA.size());
  EXPECT_THAT(names("run"), ElementsAre("iter_0000001", "latest_checkpointed_iteration.txt",
                                        "latest_checkpointed_iteration.txt.tmp"));
}

TEST_F(SetAside, a_load_beside_a_replacement_that_is_taken_back_says_so) {
  for (const std::string file : {"__0_0.distcp", "common.pt"}) {
    SCOPED_TRACE(file);
    save(8, options_of(1));
    const std::string other = "other";
    fs::rename(store_.display(kFirst), store_.display(other));
    save(7, options_of(1));
    age(other, -1);
    int swaps = 0;
    const auto swap = [&](Store& inner, const std::string& call, const std::string& path) {
      const bool is_file = path.ends_with(file);
      if (call != "open" || (swaps == 0 ? !is_file : is_file || swaps == 2)) return;
      inner.replace({other, kFirst});
      ++swaps;
    };
    EXPECT_EQ(code_of([&] { loaded("run", swap); }), Code::kStaleMetadata);
    EXPECT_EQ(swaps, 2) << "it is back in place";
    EXPECT_EQ(loaded("run"), 7);
    fs::remove_all(store_.display(other));
  }
}

/// One of two ranks fails to write while the other is still writing.
TEST_F(SetAside, a_failed_save_is_removed_only_when_no_rank_writes) {
  constexpr auto kLongEnough = std::chrono::milliseconds(300);
  std::atomic<bool> begun = false;
  std::atomic<bool> written = false;
  std::atomic<bool> too_early = false;
  std::atomic<bool> removing = false;
  const WatchedStore::See leader = [&](Store&, const std::string& call, const std::string& path) {
    if (call == "write" && path.ends_with("__0_0.distcp")) {
      while (!begun) std::this_thread::yield();
      throw Error(Code::kNoSpace, "full");
    }
    if (call != "remove" || path.find(kSavingSuffix) == std::string::npos) return;
    removing = true;
    if (!written) too_early = true;
  };
  const WatchedStore::See member = [&](Store&, const std::string& call, const std::string& path) {
    if (call != "write" || !path.ends_with("__1_0.distcp") || written) return;
    begun = true;
    const auto end = std::chrono::steady_clock::now() + kLongEnough;
    while (!removing && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    written = true;
  };
  run_ranks(
      2, directory_.path(),
      [&](const Ports& ports) {
        TinyState tiny(1);
        tiny.state.tensors[0].key += std::to_string(ports.fabric.rank().value);
        auto group = ports.fabric.communicator(Group::world(2));
        EXPECT_EQ(code_of([&] {
                    Save save = Save::begin(ports, group, tiny.state, options_of(1));
                    while (!save.poll()) std::this_thread::yield();
                  }),
                  Code::kNoSpace);
      },
      [&](Store& store, GlobalRank rank) {
        return std::make_unique<WatchedStore>(store, rank == GlobalRank{0} ? leader : member,
                                              WatchedStore::See{});
      });
  EXPECT_TRUE(removing);
  EXPECT_FALSE(too_early);
  EXPECT_THAT(names("run"), IsEmpty());
}

TEST_F(SetAside, a_save_that_fails_while_it_prepares_leaves_nothing) {
  const auto full = [](Store&, const std::string& call, const std::string& path) {
    if (call == "create" && path.find(kSavingSuffix) != std::string::npos) {
      throw Error(Code::kNoSpace, "full");
    }
  };
  EXPECT_EQ(code_of([&] { save(7, options_of(1), full); }), Code::kNoSpace);
  EXPECT_THAT(names("run"), IsEmpty());
}

}  // namespace
}  // namespace reprise::test
