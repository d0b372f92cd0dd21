// Tests that switches between stacks do not mix up the exception state of the C++ runtime.
#include "sim/fibers/fiber.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace reprise::sim {
namespace {

struct Exploded {
  std::string whose;
};

TEST(Fiber, rethrow_after_a_suspended_catch_delivers_its_own_exception) {
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<std::string> delivered(3);
  for (std::size_t i = 0; i < 3; ++i) {
    fibers.push_back(std::make_unique<Fiber>([&, i] {
      try {
        try {
          throw Exploded{.whose = "fiber " + std::to_string(i)};
        } catch (const Exploded&) {
          fibers[i]->suspend();  // lets other fibers enter their catch blocks
          throw;
        }
      } catch (const Exploded& mine) {
        delivered[i] = mine.whose;
      }
    }));
  }
  for (const auto& fiber : fibers) fiber->resume();
  for (const std::size_t i : {0U, 2U, 1U}) fibers[i]->resume();  // not in LIFO order
  EXPECT_EQ(delivered, (std::vector<std::string>{"fiber 0", "fiber 1", "fiber 2"}));
  for (const auto& fiber : fibers) EXPECT_TRUE(fiber->finished());
}

struct CountsUncaught {
  explicit CountsUncaught(Fiber& whose, int& result) : fiber(whose), count(result) {}
  ~CountsUncaught() {
    fiber.suspend();
    count = std::uncaught_exceptions();
  }
  Fiber& fiber;
  int& count;
};

TEST(Fiber, suspending_in_a_destructor_hides_the_unwinding_from_others) {
  int inside = -1;
  std::unique_ptr<Fiber> fiber;
  fiber = std::make_unique<Fiber>([&] {
    const CountsUncaught guard(*fiber, inside);
    throw std::runtime_error("unwind");
  });
  fiber->resume();
  EXPECT_EQ(std::uncaught_exceptions(), 0);
  fiber->resume();
  EXPECT_EQ(inside, 1);
  ASSERT_TRUE(fiber->finished());
  EXPECT_THROW(std::rethrow_exception(fiber->end().failure), std::runtime_error);
}

TEST(Fiber, resumer_keeps_its_own_caught_exception) {
  std::unique_ptr<Fiber> fiber;
  fiber = std::make_unique<Fiber>([&] {
    try {
      throw Exploded{.whose = "fiber"};
    } catch (const Exploded&) {
      fiber->suspend();
    }
  });
  const auto resume_while_catching = [&fiber] {
    try {
      throw Exploded{.whose = "resumer"};
    } catch (const Exploded&) {
      fiber->resume();
      throw;
    }
  };
  try {
    resume_while_catching();
    FAIL();
  } catch (const Exploded& mine) {
    EXPECT_EQ(mine.whose, "resumer");
  }
  fiber->resume();
  EXPECT_TRUE(fiber->finished());
}

TEST(Fiber, killed_is_told_apart_from_failed_and_returned) {
  Fiber killed([] { throw RankKilled{}; });
  killed.resume();
  EXPECT_TRUE(killed.end().killed);
  EXPECT_EQ(killed.end().failure, nullptr);
  Fiber returned([] {});
  returned.resume();
  EXPECT_FALSE(returned.end().killed);
  EXPECT_EQ(returned.end().failure, nullptr);
}

TEST(Fiber, suspended_fiber_that_goes_unwinds_its_stack) {
  bool unwound = false;
  struct Mark {
    bool& flag;
    ~Mark() { flag = true; }
  };
  {
    std::unique_ptr<Fiber> fiber;
    fiber = std::make_unique<Fiber>([&] {
      const Mark mark{unwound};
      fiber->suspend();
    });
    fiber->resume();
  }
  EXPECT_TRUE(unwound);
}

}  // namespace
}  // namespace reprise::sim
