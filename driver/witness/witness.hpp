#pragma once
// Reads a witness file: what one rank of a trainer reports about itself during one life. Anything
// that docs/trainers.md does not allow is an error.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/geometry/box.hpp"
#include "properties/finding_code.hpp"

namespace reprise::driver {

/// The metrics of a step. All of them are judged.
inline constexpr std::array<const char*, 4> kWitnessMetrics = {"loss", "lr", "scale", "norm"};

struct WitnessBox {
  Box box;
  std::uint64_t digest = 0;

  friend bool operator==(const WitnessBox&, const WitnessBox&) = default;
};

struct WitnessTensor {
  std::string key;
  DType dtype = DType::kFloat32;
  Dims shape;
  std::vector<WitnessBox> boxes;  ///< boxes of this rank; empty if it has none
  std::int64_t holders = 1;       ///< number of ranks that have a copy of each of these boxes
  /// Boxes that belong to no rank, such as the padding of a bucket. Their content is not judged.
  std::vector<Box> blank = {};
  bool per_rank = false;  ///< true if it belongs to a rank's place: another layout may lack it
};

struct WitnessObject {
  std::string key;
  std::string shard;                    ///< empty if the object is the same on all ranks
  std::optional<std::uint64_t> digest;  ///< if empty, only the object's presence is judged
  bool stored = true;      ///< false if the checkpoint has no separate key for this object
  bool per_rank = false;   ///< true if it belongs to a rank's place: another layout may lack it
  std::string value = {};  ///< its content in words, if it is short
};

enum class StateMoment : std::uint8_t { kSave, kLoaded, kEnd };
std::string_view name_of(StateMoment moment);

struct WitnessState {
  StateMoment when = StateMoment::kSave;
  std::int64_t step = 0;
  std::vector<WitnessTensor> tensors;
  std::vector<WitnessObject> objects;
};

struct WitnessStep {
  std::int64_t step = 0;
  std::map<std::string, double> metrics;  ///< loss, lr, scale, norm; some may be missing
  std::vector<std::int64_t> samples;
  std::size_t states_before = 0;  ///< number of states that the rank had described by then
};

struct WitnessPhase {
  std::string name;
  bool begins = true;
  std::optional<std::int64_t> step;
};

struct RankWitness {
  std::string file;
  std::int64_t life = 0;
  std::int64_t rank = 0;
  std::int64_t world = 0;
  std::map<std::string, std::int64_t> layout;
  std::vector<WitnessStep> steps;
  std::vector<WitnessPhase> phases;
  std::vector<WitnessState> states;
  std::optional<std::int64_t> exit;  ///< code of a planned exit
  std::string exit_why;
  bool done = false;
  bool torn = false;  ///< true if the last line was cut off
  /// Scripts, such as without_cuda.py, that stand in for missing hardware.
  std::vector<std::string> stand_ins;
  std::map<std::string, std::string> versions;
  std::optional<std::int64_t> seed;
};

/// Parses a witness file. Throws reports::ReadError with file and line for anything that
/// docs/trainers.md does not allow. A last line without a newline is dropped, and `torn` is set.
RankWitness parse_witness(const std::string& text, const std::string& file);

/// The elements of one box, as bits.
struct WitnessValues {
  StateMoment when = StateMoment::kSave;
  std::int64_t step = 0;
  std::string key;
  DType dtype = DType::kFloat32;
  Box box;
  std::vector<std::uint64_t> words;  ///< one per element; two if it has 16 bytes: low, high
  std::int64_t rank = 0;
};
std::vector<WitnessValues> parse_values(const std::string& text, const std::string& file);

}  // namespace reprise::driver
