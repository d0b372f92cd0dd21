// This is the only file with `catch (...)`. If a fiber's body throws, the fiber ends, and the
// caller of end() gets the exception.
#include "sim/fibers/fiber.hpp"

#include <cxxabi.h>

#include <array>
#include <boost/context/fiber.hpp>
#include <boost/context/preallocated.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "core/base/check.hpp"
#include "sim/fibers/sanitizer_switch.hpp"

// The headers of libc++ leave it out.
namespace __cxxabiv1 {                                      // NOLINT
struct __cxa_eh_globals;                                    // NOLINT
extern "C" __cxa_eh_globals* __cxa_get_globals() noexcept;  // NOLINT
}  // namespace __cxxabiv1

namespace reprise::sim {
namespace {

namespace context = boost::context;

constexpr std::size_t kStackBytes = 1U << 20U;  // reserved; pages are allocated on first use

// Reuses stacks of ended fibers on the same thread: mapping a stack and touching its pages for the
// first time takes longer than most fibers run.
class StackPool {
 public:
  StackPool() = default;
  ~StackPool() {
    for (auto& stack : free_) maker_.deallocate(stack);
  }
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;

  static StackPool& of_this_thread() {
    thread_local StackPool pool;
    return pool;
  }

  context::stack_context take() {
    if (free_.empty()) return maker_.allocate();
    const context::stack_context stack = free_.back();
    free_.pop_back();
    return stack;
  }
  void give_back(context::stack_context& stack) {
    constexpr std::size_t kKeptMax = 64;
    if (free_.size() == kKeptMax) return maker_.deallocate(stack);
    free_.push_back(stack);
  }

 private:
  context::protected_fixedsize_stack maker_{kStackBytes};
  std::vector<context::stack_context> free_;
};

// Adapts the pool to Boost's interface.
struct PooledStack {
  context::stack_context allocate() const { return StackPool::of_this_thread().take(); }
  void deallocate(context::stack_context& stack) const {
    StackPool::of_this_thread().give_back(stack);
  }
};

// The C++ runtime's exception state (Itanium C++ ABI 2.2.2): the stack of caught exceptions and the
// number of uncaught ones.
struct CaughtExceptions {
  std::array<std::byte, 2 * sizeof(void*)> bytes{};

  static CaughtExceptions current() {
    CaughtExceptions now;
    std::memcpy(now.bytes.data(), abi::__cxa_get_globals(), now.bytes.size());
    return now;
  }
  void install() const { std::memcpy(abi::__cxa_get_globals(), bytes.data(), bytes.size()); }
};

}  // namespace

struct Fiber::State {
  std::function<void()> body;
  context::fiber inside;   // the fiber, which resume() continues
  context::fiber outside;  // the caller, which suspend() continues
  CaughtExceptions caught;
  SanitizedStack stack;
  FiberEnd end;
  bool started = false;
  bool finished = false;

  void start() {
    const PooledStack allocator;
    const context::stack_context memory = allocator.allocate();
    stack.set_memory(static_cast<std::byte*>(memory.sp) - memory.size, memory.size);
    inside =
        context::fiber(std::allocator_arg, context::preallocated(memory.sp, memory.size, memory),
                       allocator, [this](context::fiber&& caller) {
                         stack.entered_first();
                         outside = std::move(caller);
                         run();
                         finished = true;
                         stack.leaving_last();
                         return std::move(outside);
                       });
    started = true;
  }

  void run() {
    try {
      body();
    } catch (const RankKilled&) {
      end.killed = true;
    } catch (const context::detail::forced_unwind&) {
      stack.entered_again();  // Boost throws this exception when a suspended fiber is destroyed
      stack.leaving_last();
      throw;
    } catch (...) {
      end.failure = std::current_exception();
    }
    body = nullptr;
  }
};

Fiber::Fiber(std::function<void()> body) : state_(std::make_unique<State>()) {
  state_->body = std::move(body);
}

Fiber::~Fiber() {
  if (!state_->started || state_->finished) return;
  const auto mine = CaughtExceptions::current();
  state_->caught.install();
  state_->stack.entering();
  state_->inside = context::fiber();  // unwinds the fiber's stack
  state_->stack.returned();
  mine.install();
}

void Fiber::resume() {
  CHECK(!state_->finished);
  if (!state_->started) state_->start();
  const auto mine = CaughtExceptions::current();
  state_->caught.install();
  state_->stack.entering();
  state_->inside = std::move(state_->inside).resume();
  state_->stack.returned();
  state_->caught = CaughtExceptions::current();
  mine.install();
}

void Fiber::suspend() {
  state_->stack.leaving();
  state_->outside = std::move(state_->outside).resume();
  state_->stack.entered_again();
}

bool Fiber::started() const { return state_->started; }
bool Fiber::finished() const { return state_->finished; }

const FiberEnd& Fiber::end() const {
  CHECK(state_->finished);
  return state_->end;
}

}  // namespace reprise::sim
