#include "core/geometry/strided_copy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <new>

#include "tests/contracts/copy_cases.hpp"

namespace reprise {
namespace {

using contracts::copy_cases;
using contracts::CopyCase;

/// A buffer of exactly the content's length that begins at a 64-byte boundary, as device memory
/// does. AddressSanitizer detects accesses outside of it.
class Aligned {
 public:
  explicit Aligned(const Bytes& content)
      : size_(content.size()), data_(new (std::align_val_t{64}) std::byte[content.size()]) {
    std::copy(content.begin(), content.end(), data_.get());
  }
  std::byte* data() const { return data_.get(); }
  Bytes content() const { return {data_.get(), data_.get() + size_}; }

 private:
  struct Free {
    void operator()(std::byte* freed) const { ::operator delete[](freed, std::align_val_t{64}); }
  };
  std::size_t size_;
  std::unique_ptr<std::byte[], Free> data_;
};

StridedCopy copy_of(const CopyCase& one, const Aligned& source, const Aligned& target) {
  return strided_copy({source.data() + one.source.offset, one.source.strides},
                      {target.data() + one.target.offset, one.target.strides}, one.extents,
                      one.element_bytes);
}

TEST(StridedCopies, loops_of_the_cpu_copy_every_case) {
  for (const CopyCase& one : copy_cases()) {
    const Aligned source(one.source_memory());
    const Aligned target(one.target_memory());
    copy_strided({source.data() + one.source.offset, one.source.strides},
                 {target.data() + one.target.offset, one.target.strides}, one.extents,
                 one.element_bytes);
    ASSERT_EQ(target.content(), one.expected()) << one.name;
  }
}

/// Copies rows of `run` bytes, one after another, to rows that are `step` bytes apart, of which the
/// first is at `first`. Returns whether these and no other bytes have arrived.
bool copies_rows(std::int64_t run, std::int64_t step, std::int64_t first) {
  constexpr std::int64_t kRows = 2048;
  Bytes content(static_cast<std::size_t>(run * kRows));
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<std::byte>(i * 7 / 5);
  Bytes expected(static_cast<std::size_t>(first + step * kRows), std::byte{0xEE});
  const Aligned source(content);
  const Aligned target(expected);
  for (std::int64_t row = 0; row < kRows; ++row) {
    std::copy_n(content.begin() + row * run, run, expected.begin() + first + row * step);
  }
  copy_strided({source.data(), {run, 1}}, {target.data() + first, {step, 1}}, {kRows, run}, 1);
  return target.content() == expected;
}

TEST(StridedCopies, large_ones_to_rows_with_gaps_copy_these_rows_alone) {
  for (const std::int64_t run : {64, 128, 192, 100}) {
    for (const std::int64_t gap : {0, 4, 64, 320}) {
      for (const std::int64_t first : {0, 4, 64}) {
        EXPECT_TRUE(copies_rows(run, run + gap, first)) << run << " " << gap << " " << first;
      }
    }
  }
}

TEST(StridedCopies, the_kernel_body_copies_all_cases_part_by_part_in_any_order) {
  std::vector<std::unique_ptr<Aligned>> sources;
  std::vector<std::unique_ptr<Aligned>> targets;
  std::vector<StridedCopy> table;
  std::int64_t parts = 0;
  const auto cases = copy_cases();
  for (const CopyCase& one : cases) {
    sources.push_back(std::make_unique<Aligned>(one.source_memory()));
    targets.push_back(std::make_unique<Aligned>(one.target_memory()));
    StridedCopy copy = copy_of(one, *sources.back(), *targets.back());
    if (copy.runs == 0) continue;
    copy.first_part = parts;
    parts += copy.parts();
    table.push_back(copy);
  }
  const CopyTable<StridedCopy> body{table.data(), static_cast<std::int64_t>(table.size())};
  constexpr std::int64_t kThreads = 7;
  for (std::int64_t thread = kThreads; thread-- > 0;) {
    for (std::int64_t part = thread; part < parts; part += kThreads) body(part);
  }
  for (std::size_t i = 0; i < cases.size(); ++i) {
    ASSERT_EQ(targets[i]->content(), cases[i].expected()) << cases[i].name;
  }
}

TEST(StridedCopies, dimensions_that_go_on_from_one_another_are_one) {
  std::byte memory[4096];
  const auto of = [&](const Dims& source, const Dims& target, const Dims& extents) {
    return strided_copy({memory, source}, {memory, target}, extents, 4);
  };
  const StridedCopy whole = of({12, 4, 1}, {12, 4, 1}, {2, 3, 4});
  EXPECT_EQ(whole.run_bytes, 96);
  EXPECT_EQ(whole.runs, 1);
  EXPECT_EQ(whole.dims, 0);
  const StridedCopy rows = of({40, 10, 1}, {12, 4, 1}, {2, 4, 4});  // 4 columns of each row of 10
  EXPECT_EQ(rows.run_bytes, 16);
  EXPECT_EQ(rows.runs, 8);
  EXPECT_EQ(rows.dims, 2);
  const StridedCopy merged = of({30, 10, 1}, {12, 4, 1}, {2, 3, 4});
  EXPECT_EQ(merged.dims, 1);
  EXPECT_EQ(merged.dim[0].count, 6);
  EXPECT_EQ(of({1, 3}, {2, 1}, {3, 2}).run_bytes, 4);  // transposed, so each element is a run
  EXPECT_EQ(of({1}, {1}, {0}).runs, 0);
}

TEST(StridedCopies, runs_that_begin_alike_have_exactly_the_parts_that_they_touch) {
  alignas(64) std::byte memory[4096];
  const auto parts = [&](std::int64_t first, std::int64_t step) {
    return strided_copy({memory, {64, 1}}, {memory + first, {step, 1}}, {3, 32}, 1).run_parts;
  };
  EXPECT_EQ(parts(0, 48), 2);
  EXPECT_EQ(parts(4, 48), 3);
  EXPECT_EQ(parts(0, 40), 3);  // of runs that begin at 0 and at 8, an upper limit
}

TEST(StridedCopies, what_does_not_move_in_memory_is_packed_once) {
  const Packing packing = packing_of({3, 5, 2, 1}, {0, 4, 0, 0});
  EXPECT_EQ(packing.extents, (Dims{1, 5, 1, 1}));
  EXPECT_EQ(packing.strides, (Dims{0, 1, 0, 1}));
  EXPECT_EQ(packing_of({2, 3}, {7, 2}).strides, (Dims{3, 1}));
  EXPECT_EQ(packing_of({}, {}).extents, Dims{});
}

}  // namespace
}  // namespace reprise
