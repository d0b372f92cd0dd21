#pragma once
// A fiber has its own stack; a thread switches to it and back. It uses Boost.Context, and at each
// switch it saves and restores the C++ runtime's per-thread exception state. Otherwise a fiber that
// suspends inside a catch block and then rethrows would throw another fiber's exception.

#include <exception>
#include <functional>
#include <memory>

namespace reprise::sim {

/// Thrown to unwind a killed rank. Deliberately not a std::exception, so that nothing catches it by
/// accident.
struct RankKilled {};

/// The way in which a fiber ended.
struct FiberEnd {
  std::exception_ptr failure = nullptr;  ///< exception of the body, or null
  bool killed = false;                   ///< true if RankKilled unwound the fiber
};

class Fiber {
 public:
  /// Creates a fiber that does not run yet. The first resume allocates the stack, with a guard page
  /// below it. All calls must be made by the same thread.
  explicit Fiber(std::function<void()> body);
  /// Unwinds the stack of a suspended fiber. Code on that stack must neither suspend nor catch all
  /// exceptions.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Called from outside: runs the fiber until it suspends or ends.
  void resume();
  /// Called from inside: returns to the caller of resume().
  void suspend();

  bool started() const;
  bool finished() const;
  /// Returns how the fiber ended. May be called only once the fiber has ended.
  const FiberEnd& end() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace reprise::sim
