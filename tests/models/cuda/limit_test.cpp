// Tests the kernel that benchmarks on a GPU take as the limit of reading.
#include "tests/bench/gpu_limit.hpp"
#include "tests/gpu/gpu.hpp"

namespace reprise::bench {
namespace {

class GpuLimit : public testing_gpu::OnGpu {};

TEST_F(GpuLimit, is_the_sum_of_every_word) {
  for (const std::size_t blocks : {1U, 31U, 33U, 4'099U, 70'001U}) {
    std::vector<std::uint64_t> words(2 * blocks);
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < words.size(); ++i) {
      words[i] = (i + 1) * 0x9E3779B97F4A7C15U;
      sum += 3 * words[i];
    }
    const auto bytes = std::as_bytes(std::span(words));
    const testing_gpu::OnDevice once(device(), bytes);
    for (auto& word : words) word *= 2;
    const testing_gpu::OnDevice twice(device(), bytes);
    EXPECT_EQ(
        sum_of_two_on_device(device(), {once.data(), bytes.size()}, {twice.data(), bytes.size()}),
        sum)
        << blocks;
  }
}

}  // namespace
}  // namespace reprise::bench
