#pragma once
// Writes a human-readable line per phase and rank: rank, step, phase, bytes, items, seconds. The
// engine emits trace events; PhaseLog turns them into text.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/ports/clock.hpp"
#include "reprise/ports.hpp"
#include "reprise/types.hpp"

namespace reprise::driver {

struct LogOptions {
  std::string level = "off";  ///< off, info (phases), debug (also steps of protocols)
  /// Directory with a file for each rank of each life. If empty, all lines go to stderr.
  std::string directory;

  bool on() const { return level != "off"; }
};

/// A trace that writes lines and forwards each event to another trace.
class PhaseLog final : public Trace {
 public:
  /// The rank to which the lines belong.
  struct Rank {
    std::string scenario;
    std::size_t life = 0;
    GlobalRank rank = {};
  };
  /// Borrows `clock` and `inner`. Throws IO if the file can't be created.
  PhaseLog(const LogOptions& options, const Rank& own, Clock& clock, Trace& inner);
  ~PhaseLog() override;
  PhaseLog(const PhaseLog&) = delete;
  PhaseLog& operator=(const PhaseLog&) = delete;

  void event(const TraceEvent& event) override;
  /// Sets the step of the job for later lines.
  void at(Step step);
  /// Marks later events as part of the save of step `save`, even if the job has reached a later
  /// step. Without a step, later events belong to no save. Each step has at most one save at a
  /// time.
  void within(std::optional<Step> save);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Ports for a rank. They write a log if the options request one.
class LoggedPorts {
 public:
  /// Borrows `inner` and `clock`.
  LoggedPorts(const LogOptions& options, const PhaseLog::Rank& own, const Ports& inner,
              Clock& clock);

  const Ports& ports() const { return ports_; }
  PhaseLog* log() const { return log_.get(); }  ///< null if there is no log

 private:
  std::unique_ptr<PhaseLog> log_;
  Ports ports_;
};

/// Throws USAGE, with a list of the known levels, if `level` is unknown.
void require_log_level(const std::string& level);

/// Returns the path of a rank's log file, such as "DIR/placements/ep2/life1-rank0.log".
std::string log_file(const LogOptions& options, const PhaseLog::Rank& rank);

}  // namespace reprise::driver
