#pragma once
// Why and where a scenario did not pass, as fields: the cause first, then what follows from it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reports/words.hpp"

namespace reprise::reports {

/// A finding that follows from the cause, with all ranks of a life that have it.
struct Consequence {
  std::size_t life = 0;                  ///< index of the life in ScenarioResult::lives
  std::vector<std::int32_t> ranks = {};  ///< empty if the finding concerns the whole life
  std::string code = {};                 ///< empty if the finding is a first difference
  std::string text = {};
};

/// A box of a tensor, and the ranks that hold it.
struct PlacedBox {
  std::vector<std::int64_t> offset = {};
  std::vector<std::int64_t> extent = {};
  std::vector<std::int32_t> ranks = {};  ///< sorted; several ranks hold copies
};

/// Describes how a tensor is cut over the ranks of one life.
struct TensorCut {
  std::size_t life = 0;  ///< index of the life in ScenarioResult::lives
  std::string layout = {};
  std::vector<PlacedBox> boxes = {};  ///< sorted by offset, without empty boxes
  std::uint64_t boxes_left_out = 0;   ///< number of further boxes, which are not listed
};
inline constexpr std::size_t kPlacedBoxesMax = 64;

/// Describes how the first wrong tensor was cut when it was saved, and how it is cut by the life
/// that loads it.
struct TensorPlacement {
  std::string key = {};
  std::vector<std::int64_t> shape = {};
  std::optional<std::int32_t> rank = {};  ///< rank that has the wrong element
  std::vector<std::int64_t> index = {};   ///< the wrong element; empty if it is not known
  std::optional<TensorCut> saved = {};
  std::optional<TensorCut> loaded = {};  ///< empty if no later life loads the tensor
};

/// A key about which judges found the same on all these ranks.
struct WrongKey {
  std::string key = {};
  std::string code = {};
  std::vector<std::int32_t> ranks = {};  ///< sorted
};

/// All keys about which judges found something in one life.
struct WrongKeys {
  std::size_t life = 0;             ///< index of the life in ScenarioResult::lives
  std::vector<WrongKey> keys = {};  ///< by key in natural order, then by code
  std::uint64_t left_out = 0;       ///< number of further ones, which are not listed
};
inline constexpr std::size_t kWrongKeysMax = 60;

/// Names the kinds of events. A phase, a step of a protocol, a call to the store and a collective
/// take a while; a commit of a checkpoint, a fault, a step that a protocol does not allow and the
/// end of a rank do not.
enum class TimelineKind : std::uint8_t {
  kPhase,
  kStep,
  kStore,
  kCollective,
  kCommit,
  kFault,
  kBroken,
  kEnd
};
/// "phase", "step", "store", "collective", "commit", "fault", "broken" and "end".
Words words_of(TimelineKind kind);

/// Something that ranks of a life did, or that happened to them. Times are virtual, from the begin
/// of the life.
struct TimelineEvent {
  TimelineKind kind = TimelineKind::kPhase;
  std::string name = {};    ///< of the phase, the step, the calls or the fault; how a rank ended
  std::string detail = {};  ///< a group, a path, or why
  struct Part {
    std::int32_t rank = 0;
    std::uint64_t begin_ns = 0;  ///< when the rank began, or came to the collective
  };
  std::vector<Part> ranks = {};  ///< several only for a collective
  std::uint64_t end_ns = 0;
  std::vector<std::int32_t> missing = {};  ///< ranks for which a collective waited in vain
  bool cut = false;                        ///< true if it did not end by itself
};

struct TimelineRank {
  std::int32_t rank = 0;
  std::string place = {};  ///< its place in the layout, such as "tp1 pp1"
};

/// The end of a life, for a space-time diagram.
struct Timeline {
  std::size_t life = 0;
  std::vector<TimelineRank> ranks = {};  ///< by number
  std::uint64_t ranks_left_out = 0;
  std::vector<TimelineEvent> events = {};  ///< by their ends
  std::uint64_t events_left_out = 0;       ///< number of earlier ones
};

/// Fields that are not known are empty. `key`, `index` and the values describe one element: the
/// first difference, if the guilty rank has one. Otherwise only `key` may be known.
struct Failure {
  std::string cause = {};                 ///< explanation in words; the result has the code
  std::optional<std::size_t> life = {};   ///< index of the life with the cause
  std::string layout = {};                ///< layout of that life
  std::optional<std::int64_t> step = {};  ///< iteration of the job at that time
  std::string phase = {};                 ///< start, load, train, save, end, store or command
  std::optional<std::int32_t> rank = {};  ///< the guilty rank
  std::string coordinates = {};           ///< its place in the layout, such as "tp1 ep0 pp1"
  std::string key = {};
  std::vector<std::int64_t> index = {};
  std::string saved = {};
  std::string loaded = {};
  std::string comes_from = {};  ///< whose value the loaded one really is
  std::vector<Consequence> consequences = {};
  std::uint64_t consequences_left_out = 0;  ///< number of further ones, which are not listed
  /// Lists the keys of the first life, from the one with the cause on, in which judges found
  /// something about a key of a rank. Empty if there is none, and in reports of versions that did
  /// not write it.
  std::optional<WrongKeys> wrong_keys = {};
  /// Empty if no wrong tensor is known, and in reports of versions that did not write it.
  std::optional<TensorPlacement> placement = {};
  std::optional<Timeline> timeline = {};  ///< empty if nobody recorded the life
};

/// A field of a failure, for people.
struct FailureField {
  std::string name;
  std::string text;
};
/// Returns the fields that are known, without the cause: where it failed, the values, and what
/// follows from it.
std::vector<FailureField> fields_of(const Failure& failure);

/// Returns the element of a failure or of a first difference as text, such as "w[0, 7]".
std::string element_text(const std::string& key, const std::vector<std::int64_t>& index);
/// Returns ranks as text, such as "rank 3" or "ranks 0-2, 4". The list must be sorted.
std::string ranks_text(const std::vector<std::int32_t>& ranks);

}  // namespace reprise::reports
