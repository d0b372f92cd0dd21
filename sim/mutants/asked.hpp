#pragma once
// Counts the calls of mutants' wrong functions. A run that calls no wrong function does not test
// the mutant.

#include <atomic>
#include <cstdint>
#include <utility>

namespace reprise::sim {

/// Counts calls of wrong functions. on_this_thread() is for a simulated world, which runs on one
/// thread; in_this_process() is for a process that is one rank and has several threads.
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

/// Pointer to a wrong function whose calls are counted. Mutants install wrong functions only in
/// this form.
template <auto Wrong>
inline constexpr auto asked = &Asked<Wrong>::call;

}  // namespace reprise::sim
