#pragma once
// The phases of a save and of a load, as the trace reports them. Tests inject faults and measure
// memory by phase. Every rank of the group passes through every phase in this order. Each phase has
// a begin and an end, but a phase that fails has no end.
//
//   save   plan  prepare  stage  write  vote ... commit [ step step ... ]  retention [ step ... ]
//   load   locate  [ metadata  (common)  load_plan  read  objects  common ]  for each candidate
//
// `write` begins when this rank's snapshot is complete. It ends when this rank learns that its
// background tasks have made the snapshot durable. `vote` occurs once per poll.
//
// The rank that runs the protocol of `commit` or `retention` also reports the begin and the end of
// each step. Such an event has the phase's name, and the step's name as detail. Events for whole
// phases have no detail.
//
// The first `common` occurs only if the load gets its request from the job through Ask (load.hpp).
// If a load skips a damaged candidate, the candidate's last phase is the one that found the damage.

#include <array>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/ports/protocol_step.hpp"
#include "reprise/ports.hpp"

namespace reprise {

namespace phase {
inline constexpr std::string_view kPlan = "plan";
inline constexpr std::string_view kPrepare = "prepare";
inline constexpr std::string_view kStage = "stage";
inline constexpr std::string_view kWrite = "write";
inline constexpr std::string_view kVote = "vote";
inline constexpr std::string_view kCommit = "commit";
inline constexpr std::string_view kRetention = "retention";

inline constexpr std::string_view kLocate = "locate";
inline constexpr std::string_view kMetadata = "metadata";
inline constexpr std::string_view kLoadPlan = "load_plan";
inline constexpr std::string_view kRead = "read";
inline constexpr std::string_view kObjects = "objects";
inline constexpr std::string_view kCommon = "common";
}  // namespace phase

inline constexpr std::array kSavePhases = {phase::kPlan,     phase::kPrepare, phase::kStage,
                                           phase::kWrite,    phase::kVote,    phase::kCommit,
                                           phase::kRetention};
inline constexpr std::array kLoadPhases = {phase::kLocate, phase::kMetadata, phase::kLoadPlan,
                                           phase::kRead,   phase::kObjects,  phase::kCommon};

constexpr std::span<const std::string_view> phases_of_save() { return kSavePhases; }
constexpr std::span<const std::string_view> phases_of_load() { return kLoadPhases; }

/// Totals reported at the end of a phase.
struct PhaseTotals {
  std::uint64_t bytes = 0;
  std::uint64_t items = 0;
};

inline void begin_phase(Trace& trace, std::string_view phase, std::string_view step = {}) {
  trace.event({.phase = phase, .detail = std::string(step), .moment = Moment::kBegin});
}
inline void end_phase(Trace& trace, std::string_view phase, PhaseTotals totals = {},
                      std::string_view step = {}) {
  trace.event({.phase = phase,
               .detail = std::string(step),
               .bytes = totals.bytes,
               .items = totals.items,
               .moment = Moment::kEnd});
}

/// Runs the steps in order and traces each of them. Stops at the first step that throws.
void run_protocol(const std::vector<ProtocolStep>& steps, std::string_view phase, Trace& trace);

}  // namespace reprise
