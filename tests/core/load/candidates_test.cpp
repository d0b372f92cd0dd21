// For all small roots, tests which checkpoints a load may choose. For all error codes, tests which
// of them mean that a checkpoint is damaged.

#include "core/load/candidates.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "core/adapters/posix/posix_store.hpp"
#include "core/format/tracker.hpp"
#include "core/seams/load_seams.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/contracts/temporary_directory.hpp"

namespace reprise {
namespace {

constexpr LoadStage kStages[] = {LoadStage::kLocate, LoadStage::kOpen, LoadStage::kKeys,
                                 LoadStage::kContent};

TEST(Candidates, what_counts_as_damage_is_this_table_and_nothing_else) {
  const std::set<Code> always = {Code::kCoverageGap, Code::kChunkOverlap, Code::kExtentMismatch,
                                 Code::kTornFile};
  const std::set<Code> but_not_of_keys = {Code::kNotFound,        Code::kIo,
                                          Code::kLimit,           Code::kRefusedName,
                                          Code::kPathEscape,      Code::kIncompleteSelected,
                                          Code::kTrackerDangling, Code::kChecksum};
  const std::set<Code> of_content = {Code::kNotStored, Code::kDtypeDrift, Code::kShapeDrift};
  for (int c = 0; c <= static_cast<int>(Code::kInternal); ++c) {
    const auto code = static_cast<Code>(c);
    for (const LoadStage stage : kStages) {
      const bool expected = always.contains(code) ||
                            (but_not_of_keys.contains(code) && stage != LoadStage::kKeys) ||
                            (of_content.contains(code) && stage == LoadStage::kContent);
      EXPECT_EQ(is_damage(code, stage), expected)
          << name_of(code) << " at stage " << static_cast<int>(stage);
    }
  }
}

/// Content of a root: the tracker, and one letter for each iteration from 1 on (nothing,
/// unfinished, committed, moved aside).
struct Root {
  std::string iterations;
  std::string tracker;  ///< "none", "garbled" or a digit

  bool committed(std::int64_t step) const {
    const char what = iterations[static_cast<std::size_t>(step) - 1];
    return what == 'c' || what == 'r';
  }
};

std::string directory_of(std::int64_t step) { return "iter_000000" + std::to_string(step); }

void write(Store& store, const std::string& path, const std::string& text) {
  const auto file = store.create(path);
  file->write_at(0, as_bytes(text));
  file->close();
}

void make(Store& store, const Root& root) {
  store.make_directory("run");
  for (std::size_t i = 0; i < root.iterations.size(); ++i) {
    const char what = root.iterations[i];
    if (what == '.') continue;
    const std::string path =
        "run/" + directory_of(static_cast<std::int64_t>(i) + 1) + (what == 'r' ? ".replaced" : "");
    store.make_directory(path);
    write(store, path + (what == 'u' ? "/__0_0.distcp" : "/.metadata"), "");
  }
  if (root.tracker == "none") return;
  const std::string text = root.tracker == "garbled" ? "\x01?" : root.tracker;
  write(store, "run/" + std::string(kTrackerFile), text);
}

/// Returns the iteration's digit in a candidate's note. A moved-aside candidate has a suffix after
/// this digit.
std::string digit_of(const std::string& note) {
  return note.substr(note.rfind("iter_000000") + 11, 1);
}

/// Returns the steps of the candidates in order, or the code of the refusal.
std::string found(Store& store, Fallback fallback) {
  try {
    std::string steps;
    const Candidates all = candidates(store, "run", fallback);
    for (const auto& location : all.locations) steps += std::to_string(location.step->value);
    for (const auto& note : all.notes) steps += " beside " + digit_of(note);
    return steps + (all.passed_over.empty() ? "" : "!");
  } catch (const Error& error) {
    return std::string(name_of(error.code()));
  }
}

/// Derives from the description of the root what found() must return. "!" means that the checkpoint
/// named by the tracker was skipped. " beside 3" means that the note mentions the newer checkpoint
/// 3.
std::string expected(const Root& root, Fallback fallback) {
  const bool reads = root.tracker != "none" && root.tracker != "garbled";
  const std::int64_t named = reads ? std::stoll(root.tracker) : 9;
  const bool stands = reads && root.committed(named);
  std::string refused = "TRACKER_DANGLING";
  if (root.tracker == "none") refused = "NOT_FOUND";
  if (root.tracker == "garbled") refused = "TORN_FILE";
  std::string newer;
  for (std::int64_t step = 3; stands && step > named && newer.empty(); --step) {
    if (root.committed(step)) newer = " beside " + std::to_string(step);
  }
  if (fallback == Fallback::kNone) return stands ? root.tracker + newer : refused;
  std::string steps = stands ? root.tracker : "";
  for (auto step = static_cast<std::int64_t>(root.iterations.size()); step > 0; --step) {
    if (step < named && root.committed(step)) steps += std::to_string(step);
  }
  if (steps.empty()) return refused;
  return steps + newer + (stands ? "" : "!");
}

TEST(Candidates, are_what_the_tracker_reaches_newest_first_in_all_small_roots) {
  int roots = 0;
  for (int number = 0; number < 64; ++number) {
    for (const std::string tracker : {"none", "garbled", "1", "2", "3"}) {
      Root root{"", tracker};
      for (int i = 0; i < 3; ++i) root.iterations += ".ucr"[(number >> (2 * i)) % 4];
      contracts::TemporaryDirectory directory;
      PosixStore store(directory.path());
      make(store, root);
      for (const Fallback fallback : {Fallback::kNone, Fallback::kNewestWhole}) {
        EXPECT_EQ(found(store, fallback), expected(root, fallback))
            << root.iterations << ", tracker " << tracker;
      }
      ++roots;
    }
  }
  EXPECT_EQ(roots, 320);
}

TEST(Candidates, what_is_asked_for_by_its_own_name_has_no_other_in_its_place) {
  contracts::TemporaryDirectory directory;
  PosixStore store(directory.path());
  make(store, {"ccc", "3"});
  const Candidates all = candidates(store, "run/" + directory_of(2), Fallback::kNewestWhole);
  ASSERT_EQ(all.locations.size(), 1U);
  EXPECT_EQ(all.locations[0].step, Step{2});
}

/// Payload file f holds 10 * (f + 1) bytes of one tensor or object.
TEST(Candidates, each_rank_checks_its_share_for_missing_and_truncated_files) {
  constexpr std::int32_t kFiles = 5;
  constexpr std::int32_t kRanks = 2;
  const auto code = [](const std::string& hurt, std::int32_t rank, std::uint64_t left) {
    contracts::TemporaryDirectory directory;
    PosixStore store(directory.path());
    store.make_directory("ckpt");
    Metadata metadata;
    for (std::int32_t f = 0; f < kFiles; ++f) {
      const std::string name = "__" + std::to_string(f) + "_0.distcp";
      const std::uint64_t size = 10 * (static_cast<std::uint64_t>(f) + 1);
      metadata.catalog.files.push_back(name);
      const auto file = static_cast<FileIndex>(f);
      if (f % 2 == 0) {
        metadata.catalog.objects.push_back({name, file, {size - 10, 10}});
      } else {
        metadata.catalog.tensors.push_back(
            {.key = name, .shape = {1}, .chunks = {{{{0}, {1}}, file, {size - 10, 10}}}});
      }
      const std::uint64_t there = name == hurt ? left : size;
      if (there != 0) write(store, "ckpt/" + name, std::string(there, 'x'));
    }
    Checkpoint checkpoint(store, {.directory = "ckpt"}, metadata);
    return contracts::code_of([&] { require_files(checkpoint, {rank}, kRanks); });
  };
  for (std::int32_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(code("", rank, 0), std::nullopt);
    for (std::int32_t f = 0; f < kFiles; ++f) {
      const std::string name = "__" + std::to_string(f) + "_0.distcp";
      const std::uint64_t size = 10 * (static_cast<std::uint64_t>(f) + 1);
      const bool own = f % kRanks == rank;
      EXPECT_EQ(code(name, rank, 0), own ? std::optional(Code::kNotFound) : std::nullopt) << name;
      EXPECT_EQ(code(name, rank, size - 1), own ? std::optional(Code::kTornFile) : std::nullopt)
          << name;
    }
  }
}

}  // namespace
}  // namespace reprise
