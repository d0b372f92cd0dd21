#pragma once
// Combines what the ranks of a loading job found for one pair of layouts.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "driver/exhaust/pair_rule.hpp"
#include "driver/exhaust/saved_layout.hpp"
#include "properties/finding.hpp"

namespace reprise::driver {

enum class PairOutcome : std::uint8_t {
  kSame,     ///< everything was compared, and no bit differs
  kRefused,  ///< every rank was refused with the code that the rule requires
  kWrong,
};

struct PairResult {
  PairOutcome outcome = PairOutcome::kWrong;
  std::string code = {};       ///< code of the refusal, or of the first problem
  std::string what = {};       ///< first problem: rank, key and element
  std::uint64_t elements = 0;  ///< elements compared, on all ranks
  std::uint64_t objects = 0;   ///< objects and common states compared, on all ranks
  std::uint64_t left = 0;      ///< stored objects that the rule excludes from the load
};

class PairTally {
 public:
  /// `saved` must outlive the tally.
  PairTally(const SavedLayout& saved, const PairRule& rule, std::int32_t ranks);

  /// Called with a rank's objects and common state as the engine delivered them.
  void delivered(GlobalRank rank, const StateDict& loaded);
  /// Called with the rank's state in model space, after the job took the delivered state. Compares
  /// every element with the saved element.
  void took(GlobalRank rank, const StateDict& model);
  /// Called instead of took() if the load ended with an error.
  void refused(GlobalRank rank, const Error& error);

  /// True if took() or refused() was called for every rank.
  bool complete() const { return ended_ == ranks_; }
  PairResult result() const;

 private:
  void find(FindingCode code, GlobalRank rank, const std::string& key, const std::string& message,
            SourceLine line = SourceLine::here());
  void mark(const StateDict& model);
  void judge_refusals(PairResult& result) const;
  void judge_reach(PairResult& result) const;

  const SavedLayout& saved_;
  PairRule rule_;
  std::int32_t ranks_;
  std::int32_t ended_ = 0;
  std::vector<Error> errors_;             ///< one per refused rank
  std::optional<judged::Finding> wrong_;  ///< the first finding, if any
  std::vector<Bytes> reached_;            ///< by tensor and element: 1 if some rank compared it
  std::vector<bool> objects_;             ///< by stored object: true if some rank compared it
  std::uint64_t elements_ = 0;
  std::uint64_t values_ = 0;
};

}  // namespace reprise::driver
