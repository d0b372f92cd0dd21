#include "properties/protocol.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace reprise {
namespace {

using Moves = std::vector<ProtocolMove>;

/// A step that one rank runs within a phase.
struct NamedStep {
  std::string_view name;
  bool needed = true;  ///< false if some saves leave it out
};

constexpr NamedStep kPrepareSteps[] = {{"make_root"}, {"lock"},  {"restore_replaced"},
                                       {"sync_root"}, {"clear"}, {"make_saving"}};
constexpr NamedStep kCommitSteps[] = {{"payload", false},       // no payload: every rank is empty
                                      {"common_state", false},  // plain DCP has none
                                      {"metadata"},
                                      {"backend_info", false},  // as common_state
                                      {"manifest", false},      // only if requested
                                      {"sync_directory"},
                                      {"read_back"},
                                      {"swap_in"},
                                      {"sync_parent"},
                                      {"confirm"},
                                      {"tracker", false},  // a target without a step has no tracker
                                      {"remove_replaced"}};
constexpr NamedStep kRetentionSteps[] = {{"clear_removing"}, {"choose"}, {"set_aside"},
                                         {"sync_root"},      {"unmark"}, {"remove"}};

/// Says if a phase may end although its steps have not all run.
enum class EarlyEnd : std::uint8_t { kForbidden, kAllowed };

/// Adds the moves of a phase. A rank that runs none of its steps passes from the begin to the end.
void add_phase(const std::string& phase, std::span<const NamedStep> steps, const std::string& from,
               const std::string& to, EarlyEnd early, Moves& moves) {
  moves.push_back({from, "+" + phase, phase});
  std::vector<std::string> before = {phase};  // states from which the next step may begin
  for (const auto& step : steps) {
    const std::string name = phase + "/" + std::string(step.name);
    for (const auto& state : before) moves.push_back({state, "+" + name, name});
    moves.push_back({name, "-" + name, name + " done"});
    if (early == EarlyEnd::kAllowed) moves.push_back({name, "-" + phase, to});
    if (early == EarlyEnd::kAllowed) moves.push_back({name + " done", "-" + phase, to});
    if (step.needed) before.clear();
    before.push_back(name + " done");
  }
  if (early == EarlyEnd::kForbidden) {
    for (const auto& state : before) {
      if (state != phase) moves.push_back({state, "-" + phase, to});
    }
  }
  moves.push_back({phase, "-" + phase, to});
}

Moves save_moves() {
  Moves moves = {{"new", "+plan", "plan"}, {"plan", "-plan", "planned"}};
  add_phase("prepare", kPrepareSteps, "planned", "prepared", EarlyEnd::kForbidden, moves);
  moves.insert(moves.end(), {{"prepared", "+stage", "stage"},
                             {"stage", "-stage", "staged"},
                             {"staged", "+write", "write"},
                             {"write", "+vote", "vote"},
                             {"vote", "-vote", "write"},  // some rank still writes
                             {"vote", "-write", "written"},
                             {"written", "-vote", "voted"},
                             {"voted", "+vote", "written"}});  // another rank still wrote
  add_phase("commit", kCommitSteps, "voted", "committed", EarlyEnd::kForbidden, moves);
  // Errors of retention do not fail the save.
  add_phase("retention", kRetentionSteps, "committed", "retained", EarlyEnd::kAllowed, moves);
  return moves;
}

Moves load_moves() {
  Moves moves = {{"new", "+locate", "locate"},          {"locate", "-locate", "located"},
                 {"located", "+metadata", "metadata"},  {"metadata", "-metadata", "opened"},
                 {"opened", "+common", "ask"},  // the job bases its request on the common state
                 {"ask", "-common", "asked"},           {"opened", "+load_plan", "load_plan"},
                 {"asked", "+load_plan", "load_plan"},  {"load_plan", "-load_plan", "planned"},
                 {"planned", "+read", "read"},          {"read", "-read", "read done"},
                 {"read done", "+objects", "objects"},  {"objects", "-objects", "objects done"},
                 {"objects done", "+common", "common"}, {"common", "-common", "loaded"}};
  // A candidate may turn out to be damaged in each of its phases. The load then tries the next one.
  for (const auto* state : {"metadata", "ask", "load_plan", "planned", "read", "read done",
                            "objects", "objects done", "common"}) {
    moves.push_back({state, "passed over", "located"});
  }
  return moves;
}

// Between two iterations only states 0 and 3 can be saved, and only from them an iteration begins.
Moves rerun_moves() {
  const std::string idle = "NOT_RUNNING_YET";
  const std::string due = "WILL_RERUN_FROM_CHECKPOINT";
  Moves moves = {{"new", "load " + idle, idle},
                 {"new", "load " + due, due},
                 {"new", "start " + idle, idle},
                 {idle, "load " + idle, idle},
                 {idle, "load " + due, due},
                 {idle, "iteration " + idle, idle},
                 {idle, "save", idle},
                 // The result was rejected and reproduced in place: another device must decide.
                 {idle, "exit 16 " + due, "exit 16"},
                 {"exit 16", "save", "fault checkpoint"},
                 // The result was rejected and not reproduced in place.
                 {idle, "exit 17 RERUNNING_IN_PLACE", "exit 17"},
                 // The machine is disabled, and the result is fatal.
                 {idle, "exit 1 " + idle, "exit 1"},
                 // Another device has decided that the result is correct, or not fatal.
                 {due, "iteration " + idle, idle},
                 {due, "exit 17 RERUNNING_FROM_CHECKPOINT", "exit 17"},
                 {due, "exit 16 RERUNNING_AGAIN_FROM_CHECKPOINT", "exit 16 again"},
                 {due, "save", due}};
  return moves;
}

/// Describes one protocol.
struct Row {
  std::string_view subject;
  Moves moves;
  /// States in which the protocol may be when its subject has returned; empty if any may be.
  std::set<std::string> ends;
};

const Row& row_of(Protocol protocol) {
  // One row for each Protocol, in its order.
  static const std::array rows = {
      Row{"the save", save_moves(), {"committed", "retained"}},
      Row{"the load", load_moves(), {"loaded"}},
      Row{"the rerun machine", rerun_moves(), {}},
  };
  return rows.at(static_cast<std::size_t>(protocol));
}

/// True if an event of the table begins a phase of this name.
bool has_phase(Protocol protocol, std::string_view phase) {
  const Moves& moves = row_of(protocol).moves;
  return std::any_of(moves.begin(), moves.end(), [phase](const ProtocolMove& move) {
    return move.event.front() == '+' && std::string_view(move.event).substr(1) == phase;
  });
}

}  // namespace

std::span<const ProtocolMove> moves_of(Protocol protocol) { return row_of(protocol).moves; }

std::optional<std::string> ProtocolWalk::take(std::string_view event) {
  if (broken_) return std::nullopt;
  const Row& row = row_of(protocol_);
  std::string allowed;
  for (const auto& move : row.moves) {
    if (move.from != state_) continue;
    if (move.event == event) {
      state_ = move.to;
      return std::nullopt;
    }
    allowed += (allowed.empty() ? "" : ", ") + move.event;
  }
  broken_ = true;
  return std::string(row.subject) + " was in the state '" + state_ + "', in which '" +
         std::string(event) +
         "' is not allowed; allowed: " + (allowed.empty() ? "nothing" : allowed);
}

std::optional<std::string> ProtocolWalk::take(const TraceEvent& event) {
  if (event.phase == "load" && event.detail.starts_with("passed over ")) return take("passed over");
  if (!has_phase(protocol_, event.phase)) return std::nullopt;
  return take((event.moment == Moment::kBegin ? "+" : "-") + std::string(event.phase) +
              (event.detail.empty() ? "" : "/" + event.detail));
}

bool ProtocolWalk::is_complete() const {
  const auto& ends = row_of(protocol_).ends;
  return !broken_ && (ends.empty() || ends.contains(state_));
}

}  // namespace reprise
