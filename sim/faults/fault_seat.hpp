#pragma once
// State shared by the decorators of one rank's ports. Included only by this folder's sources.

#include <string>

#include "reprise/error.hpp"
#include "sim/faults/fault_book.hpp"
#include "sim/faults/faulty_ports.hpp"

namespace reprise::sim {

class FaultSeat {
 public:
  FaultSeat(FaultBook& book, GlobalRank rank, FaultPowers powers)
      : book_(book), rank_(rank), powers_(std::move(powers)) {}

  /// Returns the fault that strikes this call, or null. Does not return if the fault is a crash.
  const FaultSpec* strikes(const PortCall& call) {
    const FaultSpec* fault = book_.strikes(rank_, call);
    if (fault != nullptr && fault->kind == FaultKind::kCrash) die();
    return fault;
  }
  /// Called when a phase or step begins or ends.
  void begins(std::string_view phase, std::string_view step) {
    act(book_.begins(rank_, phase, step));
  }
  void ends(std::string_view phase, std::string_view step) { act(book_.ends(rank_, phase, step)); }

  void sleep(std::uint64_t duration_ns) { powers_.sleep(duration_ns); }
  /// Throws USAGE if the store has no leases.
  void take_lease(const std::string& path);
  void let_other_write(const std::string& path);
  [[noreturn]] void die();
  [[noreturn]] void fail(Code code, const PortCall& call) const;

 private:
  /// Applies a fault that strikes between calls: a crash, a delay, or a rank that never arrives.
  void act(const FaultSpec* fault);

  FaultBook& book_;
  GlobalRank rank_;
  FaultPowers powers_;
};

}  // namespace reprise::sim
