// Tests saves and loads on a real file system: which files a save may remove, which files remain
// after a failed save, concurrent writers, and loads of a checkpoint that is being replaced.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/checkpoint/generations.hpp"
#include "core/ports/store_path.hpp"
#include "tests/fixtures/one_writer.hpp"

namespace reprise::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

bool is_saving(const std::string& path) { return path.find(kSavingSuffix) != std::string::npos; }

TEST_F(OneWriter, what_is_named_like_a_leftover_and_is_not_ours_stays) {
  const std::vector<std::string> own = {
      "run/iter_0000001.saving/thesis.txt", "run/iter_0000001.replaced/thesis.txt",
      "run/iter_0000001.removing/thesis.txt", "run/iter_0000001.saving-0123456789abcdef/thesis.txt",
      "run/iter_0000000.removing-0123456789abcdef/thesis.txt"};
  for (const auto& path : own) put(path, "mine");
  for (const std::int64_t step : {1, 1, 2}) save(step, options_of(step, 1));
  for (const auto& path : own) EXPECT_EQ(get(path), "mine") << path;
  EXPECT_FALSE(store_.stat(kFirst)) << "kept one";
}

TEST_F(OneWriter, a_replaced_copy_beside_a_checkpoint_that_stands_is_kept) {
  save(7, options_of(1));
  fs::copy(store_.display(kFirst), store_.display(kFirst + ".replaced"));
  save(8, options_of(1));
  EXPECT_EQ(loaded(kFirst), 8);
  EXPECT_EQ(loaded(kFirst + ".replaced"), 7);
}

TEST_F(OneWriter, who_may_not_replace_refuses_what_is_there_or_its_only_copy) {
  save(7, options_of(1));
  SaveOptions options = options_of(1);
  options.replace = false;
  EXPECT_EQ(code_of([&] { save(8, options); }), Code::kUsage);
  EXPECT_EQ(loaded("run"), 7);
  fs::rename(store_.display(kFirst), store_.display(kFirst + ".replaced"));
  EXPECT_THAT(error_of([&] { save(8, options); })->what(), HasSubstr("the only copy"));
  EXPECT_EQ(loaded("run"), 7);
}

TEST_F(OneWriter, foreign_files_in_a_replaced_checkpoint_are_kept_and_named) {
  save(7, options_of(1));
  put(kFirst + "/thesis.txt", "mine");
  put(kFirst + "/notes/a.txt", "mine, too");
  const auto log = save(8, options_of(1));
  EXPECT_EQ(loaded("run"), 8);
  const auto left = asides_of(store_, kFirst);
  ASSERT_EQ(left.size(), 1U);
  EXPECT_THAT(names(left[0].path), ElementsAre("notes", "thesis.txt"));
  EXPECT_EQ(get(left[0].path + "/notes/a.txt"), "mine, too");
  ASSERT_EQ(log.size(), 1U);
  EXPECT_THAT(log[0], HasSubstr("notes, thesis.txt in " + store_.display(left[0].path)));
}

TEST_F(OneWriter, files_of_others_in_an_iteration_that_goes_are_kept_and_named) {
  save(1, options_of(1));
  put(kFirst + "/thesis.txt", "mine");
  const auto log = save(2, options_of(2, 1));
  const auto left = asides_of(store_, kFirst);
  ASSERT_EQ(left.size(), 1U);
  EXPECT_THAT(names(left[0].path), ElementsAre("thesis.txt"));
  ASSERT_EQ(log.size(), 1U);
  EXPECT_THAT(log[0], HasSubstr("thesis.txt in " + store_.display(left[0].path)));
}

TEST_F(OneWriter, links_are_removed_and_what_they_lead_to_is_not) {
  const TemporaryDirectory archive;
  save(1, options_of(1));
  const std::string outside = archive.path() + "/iter_0000001";
  fs::rename(store_.display(kFirst), outside);
  const auto whole = [&] {
    PosixStore other(archive.path());
    return other.list("iter_0000001").size();
  };
  const auto files = whole();
  fs::create_directory_symlink(outside, store_.display(kFirst));
  save(3, options_of(1));  // replaces the link, not the directory that it points to
  EXPECT_EQ(loaded(kFirst), 3);
  EXPECT_EQ(whole(), files);
  fs::remove_all(store_.display(kFirst));
  fs::create_directory_symlink(outside, store_.display(kFirst));
  save(2, options_of(2, 1));  // retention removes the link
  EXPECT_FALSE(store_.stat(kFirst));
  EXPECT_EQ(whole(), files);
  EXPECT_THAT(names("run"), ElementsAre("iter_0000002", "latest_checkpointed_iteration.txt"));
}

/// A change to one byte of a small file. It happens during a save that replaces step 1, or during a
/// save of a new step.
struct Flip {
  const char* when;
  bool swapped;    ///< true if the byte changes after the new directory is in place
  bool exchanges;  ///< true if the store can exchange directories
  std::int64_t step = 1;
};

const Flip kFlips[] = {
    {"before it is swapped for the old one", false, true},
    {"after it was swapped for the old one", true, true},
    {"before the old one makes way", false, false},
    {"when it has taken the place of the old one", true, false},
    {"before it is at a new place", false, true, 2},
    {"when it is at a new place", true, true, 2},
};

/// Watches the calls to one rank's store, and flips a byte of `file` at the moment described by
/// `flip`.
class Flipper {
 public:
  Flipper(const Flip& flip, const std::string& file) : flip_(flip), file_(file) {}

  void before(const std::string& call, const std::string& path) {
    if (call == "replace" && !flip_.exchanges) throw Error(Code::kUnsupported, "can't exchange");
    swapped_ = swapped_ || (is_swap(call) && is_checkpoint(path));
  }
  void after(Store& store, const std::string& call, const std::string& path) {
    const bool now = flip_.swapped ? is_swap(call) && is_checkpoint(path)
                                   : call == "sync_directory" && is_saving(path);
    if (!now || std::exchange(flipped_, true)) return;
    const std::string written = join_path(path, file_);
    const auto bytes = store.stat(written)->size;
    spoil(store, written);
    EXPECT_EQ(store.stat(written)->size, bytes);
  }

  bool flipped() const { return flipped_; }
  bool swapped() const { return swapped_; }

 private:
  static bool is_swap(const std::string& call) {
    return call == "replace" || call == "publish" || call == "put_aside";
  }
  bool is_checkpoint(const std::string& path) const {
    return path == CommitTarget::iteration("run", Step{flip_.step}).directory;
  }

  const Flip& flip_;
  std::string file_;
  bool flipped_ = false;
  bool swapped_ = false;
};

/// Saves content 8 on two ranks; returns for each rank how its save ended.
std::vector<std::optional<Code>> save_on_two(const std::string& directory, const Flip& flip,
                                             Flipper& flipper) {
  SaveOptions options = options_of(flip.step);
  options.checksums = Checksums::kCrc32AndSha256;  // adds an integrity.json
  std::vector<std::optional<Code>> ends(2);
  run_ranks(
      2, directory,
      [&](const Ports& ports) {
        const auto rank = ports.fabric.rank().value;
        TinyState tiny(8);
        tiny.state.tensors[0].replica = rank;
        auto group = ports.fabric.communicator(Group::world(2));
        ends[static_cast<std::size_t>(rank)] =
            code_of([&] { Save::begin(ports, group, tiny.state, options).finish(); });
      },
      [&](Store& store, GlobalRank rank) -> std::unique_ptr<Store> {
        if (rank != GlobalRank{0}) return nullptr;
        return std::make_unique<WatchedStore>(
            store,
            [&](Store&, const std::string& call, const std::string& path) {
              flipper.before(call, path);
            },
            [&](Store& inner, const std::string& call, const std::string& path) {
              flipper.after(inner, call, path);
            });
      });
  return ends;
}

TEST_F(OneWriter, small_files_changed_at_equal_size_fail_the_save_on_all_ranks) {
  save(7, options_of(1));
  const auto before = names("run");
  for (const Flip& flip : kFlips) {
    for (const std::string file : {".metadata", "common.pt", "metadata.json", "integrity.json"}) {
      SCOPED_TRACE(file + ", " + flip.when);
      Flipper flipper(flip, file);
      EXPECT_THAT(save_on_two(directory_.path(), flip, flipper), ElementsAre(Code::kIo, Code::kIo));
      EXPECT_TRUE(flipper.flipped());
      EXPECT_EQ(flipper.swapped(), flip.swapped)
          << "a damaged checkpoint must not replace anything";
      EXPECT_EQ(loaded("run"), 7);
      EXPECT_EQ(names("run"), before) << "only the old checkpoint may remain";
    }
  }
}

TEST_F(OneWriter, what_made_way_stays_until_another_one_is_confirmed) {
  save(7, options_of(1));
  const auto spoil_all = [](Store& store, const std::string& call, const std::string& path) {
    if (call == "replace") spoil(store, join_path(path, ".metadata"));
  };
  int exchanges = 0;
  const auto once = [&exchanges](Store&, const std::string& call, const std::string& path) {
    if (call == "replace" && ++exchanges > 1) throw Error(Code::kIo, "no more", {.file = path});
  };
  EXPECT_EQ(code_of([&] { save(8, options_of(1), once, spoil_all); }), Code::kIo);
  const auto full = [](Store&, const std::string& call, const std::string& path) {
    if (call == "create" && path.ends_with(".metadata")) throw Error(Code::kNoSpace, "full");
  };
  EXPECT_EQ(code_of([&] { save(9, options_of(1), full); }), Code::kNoSpace);
  const auto left = asides_of(store_, kFirst);
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(loaded(left[0].path), 7) << "the undamaged checkpoint";
  save(9, options_of(1));
  EXPECT_EQ(loaded("run"), 9);
  EXPECT_TRUE(asides_of(store_, kFirst).empty());
}

TEST_F(OneWriter, a_save_that_fails_leaves_no_bytes_on_a_full_disk) {
  save(7, options_of(1));
  for (const std::string file : {".distcp", "common.pt", ".metadata", "metadata.json"}) {
    const auto full = [&](Store&, const std::string& call, const std::string& path) {
      if (call == "create" && path.ends_with(file)) throw Error(Code::kNoSpace, "the disk is full");
    };
    EXPECT_EQ(code_of([&] { save(8, options_of(2), full); }), Code::kNoSpace) << file;
    EXPECT_THAT(names("run"), ElementsAre("iter_0000001", "latest_checkpointed_iteration.txt"));
  }
}

TEST_F(OneWriter, a_second_save_at_one_place_is_refused_until_the_first_ends) {
  run_ranks(1, directory_.path(), [](const Ports& ports) {
    TinyState tiny(1);
    auto group = ports.fabric.communicator(Group::world(1));
    {
      Save first = Save::begin(ports, group, tiny.state, options_of(1));
      for (const std::int64_t step : {1, 2}) {
        EXPECT_EQ(code_of([&] { Save::begin(ports, group, tiny.state, options_of(step)); }),
                  Code::kLocked);
      }
    }  // destroying the save before its commit abandons it
    Save::begin(ports, group, tiny.state, options_of(1)).finish();
  });
  EXPECT_EQ(loaded("run"), 1);
  EXPECT_THAT(names("run"), ElementsAre("iter_0000001", "latest_checkpointed_iteration.txt"));
}

TEST_F(OneWriter, a_load_of_which_the_checkpoint_is_replaced_meanwhile_says_so) {
  for (const std::string file : {"__0_0.distcp", "common.pt"}) {
    save(7, options_of(1));
    bool replaced = false;
    const auto replace = [&](Store&, const std::string& call, const std::string& path) {
      if (call != "open" || !path.ends_with(file) || std::exchange(replaced, true)) return;
      save(8, options_of(1));
    };
    EXPECT_EQ(code_of([&] { loaded("run", replace); }), Code::kStaleMetadata) << file;
    EXPECT_TRUE(replaced);
    EXPECT_EQ(loaded("run"), 8);
  }
}

TEST_F(OneWriter, a_load_that_may_fall_back_takes_a_replaced_one_for_no_damage) {
  save(6, options_of(1));
  save(7, options_of(2));
  bool removed = false;
  const auto remove = [&](Store& store, const std::string& call, const std::string& path) {
    if (call != "open" || !path.ends_with("iter_0000002/__0_0.distcp")) return;
    if (std::exchange(removed, true)) return;
    save(8, options_of(2));
    store.remove(path);
  };
  const auto load_with_fallback = [&] {
    run_ranks(
        1, directory_.path(),
        [](const Ports& ports) {
          TinyState tiny(-2);
          auto group = ports.fabric.communicator(Group::world(1));
          LoadOptions options;
          options.directory = "run";
          options.fallback = Fallback::kNewestWhole;
          load(ports, *group, tiny.state, options);
        },
        [&](Store& store, GlobalRank) {
          return std::make_unique<WatchedStore>(store, remove, WatchedStore::See{});
        });
  };
  EXPECT_EQ(code_of(load_with_fallback), Code::kStaleMetadata);
}

}  // namespace
}  // namespace reprise::test
