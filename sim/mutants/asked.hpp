#pragma once
// Counts the calls of mutants' wrong functions: a run in which none was called shows nothing of the
// mutant.

#include <atomic>
#include <cstdint>
#include <utility>

namespace reprise::sim {

/// Calls of wrong functions. A simulated world runs on one thread, so the count of a thread is that
/// of its world; a process that is one rank has the count of all its threads.
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

/// The wrong function itself, and each call of it is counted. Every mutant puts its functions in
/// place by this.
template <auto Wrong>
inline constexpr auto asked = &Asked<Wrong>::call;

}  // namespace reprise::sim
