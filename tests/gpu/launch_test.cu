// Tests that a kernel that is launched over a range of indices runs exactly once for each index,
// whatever the numbers of indices and blocks.
#include "core/adapters/cuda/launch.cuh"
#include "core/base/execution_space.hpp"
#include "reprise/error.hpp"
#include "tests/gpu/gpu.hpp"

namespace reprise {
namespace {

struct AddOne {
  std::byte* numbers;

  REPRISE_HD void operator()(std::int64_t i) const {
    numbers[i] = static_cast<std::byte>(std::to_integer<unsigned>(numbers[i]) + 1U);
  }
};

class Launch : public testing_gpu::OnGpu {};

TEST_F(Launch, does_each_index_once) {
  for (const std::int64_t count :
       {0L, 1L, 255L, 256L, 257L, testing_gpu::few() ? 10'003L : 1'000'003L}) {
    for (const std::int64_t blocks : {0L, 1L, 7L}) {
      const testing_gpu::OnDevice numbers(device(),
                                          Bytes(static_cast<std::size_t>(count) + 1, std::byte{0}));
      const AddOne body{numbers.data()};
      if (blocks == 0) {
        launch(compute(), count, body);
      } else {
        launch_blocks(compute(), blocks, "launch", for_each_index<AddOne>, count, body);
      }
      Bytes expected(static_cast<std::size_t>(count) + 1, std::byte{1});
      expected.back() = std::byte{0};
      EXPECT_EQ(numbers.read(), expected) << count << ' ' << blocks;
    }
  }
}

TEST_F(Launch, of_no_blocks_is_refused_with_its_name) {
  try {
    launch_blocks(compute(), 0, "the empty launch", for_each_index<AddOne>, std::int64_t{1},
                  AddOne{nullptr});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("the empty launch: "), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace reprise
