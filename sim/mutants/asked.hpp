#pragma once
// Counts the calls of mutants' wrong functions: a run without such a call says nothing about the
// mutant.

#include <atomic>
#include <cstdint>
#include <utility>

namespace reprise::sim {

/// Numbers of calls of wrong functions. A simulated world runs on one thread, so it has the count
/// of its thread; a process that is one rank has the count of all its threads.
class AskedCount {
 public:
  static std::uint64_t on_this_thread() { return own_; }
  static std::uint64_t in_this_process() { return all_.load(); }
  static void add() {
    ++own_;
    ++all_;
  }

 private:
  static thread_local std::uint64_t own_;
  static std::atomic<std::uint64_t> all_;
};

template <auto Wrong>
struct Asked;
template <class Result, class... Arguments, Result (*Wrong)(Arguments...)>
struct Asked<Wrong> {
  static Result call(Arguments... arguments) {
    AskedCount::add();
    return Wrong(std::forward<Arguments>(arguments)...);
  }
};

/// The wrong function with a count of its calls. Every mutant installs its functions through
/// this.
template <auto Wrong>
inline constexpr auto asked = &Asked<Wrong>::call;

}  // namespace reprise::sim
