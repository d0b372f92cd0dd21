#pragma once
// What the hook of `reprise watch` recorded of a life: a file for each process that trained, with
// one JSON object a line (docs/watch.md). Reading is lenient where a crash may have cut a file.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace reprise::driver {

/// Digests or texts by name, such as "param.0.severity" and "#float32[2, 3]:0123456789abcdef".
using WatchedValues = std::map<std::string, std::string>;

/// What a rank holds when a training forward begins after `step` steps, or at its end.
struct HeldState {
  std::int64_t step = 0;
  std::string why;      ///< first, save, load, every or end
  bool at_end = false;  ///< read after the last step, when a schedule may have gone on already
  bool light = false;   ///< only some names were looked at: one that is not there says nothing
  WatchedValues names;
  /// Digests of whole tensors that add up over ranks, as "float32[16,8]@0,0+8,8:0123456789abcdef".
  WatchedValues wholes;
};

struct WatchedStep {
  std::vector<std::string> losses;  ///< as text, hexadecimal
  std::vector<std::string> inputs;
  std::vector<std::string> lr;
  std::vector<std::string> rows;  ///< of the inputs, each by its digest
  bool unseen = false;  ///< no forward of a module in training mode came before the update
};

/// A call that saves or loads.
struct Transfer {
  std::int64_t step = 0;
  std::string by;    ///< such as "torch.save"
  std::string path;  ///< absolute; empty if it is not known
  bool asynchronous = false;
  /// Made by a thread that does not train, so that the content may be of an earlier step.
  bool aside = false;
  bool complete = false;  ///< of a save: it is on disk as a whole
  WatchedValues leaves;
  std::string error;  ///< of a load: what it raised; empty if it returned
};

/// A save that said it was complete, and has not all that was handed to it.
struct NotStored {
  std::int64_t step = 0;
  std::string path;
  std::vector<std::string> names;  ///< what is not in it
};

/// How a process ended by its own word.
struct RecordedEnd {
  std::int64_t step = 0;
  std::string how;  ///< returned, exit or exception
  std::string error;
};

/// The record of one process. Steps are counted from its own start.
struct RankRecording {
  std::string file;
  std::int64_t rank = 0;
  std::int64_t world = 0;  ///< number of ranks, as the process was told; 0 if it was not told
  std::string digest;      ///< function by which tensors were digested
  bool whole = false;  ///< records whole tensors and rows: the layout may differ from life to life
  std::vector<std::string> stand_ins;
  std::vector<HeldState> held;
  std::map<std::int64_t, WatchedStep> steps;
  std::vector<Transfer> saves;
  std::vector<Transfer> loads;
  std::vector<NotStored> not_stored;
  std::map<std::string, std::string> not_judged;  ///< reason by name
  std::optional<std::int64_t> killed;             ///< step after which the hook killed the process
  std::string killed_at;
  std::optional<RecordedEnd> end;
  std::string outside;  ///< path outside the working directory to which a save was refused
  bool torn = false;    ///< the last line was cut off

  std::vector<std::string> hook_errors;  ///< what the hook itself failed in

  /// Returns the newest state that was held when a forward began after that step, if possible one
  /// that is not light; null if none was recorded.
  const HeldState* held_at(std::int64_t step) const;
  /// Returns the state at the end; null if none was recorded.
  const HeldState* held_at_end() const;
  std::int64_t last_step() const;
  /// True if the process was killed the moment this save was complete: before it could rename the
  /// file or note which save is the newest, so a job may well resume from an earlier one.
  bool was_cut_at(const Transfer& save) const;
};

struct LifeRecording {
  std::map<std::int64_t, RankRecording> ranks;
  /// Returns how many steps the rank made that made most.
  std::int64_t last_step() const;
  /// What makes the record unusable, such as two processes that called themselves rank 0.
  std::vector<std::string> flaws;
};

/// True if some rank made an asynchronous save.
bool saves_asynchronously(const LifeRecording& life);

/// True if every rank recorded what can be compared under another layout.
bool tells_wholes(const LifeRecording& life);

/// Reads the record of one process. Throws reports::ReadError if it can't be one: an unknown
/// version, or a line that is no record, unless it is the last one and cut off.
RankRecording parse_recording(const std::string& text, const std::string& file);

/// Reads the files rank-<r>-<pid>.jsonl of a folder. A folder that does not exist has none.
LifeRecording read_recordings(const std::string& folder);

/// Returns the number of elements of a tensor's digest; nothing if the value is no tensor's.
std::optional<std::uint64_t> elements_in(const std::string& value);

}  // namespace reprise::driver
