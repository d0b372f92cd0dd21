// Flips bits in files or truncates files while no rank has them open. Afterwards, either all ranks
// refuse the load with the same named error, or they load unchanged content.
#include "sim/faults/at_rest.hpp"
#include "core/ports/whole_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <map>

#include "sim/faults/checkpoint_file.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/sim/faults/fault_world.hpp"

namespace reprise::sim {
namespace {

using contracts::code_of;

const std::string kDirectory = "run/iter_0000002";

Bytes content(Store& store, const std::string& path) { return read_all(store, path, 1U << 30U); }

/// Loads the newest checkpoint on all ranks. Returns "loaded" if the state is the saved one;
/// otherwise, returns the error code, which must be the same on all ranks.
std::string outcome(SimStore& store) {
  const LifeEnd life = load_newest(store);
  EXPECT_FALSE(life.hung) << life.verdict;
  for (const auto& rank : life.ranks) {
    EXPECT_NE(rank.end, RankEnd::kDefect) << rank.message;
    EXPECT_EQ(rank.error.has_value(), life.ranks[0].error.has_value()) << "a split";
    if (!rank.error) {
      EXPECT_EQ(rank.step, 2) << "the load returned wrong bytes without an error";
    } else if (life.ranks[0].error) {
      EXPECT_NE(rank.error->code(), Code::kInternal) << rank.error->what();
      EXPECT_EQ(rank.error->code(), life.ranks[0].error->code());
    }
  }
  return life.ranks[0].error ? std::string(name_of(life.ranks[0].error->code())) : "loaded";
}

class AtRest : public testing::Test {
 protected:
  AtRest() {
    save_step(2, store_);
    store_.sync_all();
  }

  std::string one(FileKind kind) {
    const bool beside = kind == FileKind::kTracker;
    const auto found = files_of(store_, beside ? kRoot : kDirectory, kind);
    EXPECT_FALSE(found.empty()) << name_of(kind);
    return found.at(0);
  }

  SimStore store_;
};

TEST_F(AtRest, files_are_known_by_what_they_are) {
  EXPECT_EQ(files_of(store_, kDirectory, FileKind::kPayload).size(), 2U);
  for (const auto kind : {FileKind::kMetadata, FileKind::kCommon, FileKind::kBackend}) {
    EXPECT_EQ(files_of(store_, kDirectory, kind).size(), 1U) << name_of(kind);
  }
  EXPECT_EQ(kind_of_file("run/latest_checkpointed_iteration.txt.tmp"), FileKind::kTracker);
  EXPECT_EQ(kind_of_file("run/iter_0000002.saving"), FileKind::kCheckpoint);
  EXPECT_EQ(kind_of_file("run/iter_0000002.saving/__0_0.distcp"), FileKind::kPayload);
  EXPECT_EQ(kind_of_file("run"), std::nullopt);
}

TEST_F(AtRest, a_flipped_bit_is_flipped_durably_and_back) {
  const std::string path = one(FileKind::kPayload);
  const Bytes before = content(store_, path);
  flip_bit(store_, path, before.size() + 3, 9);  // both numbers wrap around: flips bit 1 of byte 3
  store_.crash();
  Bytes expected = before;
  expected[3] ^= std::byte{2};
  EXPECT_EQ(content(store_, path), expected);
  flip_bit(store_, path, 3, 1);
  EXPECT_EQ(content(store_, path), before);
  write_durably(store_, "empty", {});
  EXPECT_EQ(code_of([&] { flip_bit(store_, "empty", 0); }), Code::kUsage);
}

TEST_F(AtRest, every_byte_with_a_flipped_bit_is_refused_or_not_read) {
  struct Row {
    FileKind kind;
    std::size_t every;
  };
  for (const auto& [kind, every] :
       {Row{FileKind::kMetadata, 1}, Row{FileKind::kCommon, 1}, Row{FileKind::kBackend, 1},
        Row{FileKind::kTracker, 1}, Row{FileKind::kPayload, 13}}) {
    const std::string path = one(kind);
    std::map<std::string, int> outcomes;
    const std::size_t bytes = content(store_, path).size();
    for (std::size_t byte = 0; byte < bytes && !HasFailure(); byte += every) {
      const auto bit = static_cast<unsigned>(byte / every % 8);
      SCOPED_TRACE(path + " byte " + std::to_string(byte) + " bit " + std::to_string(bit));
      flip_bit(store_, path, byte, bit);
      ++outcomes[outcome(store_)];
      flip_bit(store_, path, byte, bit);
    }
    std::cout << "  " << name_of(kind) << " (" << bytes << " bytes):";
    for (const auto& [what, times] : outcomes) std::cout << "  " << what << " " << times;
    std::cout << "\n";
  }
}

TEST_F(AtRest, a_file_that_lost_its_end_is_refused) {
  for (const auto kind : {FileKind::kMetadata, FileKind::kCommon, FileKind::kPayload}) {
    const std::string path = one(kind);
    const Bytes whole = content(store_, path);
    for (std::uint64_t gone = 1; gone <= whole.size(); gone += 1 + whole.size() / 50) {
      SCOPED_TRACE(path + " without its last " + std::to_string(gone));
      cut(store_, path, gone);
      EXPECT_NE(outcome(store_), "loaded");
      write_durably(store_, path, whole);
    }
    store_.remove(path);
    EXPECT_NE(outcome(store_), "loaded") << name_of(kind);
    write_durably(store_, path, whole);
  }
  EXPECT_EQ(outcome(store_), "loaded");
}

}  // namespace
}  // namespace reprise::sim
