// Tests that `reshard` destroys no existing files, and that it leaves no new ones behind when a
// signal ends it.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "tests/contracts/temporary_directory.hpp"
#include "tests/program/damage.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test::reshard_place_test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

constexpr const char* kSource = "torch_2.15.0/same_content_a";
const std::string kIn = std::string(REPRISE_TEST_DATA) + "/" + kSource;
const std::string kOther = std::string(REPRISE_TEST_DATA) + "/torch_2.15.0/different_content";
const std::string kToken = "-0123456789abcdef";

void write(const std::string& path, const std::string& text) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

void copy(const std::string& from, const std::string& to) {
  fs::copy(from, to, fs::copy_options::recursive);
}

class ReshardPlace : public testing::Test {
 protected:
  ProgramResult run(const std::string& in, const Words& options = {},
                    const RunLimits& limits = {}) const {
    Words words = {"reshard", "--ranks", "2", in, out_};
    words.insert(words.end(), options.begin(), options.end());
    return run_program(words, limits);
  }

  enum class Out : std::uint8_t { kToo, kLeftOut };
  /// Lists everything in the directory that contains OUT, optionally without OUT itself.
  std::map<std::string, std::string> all(Out out = Out::kToo) const {
    std::map<std::string, std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(directory_.path())) {
      const std::string path = entry.path().string();
      if (out == Out::kLeftOut && (path == out_ || path.starts_with(out_ + "/"))) continue;
      std::string& what = found[path];
      if (entry.is_symlink()) {
        what = "link to " + fs::read_symlink(entry.path()).string();
      } else if (entry.is_regular_file()) {
        std::ifstream in(path, std::ios::binary);
        const std::string content{std::istreambuf_iterator<char>(in), {}};
        what = std::to_string(content.size()) + " bytes, hash " +
               std::to_string(std::hash<std::string>()(content));
      }
    }
    return found;
  }

  void expect_same(const std::string& a, const std::string& b) const {
    const auto same = run_program({"diff", a, b});
    EXPECT_EQ(same.exit_code, 0) << same.all();
    EXPECT_EQ(run_program({"verify", b}).exit_code, 0);
  }

  /// Requires that the program refuses with the reason `says` and changes nothing.
  void expect_refused(const std::string& in, const Words& options, const std::string& says) const {
    const auto before = all();
    const auto result = run(in, options);
    EXPECT_EQ(result.exit_code, 2) << says << result.all();
    EXPECT_THAT(result.err, HasSubstr(says));
    EXPECT_EQ(all(), before) << says;
  }

  contracts::TemporaryDirectory directory_;
  std::string out_ = directory_.path() + "/out";
};

TEST_F(ReshardPlace, what_a_user_named_like_a_leftover_survives_whatever_it_is) {
  write(out_ + ".saving", "mine");
  write(out_ + ".replaced/thesis.txt", "mine");
  write(out_ + ".removing/a/b.txt", "mine");
  write(out_ + ".saving" + kToken + "/thesis.txt", "mine");
  write(out_ + ".saving.txt", "mine");
  const auto before = all();
  for (const Words& options : {Words{}, Words{"--force"}, Words{"--force"}}) {
    const auto result = run(kIn, options);
    EXPECT_EQ(result.exit_code, 0) << result.all();
    EXPECT_EQ(all(Out::kLeftOut), before);
    expect_same(kIn, out_);
  }
  fs::remove(out_ + ".saving");
  copy(kOther, out_ + ".saving");
  const auto result = run(kIn, {"--force"});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  expect_same(kOther, out_ + ".saving");
}

TEST_F(ReshardPlace, an_only_copy_stays_until_another_checkpoint_stands) {
  const Victim damaged(kSource);
  const auto elements = damaged.elements_of("layers.1.weight");
  damaged.flip(elements.file, elements.offset);
  const std::string own = out_ + ".replaced" + kToken;
  for (const std::string& aside : {out_ + ".replaced", own}) {
    copy(kOther, aside);
    expect_refused(kIn, {}, aside);
    EXPECT_EQ(run(damaged.path(), {"--force"}).exit_code, 2);
    EXPECT_FALSE(fs::exists(out_)) << "without the mark it would be a user's own directory";
    EXPECT_EQ(run(kIn, {"--force"}).exit_code, 0);
    expect_same(kIn, out_);
    expect_same(kOther, aside);
    fs::remove_all(out_);
    fs::remove_all(aside);
  }
  const auto mark = [&] { write(own + "/.reprise" + kToken + "-old", ""); };
  copy(kOther, own);
  mark();
  expect_refused(kIn, {}, own);
  const auto failed = run(damaged.path(), {"--force"});
  EXPECT_EQ(failed.exit_code, 2) << failed.all();
  expect_same(kOther, out_);
  fs::rename(out_, own);
  mark();
  const auto result = run(kIn, {"--force"});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  expect_same(kIn, out_);
  EXPECT_EQ(all(Out::kLeftOut).size(), 0U);
}

TEST_F(ReshardPlace, force_keeps_a_directory_with_more_than_a_checkpoint) {
  copy(kOther, out_);
  write(out_ + "/thesis.txt", "mine");
  write(out_ + "/notes/a.txt", "mine");
  write(out_ + "/metadata.json", R"({"mine": true})");
  write(out_ + "/integrity.json", R"({"mine": true})");
  write(out_ + "/common.pt", "mine");
  expect_refused(
      kIn, {"--force"},
      "notes, thesis.txt, metadata.json, integrity.json, common.pt; move or remove them");
  for (const char* name : {"thesis.txt", "notes", "metadata.json", "integrity.json", "common.pt"}) {
    fs::remove_all(out_ + "/" + name);
  }
  const auto result = run(kIn, {"--force"});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  expect_same(kIn, out_);
  fs::rename(out_, out_ + ".replaced");
  write(out_ + ".replaced/thesis.txt", "mine");
  expect_refused(kIn, {"--force"}, "thesis.txt");
}

TEST_F(ReshardPlace, what_was_carried_along_may_be_removed_and_comes_again) {
  const Victim in(kSource);
  in.write("meta.pt", "Lightning's");
  ASSERT_EQ(run(in.path()).exit_code, 0);
  expect_refused(in.path(), {"--force"},
                 "meta.pt; move or remove them yourself (reshard copies such");
  fs::remove(out_ + "/meta.pt");
  ASSERT_EQ(run(in.path(), {"--force"}).exit_code, 0);
  EXPECT_TRUE(fs::exists(out_ + "/meta.pt"));
}

TEST_F(ReshardPlace, a_checkpoint_that_is_damaged_may_be_replaced) {
  copy(kOther, out_);
  write(out_ + "/.metadata", "no pickle");
  const auto result = run(kIn, {"--force"});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  expect_same(kIn, out_);
}

TEST_F(ReshardPlace, a_link_at_OUT_is_neither_followed_nor_replaced) {
  copy(kOther, directory_.path() + "/elsewhere");
  for (const char* target : {"elsewhere", "nowhere"}) {
    fs::create_directory_symlink(directory_.path() + "/" + target, out_);
    for (const Words& options : {Words{}, Words{"--force"}}) {
      expect_refused(kIn, options, "OUT is a link");
    }
    fs::remove(out_);
  }
}

TEST_F(ReshardPlace, IN_is_nothing_that_writing_OUT_would_move_or_remove) {
  const std::string link = directory_.path() + "/link";
  for (const std::string& aside : {out_ + ".saving" + kToken, out_ + ".replaced" + kToken,
                                   out_ + ".removing" + kToken, out_ + ".replaced"}) {
    copy(kIn, aside);
    fs::create_directory_symlink(aside, link);
    for (const std::string& in : {aside, link}) {
      expect_refused(in, {"--force"}, "would move or remove it");
    }
    fs::remove(link);
    fs::remove_all(aside);
  }
  copy(kIn, out_ + ".replaced" + kToken);
  expect_refused(out_, {"--force"}, "remove IN");  // OUT is missing, so reshard finds the copy
  fs::remove_all(out_ + ".replaced" + kToken);
  copy(kOther, out_);
  for (const std::string& kept : {out_ + ".saving", out_ + ".replaced"}) {
    copy(kIn, kept);
    const auto result = run(kept, {"--force"});
    EXPECT_EQ(result.exit_code, 0) << result.all();
    expect_same(kept, out_);
    expect_same(kIn, kept);
  }
}

TEST_F(ReshardPlace, what_a_killed_one_left_goes_with_the_next_one) {
  if (!has_tripwires()) GTEST_SKIP() << "needs dnotify";
  for (const int event : {DN_CREATE, DN_RENAME}) {
    copy(kOther, out_);
    write(directory_.path() + "/.out.lock", "");
    const RunLimits killed{.tripwire = Tripwire{directory_.path(), event, SIGKILL}};
    EXPECT_EQ(run(kIn, {"--force"}, killed).exit_code, 128 + SIGKILL);
    EXPECT_GT(all(Out::kLeftOut).size(), 1U) << "in addition to the lock file";
    expect_same(event == DN_CREATE ? kOther : kIn, out_);
    const auto result = run(kIn, {"--force"});
    EXPECT_EQ(result.exit_code, 0) << result.all();
    expect_same(kIn, out_);
    EXPECT_EQ(all(Out::kLeftOut).size(), 0U);
    fs::remove_all(out_);
  }
}

TEST_F(ReshardPlace, a_way_to_OUT_through_what_is_not_there_makes_no_directory) {
  copy(kOther, out_);
  for (const char* way : {"/x/../out", "/x/y/../../out", "/./x/../x/../out/"}) {
    out_ = directory_.path() + way;
    expect_refused(kIn, {}, "OUT already exists");
  }
  out_ = directory_.path() + "/x/../new";
  EXPECT_EQ(run(kIn).exit_code, 0);
  EXPECT_FALSE(fs::exists(directory_.path() + "/x"));
  expect_same(kIn, directory_.path() + "/new");
}

TEST_F(ReshardPlace, a_limit_on_the_size_of_files_is_told_and_leaves_nothing) {
  for (const char* place : {"/out", "/new/deep/out"}) {
    out_ = directory_.path() + place;
    const auto before = all();
    const auto result = run(kIn, {}, {.file_bytes = 3000});
    EXPECT_EQ(result.exit_code, 2) << result.all();
    EXPECT_THAT(result.err, AllOf(HasSubstr("NO_SPACE"), HasSubstr("ulimit -f")));
    EXPECT_EQ(all(), before);
  }
}

class ReshardSignals : public ReshardPlace, public testing::WithParamInterface<int> {
 protected:
  /// Sends the program a signal when `event` happens in the directory that contains OUT. The lock
  /// file is created beforehand, so the first entry that the program creates in this directory is
  /// its output directory.
  ProgramResult run_until(int event, const Words& options) const {
    write(directory_.path() + "/.out.lock", "");
    return run(kIn, options, {.tripwire = Tripwire{directory_.path(), event, GetParam()}});
  }
};

TEST_P(ReshardSignals, leave_nothing_of_what_was_written_and_all_that_was_there) {
  if (!has_tripwires()) GTEST_SKIP() << "needs dnotify";
  for (const Words& options : {Words{}, Words{"--force", "--json"}}) {
    if (!options.empty()) copy(kOther, out_);
    const auto before = all();
    const auto result = run_until(DN_CREATE, options);
    EXPECT_EQ(result.exit_code, 2) << result.all();
    EXPECT_THAT(result.err, AllOf(HasSubstr("interrupted by a signal: nothing of it is left"),
                                  HasSubstr(out_)));
    EXPECT_EQ(result.out.find("interrupted") != std::string::npos, !options.empty());
    EXPECT_EQ(all(), before);
  }
}

TEST_P(ReshardSignals, leave_no_parent_of_OUT_that_was_made_for_it) {
  if (!has_tripwires()) GTEST_SKIP() << "needs dnotify";
  out_ = directory_.path() + "/new/deep/out";
  const auto before = all();
  const auto result =
      run(kIn, {}, {.tripwire = Tripwire{directory_.path(), DN_CREATE, GetParam()}});
  EXPECT_EQ(result.exit_code, 2) << result.all();
  EXPECT_EQ(all(), before);
}

TEST_P(ReshardSignals, that_come_when_the_new_one_takes_its_place_come_too_late) {
  if (!has_tripwires()) GTEST_SKIP() << "needs dnotify";
  copy(kOther, out_);
  const auto result = run_until(DN_RENAME, {"--force"});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  expect_same(kIn, out_);
  EXPECT_EQ(all(Out::kLeftOut).size(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Each, ReshardSignals, testing::Values(SIGINT, SIGTERM, SIGHUP));

TEST_F(ReshardPlace, a_source_without_a_whole_copy_is_refused_before_writing) {
  const std::string real = std::string(REPRISE_TEST_DATA) + "/mcore_0.16.1_gpt_dp2";
  const std::pair<const char*, const char*> rows[] = {
      {"{", "TORN_FILE"},
      {"{\"sharded_backend\": \"zarr\"}", "zarr"},
      {"{\"sharded_backend\": 3}", "TORN_FILE"},
      {"{\"sharded_backend\": \"torch_dist\", \"sharded_backend_version\": 2}", "version 2"},
  };
  int number = 0;
  for (const auto& [text, says] : rows) {
    const std::string in = directory_.path() + "/in" + std::to_string(number++);
    copy(real, in);
    write(in + "/iter_0000010/metadata.json", text);
    const auto result = run(in);
    EXPECT_EQ(result.exit_code, 2) << text << result.all();
    EXPECT_THAT(result.err, HasSubstr(says));
    EXPECT_FALSE(fs::exists(out_)) << text;
  }
}

}  // namespace
}  // namespace reprise::test::reshard_place_test
