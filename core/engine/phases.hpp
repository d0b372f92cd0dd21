#pragma once
// The phases of a save and of a load, as the trace tells of them: what faults are timed by and
// memory is measured in. Every rank of the group goes through every phase in this order; each has a
// begin and an end, one that fails has no end.
//
//   save   plan  prepare  stage  write  vote ... commit [ step step ... ]  retention [ step ... ]
//   load   locate  [ metadata  (common)  load_plan  read  objects  common ]  for each candidate
//
// `write` lasts from when this rank's snapshot is complete until it is known that the background
// made it durable; `vote` comes once for each poll. Within `commit` and `retention` the rank that
// runs the protocol tells of each step: same phase, the step's name as detail, a begin and an end.
// The detail of a phase as a whole is empty. The first `common` is that of a job which is asked
// what it wants (Ask in load.hpp); a candidate that is passed over ends where it was found out.

#include <array>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

/// What an end says of the work.
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

/// One step of a protocol: commit, retention, what clears up after a crash.
struct ProtocolStep {
  std::string_view name;
  std::function<void()> run;
};
/// Runs the steps in order and tells of each. Stops at the first that throws.
void run_protocol(const std::vector<ProtocolStep>& steps, std::string_view phase, Trace& trace);

}  // namespace reprise
