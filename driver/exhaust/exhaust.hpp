#pragma once
// Loads every checkpoint of a set of layouts under every layout of that set.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "driver/exhaust/layout_space.hpp"
#include "driver/exhaust/pair_tally.hpp"
#include "driver/exhaust/subject.hpp"
#include "reports/report.hpp"

namespace reprise::driver {

struct ExhaustRequest {
  std::int32_t world_max = 8;
  DpCuts cuts = DpCuts::kShards;
  Subject subject = {};
  std::string mutant = {};  ///< historical defect that is active in all saves and loads
  /// Number of this part of the run, from 1 to `parts`. Each part saves under all layouts, but
  /// loads only under every `parts`-th layout.
  std::size_t part = 1;
  std::size_t parts = 1;
  std::size_t jobs = 1;      ///< number of threads
  bool until_wrong = false;  ///< if true, no further save or load starts once a pair is wrong
  /// Called before each save and load. If it returns true, no further save or load starts.
  std::function<bool()> interrupted = [] { return false; };
  /// Called after each save and load, by one thread at a time.
  std::function<void(const std::string& what, std::uint64_t done, std::uint64_t total)> progress =
      [](const std::string&, std::uint64_t, std::uint64_t) {};
};

/// A save that failed, or a pair of layouts for which the load gave a wrong result.
struct ExhaustFailure {
  std::size_t saved = 0;    ///< index of the saving layout in layouts_up_to()
  std::size_t loading = 0;  ///< index of the loading layout
  std::string pair;         ///< such as "tp2 dp2 -> tp4"
  std::string code;
  std::string what;  ///< description of the problem: rank, key and element

  friend bool operator<(const ExhaustFailure& a, const ExhaustFailure& b) {
    return std::pair(a.loading, a.saved) < std::pair(b.loading, b.saved);
  }
};

struct ExhaustResult {
  std::uint64_t layouts = 0;
  std::uint64_t tensors = 0;        ///< tensors of the model with its optimizer
  std::uint64_t objects_least = 0;  ///< least number of objects in a checkpoint
  std::uint64_t planned = 0;        ///< pairs of this part
  std::uint64_t same = 0;
  std::map<std::string, std::uint64_t> refused;  ///< correctly refused pairs, by error code
  std::uint64_t wrong = 0;
  std::uint64_t elements = 0;  ///< elements compared, on all ranks of all pairs
  std::uint64_t objects = 0;   ///< objects and common states compared
  std::uint64_t left = 0;      ///< stored objects that the rule excludes from the load
  std::uint64_t saved_bytes = 0;
  double save_seconds = 0;
  double seconds = 0;
  bool interrupted = false;
  bool unasked = false;  ///< true if a mutant was active but its functions were never called
  std::vector<ExhaustFailure> failures;  ///< at most kFailuresKept, in the order of the layouts

  static constexpr std::size_t kFailuresKept = 10;

  std::uint64_t refusals() const;
  /// Returns the number of pairs that loaded without a difference or were correctly refused.
  std::uint64_t passed() const { return same + refusals(); }
};

ExhaustResult exhaust(const ExhaustRequest& request);

/// Returns fail if anything was wrong; inconclusive if not all planned pairs passed or the mutant
/// was never called; otherwise pass.
reports::Verdict verdict_of(const ExhaustResult& result);

/// Converts the result of one part to its form in a report.
reports::Exhaustive reported(const ExhaustRequest& request, const ExhaustResult& result);

}  // namespace reprise::driver
