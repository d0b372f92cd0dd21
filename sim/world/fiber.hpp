#pragma once
// A stack of its own that one thread switches to and from: over Boost.Context, with what the C++
// runtime keeps per thread about exceptions saved and restored at each switch. Without that, a
// fiber that suspends inside a catch block and then rethrows would deliver another fiber's
// exception.

#include <exception>
#include <functional>
#include <memory>

namespace reprise::sim {

/// What a killed rank unwinds by. On purpose no std::exception: nobody catches it by accident.
struct RankKilled {};

/// How a fiber ended.
struct FiberEnd {
  std::exception_ptr failure = nullptr;  ///< what the body threw; null if it returned
  bool killed = false;                   ///< unwound by RankKilled
};

class Fiber {
 public:
  /// Runs nothing yet. The stack comes at the first resume, with a guard page below it. A fiber
  /// stays on one thread.
  explicit Fiber(std::function<void()> body);
  /// A suspended fiber's stack is unwound; nothing on it may suspend or catch everything then.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// From outside: runs the fiber until it suspends or ends.
  void resume();
  /// From inside: back to where resume() was called.
  void suspend();

  bool started() const;
  bool finished() const;
  /// Once it is finished.
  const FiberEnd& end() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace reprise::sim
