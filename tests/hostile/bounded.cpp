#include "tests/hostile/bounded.hpp"

#include <gtest/gtest.h>

#include <ctime>
#include <iostream>

#include "reprise/error.hpp"
#include "tests/hostile/allocations.hpp"

namespace reprise::test {
namespace {

constexpr std::size_t kMemory = std::size_t{24} << 20U;
constexpr std::size_t kMemoryPerByte = 256;
constexpr double kSeconds = 0.5;
constexpr double kSecondsPerByte = 2e-6;

}  // namespace

void expect_bounded(const std::string& name, std::size_t bytes, const std::function<void()>& act) {
  SCOPED_TRACE(name);
  const std::size_t before = allocated_bytes();
  take_allocated_peak();
  const std::clock_t begin = std::clock();
  std::string ending = "read";
  try {
    act();
  } catch (const std::exception& error) {
    ending = error.what();
    EXPECT_LT(ending.size(), 20000U);
  }
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  const std::size_t peak = take_allocated_peak() - before;
  std::cout << name << ": " << bytes << " bytes, " << (peak >> 10U) << " KiB, " << seconds
            << " s: " << ending.substr(0, 100) << '\n';
  if (allocations_counted()) {
    EXPECT_LE(peak, kMemory + kMemoryPerByte * bytes) << ending;
    EXPECT_LE(seconds, kSeconds + kSecondsPerByte * static_cast<double>(bytes)) << ending;
  }
}

std::string times(std::size_t count, const std::string& part) {
  std::string all;
  all.reserve(count * part.size());
  for (std::size_t i = 0; i < count; ++i) all += part;
  return all;
}

}  // namespace reprise::test
