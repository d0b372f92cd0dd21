#pragma once
// One line a phase and rank for a person who watches: rank, step, phase, bytes, items, seconds.
// What the engine tells as trace events becomes text here, at the edge.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/ports/clock.hpp"
#include "reprise/ports.hpp"
#include "reprise/types.hpp"

namespace reprise::driver {

struct LogOptions {
  std::string level = "off";  ///< off, info (phases), debug (steps of protocols, too)
  /// Where each rank of each life has a file of its own; empty: all go to stderr.
  std::string directory;

  bool on() const { return level != "off"; }
};

/// A trace that writes, and hands on to another one.
class PhaseLog final : public Trace {
 public:
  /// Whose lines they are.
  struct Rank {
    std::string scenario;
    std::size_t life = 0;
    GlobalRank rank = {};
  };
  /// `clock` and `inner` are borrowed. IO where the file can't be made.
  PhaseLog(const LogOptions& options, const Rank& own, Clock& clock, Trace& inner);
  ~PhaseLog() override;
  PhaseLog(const PhaseLog&) = delete;
  PhaseLog& operator=(const PhaseLog&) = delete;

  void event(const TraceEvent& event) override;
  /// Of the job, from here on.
  void at(Step step);
  /// The events that come next are of the save of that step, however far the job is; nothing: of
  /// none. Of each step there is one save at a time.
  void within(std::optional<Step> save);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A rank's ports, with a log in them if one is wanted.
class LoggedPorts {
 public:
  /// `inner` and `clock` are borrowed.
  LoggedPorts(const LogOptions& options, const PhaseLog::Rank& own, const Ports& inner,
              Clock& clock);

  const Ports& ports() const { return ports_; }
  PhaseLog* log() const { return log_.get(); }  ///< null: none

 private:
  std::unique_ptr<PhaseLog> log_;
  Ports ports_;
};

/// USAGE with the names that there are, if `level` is none of them.
void require_log_level(const std::string& level);

/// "DIR/placements/ep2/life1-rank0.log"
std::string log_file(const LogOptions& options, const PhaseLog::Rank& rank);

}  // namespace reprise::driver
