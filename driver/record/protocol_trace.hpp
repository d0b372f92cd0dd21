#pragma once
// Holds the trace of a save or load of one rank against the table of allowed moves.

#include <string>
#include <utility>
#include <vector>

#include "driver/record/record.hpp"
#include "properties/protocol.hpp"
#include "reprise/ports.hpp"
#include "sim/world/recording.hpp"

namespace reprise::driver {

/// A trace that follows a ProtocolWalk and forwards each event to another trace. A move that is not
/// allowed becomes a finding, and the other trace gets an event of sim::kBrokenProtocol after it.
class ProtocolTrace final : public Trace {
 public:
  /// Borrows `inner` and `findings`. `phase` is what the rank does meanwhile, for the findings.
  ProtocolTrace(Protocol protocol, std::string phase, Trace& inner, Findings& findings)
      : protocol_(protocol),
        phase_(std::move(phase)),
        walk_(protocol),
        inner_(inner),
        findings_(findings) {}

  void event(const TraceEvent& event) override {
    const auto said = walk_.take(event);
    inner_.event(event);
    if (said) rule(*said);
  }

  /// Begins a new walk.
  void begin() { walk_ = ProtocolWalk(protocol_); }
  /// Called when the save or load has returned without an error. Rules that the walk must be
  /// complete.
  void returned() {
    if (walk_.is_broken() || walk_.is_complete()) return;
    rule("it has returned in the state '" + state() + "'");
  }
  const std::string& state() const { return walk_.state(); }
  bool is_complete() const { return walk_.is_complete(); }

 private:
  void rule(const std::string& said, SourceLine line = SourceLine::here()) {
    findings_.push_back({.code = judged::kProtocol, .text = said, .line = line, .phase = phase_});
    inner_.event({.phase = sim::kBrokenProtocol, .detail = said});
  }

  Protocol protocol_;
  std::string phase_;
  ProtocolWalk walk_;
  Trace& inner_;
  Findings& findings_;
};

}  // namespace reprise::driver
