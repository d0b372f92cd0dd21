#pragma once
// Holds the trace of a save or load of one rank against the table of allowed moves.

#include <string>
#include <vector>

#include "properties/protocol.hpp"
#include "reprise/ports.hpp"

namespace reprise::driver {

/// A trace that follows a ProtocolWalk and forwards each event to another trace.
class ProtocolTrace final : public Trace {
 public:
  /// Borrows `inner` and `broken`. Adds a message to `broken` for a move that is not allowed.
  ProtocolTrace(Protocol protocol, Trace& inner, std::vector<std::string>& broken)
      : protocol_(protocol), walk_(protocol), inner_(inner), broken_(broken) {}

  void event(const TraceEvent& event) override {
    if (auto said = walk_.take(event)) broken_.push_back(std::move(*said));
    inner_.event(event);
  }

  /// Begins a new walk.
  void begin() { walk_ = ProtocolWalk(protocol_); }
  /// Called when the save or load has returned without an error. Adds a message to `broken` if the
  /// walk is not complete.
  void returned() {
    if (walk_.is_broken() || walk_.is_complete()) return;
    broken_.push_back("it has returned in the state '" + state() + "'");
  }
  const std::string& state() const { return walk_.state(); }
  bool is_complete() const { return walk_.is_complete(); }

 private:
  Protocol protocol_;
  ProtocolWalk walk_;
  Trace& inner_;
  std::vector<std::string>& broken_;
};

}  // namespace reprise::driver
