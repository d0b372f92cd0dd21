#pragma once
// A fiber with its own stack, to which one thread switches. It uses Boost.Context and saves
// and restores the C++ runtime's per-thread exception state at each switch. Otherwise a
// fiber that suspends inside a catch block and then rethrows would throw another fiber's
// exception.

#include <exception>
#include <functional>
#include <memory>

namespace reprise::sim {

/// Unwinds a killed rank. Deliberately no std::exception, so that nobody catches it by accident.
struct RankKilled {};

/// The way in which a fiber ended.
struct FiberEnd {
  std::exception_ptr failure = nullptr;  ///< exception of the body; null if it returned
  bool killed = false;                   ///< true if RankKilled unwound it
};

class Fiber {
 public:
  /// Does not run yet. The first resume allocates the stack, with a guard page below it. A fiber
  /// stays on one thread.
  explicit Fiber(std::function<void()> body);
  /// Unwinds the stack of a suspended fiber; nothing on it may then suspend or catch everything.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Called from outside: runs the fiber until it suspends or ends.
  void resume();
  /// Called from inside: returns to the caller of resume().
  void suspend();

  bool started() const;
  bool finished() const;
  /// Called once the fiber has finished.
  const FiberEnd& end() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace reprise::sim
