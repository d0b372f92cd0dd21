// Tests metadata in which some chunks overlap and leave a gap as large as the overlap. The sum of
// the chunks' sizes is then correct, even within one rank's request, although elements are missing.
// No command may accept such a checkpoint as whole.

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "core/adapters/posix/host_device.hpp"
#include "core/adapters/posix/thread_tasks.hpp"
#include "core/diff/diff.hpp"
#include "core/load/load.hpp"
#include "core/reshard/reshard.hpp"
#include "core/verify/verify.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/contracts/thread_world.hpp"
#include "tests/fixtures/stored_fixture.hpp"
#include "tests/fixtures/written_checkpoint.hpp"

namespace reprise {
namespace {

using contracts::code_of;
using test::WrittenCheckpoint;

constexpr std::byte kUntouched{0x5A};  // content of the job's memory before the load

struct CoverRow {
  const char* what;
  Dims shape;
  std::vector<Box> boxes;  ///< wrong only in the second half of dimension 0
};

void PrintTo(const CoverRow& row, std::ostream* out) { *out << row.what; }

const CoverRow kRows[] = {
    {"elements", {8}, {{{0}, {4}}, {{4}, {2}}, {{5}, {2}}}},
    {"rows", {8, 2}, {{{0, 0}, {4, 2}}, {{4, 0}, {2, 2}}, {{5, 0}, {2, 2}}}},
    {"columns", {4, 4}, {{{0, 0}, {2, 4}}, {{2, 0}, {2, 3}}, {{2, 2}, {2, 1}}}},
    {"a_part_beside_the_whole", {8}, {{{0}, {8}}, {{4}, {4}}}},
    {"corners", {4, 4}, {{{0, 0}, {2, 4}}, {{2, 0}, {1, 4}}, {{2, 2}, {2, 2}}}},
};

bool is_wrong_cover(std::optional<Code> code) {
  return code == Code::kChunkOverlap || code == Code::kCoverageGap;
}

/// Adds a tensor whose elements are all equal, so that overlapping chunks have the same content.
void add(WrittenCheckpoint& checkpoint, const CoverRow& row, const std::vector<Box>& boxes) {
  std::vector<std::pair<Box, Bytes>> parts;
  for (const Box& box : boxes) {
    parts.emplace_back(box, Bytes(static_cast<std::size_t>(box.elements()), std::byte{7}));
  }
  checkpoint.bytes("other", 3, 1).chunks("w", DType::kUInt8, row.shape, parts);
}

/// Loads this rank's rows of the tensor. Returns the code of the refusal, if there is one.
std::optional<Code> load_rows(const Ports& ports, const CoverRow& row, Bytes& memory) {
  const auto ranks = ports.fabric.world_size();
  const std::int64_t rows = row.shape[0] / ranks;
  Box box = Box::whole(row.shape);
  box.offset[0] = rows * ports.fabric.rank().value;
  box.extent[0] = rows;
  memory.assign(static_cast<std::size_t>(box.elements()), kUntouched);
  TensorLeaf leaf;
  leaf.key = "w";
  leaf.dtype = DType::kUInt8;
  leaf.shape = row.shape;
  leaf.pieces = {contiguous_piece(box)};
  leaf.data = memory.data();
  StateDict state;
  state.tensors = {leaf};
  const auto group = ports.fabric.communicator(Group::world(ranks));
  LoadOptions options;
  options.directory = "ckpt";
  options.excused = {"other"};
  return code_of([&] { load(ports, *group, state, options); });
}

class StoredCover : public testing::TestWithParam<CoverRow> {
 protected:
  StoredCover() {
    add(hurt_, GetParam(), GetParam().boxes);
    add(whole_, GetParam(), {Box::whole(GetParam().shape)});
    hurt_.store();
    whole_.store();
  }

  /// True if diff reports that the two checkpoints are the same. If diff refuses a checkpoint, the
  /// error must be about the checkpoint's chunks.
  static bool same(WrittenCheckpoint& a, WrittenCheckpoint& b) {
    Checkpoint left = Checkpoint::open(a.store(), "ckpt");
    Checkpoint right = Checkpoint::open(b.store(), "ckpt");
    HostDevice device("test", 0);
    NoProgress progress;
    std::optional<DiffOutcome> outcome;
    const auto code = code_of([&] { outcome = diff(left, right, device, {}, progress).outcome(); });
    EXPECT_TRUE(outcome || is_wrong_cover(code)) << name_of(*code);
    return outcome == DiffOutcome::kSame;
  }

  WrittenCheckpoint hurt_;
  WrittenCheckpoint whole_;
};

TEST_P(StoredCover, is_refused_by_all_ranks_and_memory_stays_untouched) {
  for (const std::int32_t ranks : {1, 2}) {
    for (const bool hurt : {false, true}) {
      contracts::run_ranks(ranks, (hurt ? hurt_ : whole_).path(), [&](const Ports& ports) {
        Bytes memory;
        const auto code = load_rows(ports, GetParam(), memory);
        EXPECT_EQ(is_wrong_cover(code), hurt) << ranks << " ranks";
        EXPECT_EQ(code.has_value(), hurt);
        const Bytes expected(memory.size(), hurt ? kUntouched : std::byte{7});
        EXPECT_EQ(memory, expected) << ranks << " ranks";
      });
    }
  }
}

TEST_P(StoredCover, verify_calls_it_damaged_with_and_without_its_payload) {
  for (const auto payload : {PayloadCheck::kRead, PayloadCheck::kSkip}) {
    NoProgress progress;
    const VerifyReport report = verify(hurt_.store(), "ckpt", payload, progress);
    EXPECT_EQ(report.verdict(), VerifyVerdict::kDamaged);
    ASSERT_FALSE(report.findings.empty());
    EXPECT_TRUE(is_wrong_cover(report.findings[0].code)) << report.findings[0];
    EXPECT_EQ(report.findings[0].key, "w");
    EXPECT_EQ(verify(whole_.store(), "ckpt", payload, progress).verdict(), VerifyVerdict::kWhole);
  }
}

TEST_P(StoredCover, diff_refuses_it_on_either_side_and_beside_itself) {
  EXPECT_FALSE(same(hurt_, whole_));
  EXPECT_FALSE(same(whole_, hurt_));
  EXPECT_FALSE(same(hurt_, hurt_));
  EXPECT_TRUE(same(whole_, whole_));
}

TEST_P(StoredCover, reshard_refuses_it_whatever_the_cut_and_leaves_nothing) {
  const CutRule halves = [](const std::string&, const Dims&) { return std::optional(Cut{0, 2}); };
  for (const CutRule& rule : {CutRule(), halves}) {
    Checkpoint source = Checkpoint::open(hurt_.store(), "ckpt");
    const contracts::TemporaryDirectory directory;
    PosixStore out(directory.path());
    HostDevice device("test", 0);
    ThreadTasks tasks(1);
    NoTrace trace;
    NoProgress progress;
    const auto code = code_of([&] {
      reshard(source, {"out", {}}, {.rule = rule, .writers = 2},
              {out, device, tasks, trace, progress});
    });
    EXPECT_TRUE(is_wrong_cover(code));
    EXPECT_TRUE(out.list("").empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Cancels, StoredCover, testing::ValuesIn(kRows),
                         [](const auto& row) { return std::string(row.param.what); });

}  // namespace
}  // namespace reprise
