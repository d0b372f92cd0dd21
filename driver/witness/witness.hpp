#pragma once
// What one rank of a trainer says of itself in one life: its witness file, read strictly
// (docs/witness.md).

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/geometry/box.hpp"
#include "properties/ruling_code.hpp"

namespace reprise::driver {

struct WitnessBox {
  Box box;
  std::uint64_t digest = 0;

  friend bool operator==(const WitnessBox&, const WitnessBox&) = default;
};

struct WitnessTensor {
  std::string key;
  DType dtype = DType::kFloat32;
  Dims shape;
  std::vector<WitnessBox> boxes;  ///< of this rank; none: it holds no part
  std::int64_t holders = 1;       ///< number of ranks that hold each of its boxes
};

struct WitnessObject {
  std::string key;
  std::string shard;  ///< empty: the same on all ranks
  std::optional<std::uint64_t>
      digest;  ///< nothing: it must be there, and its content is not judged
};

enum class StateMoment : std::uint8_t { kSave, kLoaded, kEnd };
std::string_view name_of(StateMoment moment);

struct WitnessState {
  StateMoment when = StateMoment::kSave;
  std::int64_t step = 0;
  std::vector<WitnessTensor> tensors;
  std::vector<WitnessObject> objects;
  std::size_t line = 0;
};

struct WitnessStep {
  std::int64_t step = 0;
  std::map<std::string, double> metrics;  ///< loss, lr, scale, norm, as far as they are told
  std::vector<std::int64_t> samples;
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
  bool torn = false;                   ///< true if the last line was cut off
  std::vector<std::string> stand_ins;  ///< files that replace parts of the platform
  std::map<std::string, std::string> versions;
};

/// Parses a witness file. Throws reports::ReadError with file and line for anything that the
/// contract does not allow; a last line without an end is left out and noted.
RankWitness parse_witness(const std::string& text, const std::string& file);

/// The elements of one box, as bits.
struct WitnessValues {
  StateMoment when = StateMoment::kSave;
  std::int64_t step = 0;
  std::string key;
  DType dtype = DType::kFloat32;
  Box box;
  std::vector<std::uint64_t> words;  ///< two per element of 16 bytes: low, high
  std::int64_t rank = 0;
};
std::vector<WitnessValues> parse_values(const std::string& text, const std::string& file);

}  // namespace reprise::driver
