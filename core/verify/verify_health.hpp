#pragma once
// Judges the numbers of tensors, in the same read in which their checksums are compared. A whole
// checkpoint may hold NaN, weights that nobody initialized, or zeros in place of an expert.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/checkpoint/checkpoint.hpp"
#include "core/checkpoint/chunk_reader.hpp"
#include "core/checkpoint/finding.hpp"
#include "core/geometry/element_stats.hpp"
#include "reprise/device.hpp"
#include "reprise/ports.hpp"

namespace reprise {

/// What each tensor may have at most. More is an error.
struct HealthLimits {
  std::uint64_t nan = 0;
  std::uint64_t infinite = 0;
  std::optional<double> zeros = {};      ///< share of numbers that are zero
  std::optional<double> denormals = {};  ///< share of numbers that are denormal
  std::optional<double> absolute = {};   ///< largest absolute value
  // Compared with an older checkpoint:
  std::optional<double> absolute_growth = {};  ///< factor by which the largest absolute value grew
  std::optional<double> norm_growth = {};      ///< factor by which the norm grew
};

using StatsByKey = std::map<std::string, ElementStats, std::less<>>;

/// Prints a number for messages, such as "1.5e-07".
std::string number_text(double value);

struct HealthReport {
  std::uint64_t tensors = 0;  ///< of floats, that were judged
  std::uint64_t numbers = 0;  ///< of these
  /// Buffers of Megatron's distributed optimizer, which were not judged; a note tells why.
  std::uint64_t buckets = 0;
  Findings findings;
  StatsByKey stats = {};  ///< of the tensors that were judged
  /// Tensors that were compared with an older checkpoint, if there was one to compare with.
  std::optional<std::uint64_t> compared = {};

  bool healthy() const { return count_of(findings, Severity::kError) == 0; }
};

/// Judges one tensor of floats: errors for what exceeds a limit, and warnings if weights are of one
/// value throughout or if one in a hundred is denormal, since training leaves neither. Integers
/// are passed over, and so are tensors without elements; the state of an optimizer may be zero or
/// denormal.
Findings judge_health(const StoredTensor& tensor, const ElementStats& stats,
                      const HealthLimits& limits);

/// Reads a tensor in bounded steps. Throws the errors of TensorReader. `at_step` is called with the
/// number of bytes of each step.
ElementStats stats_of(const ReaderResources& resources, const StoredTensor& tensor,
                      const std::function<void(std::uint64_t)>& at_step = {});

/// Measures tensors while their items are read for another reason.
class HealthMeter {
 public:
  /// Returns a source that reads from `inner` and measures the chunk's elements as they pass, in
  /// order. If they do not pass as a whole, or do not lie together in the host's order, report()
  /// reads the tensor again. Returns `inner` if the item can't be opened.
  std::unique_ptr<ItemSource> measured(Checkpoint& checkpoint, std::unique_ptr<ItemSource> inner,
                                       const StoredTensor& tensor, const StoredChunk& chunk);

  /// Adds what another meter of the same checkpoint measured. Its sources must be gone. Sums depend
  /// on the order in which several are added.
  void add(const HealthMeter& other);

  /// To be called when all sources are gone. Reads again, on all threads, what was not measured as
  /// a whole. A tensor that can't be read is an error. Throws STALE_METADATA if a file was replaced
  /// meanwhile.
  HealthReport report(Checkpoint& checkpoint, Device& device, Tasks& tasks,
                      const HealthLimits& limits);

 private:
  class Passing;

  struct Measured {
    ElementStats stats;
    std::uint64_t elements = 0;
    std::optional<Finding> unread = {};  ///< why it can't be read
  };

  void measure_rest(Checkpoint& checkpoint, Device& device, Tasks& tasks);

  std::map<const StoredTensor*, Measured> measured_;
};

}  // namespace reprise
