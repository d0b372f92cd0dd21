// Tests that what is kept for ever is not destroyed.

#include "core/base/keep_for_ever.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

namespace reprise {
namespace {

TEST(KeepForEver, destroys_nothing) {
  auto one = std::make_shared<int>(1);
  const std::weak_ptr<int> seen = one;
  keep_for_ever(std::move(one));
  for (int i = 0; i < 100; ++i) keep_for_ever(std::make_shared<int>(i));
  ASSERT_FALSE(seen.expired());
  EXPECT_EQ(*seen.lock(), 1);
}

}  // namespace
}  // namespace reprise
