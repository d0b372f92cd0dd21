#pragma once
// A law is one sentence that must hold for every case that a generator draws.

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/detail/Results.h>

#include <functional>
#include <iostream>
#include <optional>
#include <string>

#include "core/base/hash.hpp"
#include "tests/contracts/property_seed.hpp"

namespace reprise::laws {

/// Multiplies the number of cases of every law; for runs at night.
inline constexpr const char* kFactorVariable = "REPRISE_LAW_FACTOR";

struct Law {
  std::string sentence;
  std::uint64_t cases = 100;
};

/// What a check of a law found.
struct Checked {
  int cases = 0;
  /// The smallest case that breaks the law, as text; empty if the law held.
  std::string counterexample;
};

/// Draws cases until one breaks the law, and shrinks that one. `holds` draws with `*gen` and
/// asserts with RC_ASSERT. Prints the sentence, the number of cases, the seed and the distribution.
inline Checked check(const Law& law, const std::function<void()>& holds, std::uint64_t seed) {
  rc::detail::TestParams params;
  // The hash of the sentence gives each law cases of its own.
  params.seed = mix64(seed, hash_of(law.sentence));
  params.maxSuccess =
      static_cast<int>(law.cases * contracts::number_from_environment(kFactorVariable, 1));
  const auto result =
      rc::detail::checkTestable(holds, rc::detail::TestMetadata{law.sentence, ""}, params);
  std::cout << "law: " << law.sentence << " (seed " << seed
            << "; the same cases again: " << contracts::kSeedVariable << "=" << seed << ")\n";
  rc::detail::printResultMessage(result, std::cout);
  std::cout << '\n';
  Checked checked;
  if (result.is<rc::detail::SuccessResult>()) {
    checked.cases = result.get<rc::detail::SuccessResult>().numSuccess;
    return checked;
  }
  std::ostringstream text;
  rc::detail::printResultMessage(result, text);
  checked.counterexample = text.str();
  return checked;
}

inline void expect_law(const Law& law, const std::function<void()>& holds) {
  const Checked checked = check(law, holds, contracts::seed_of_run());
  EXPECT_TRUE(checked.counterexample.empty()) << law.sentence << "\n" << checked.counterexample;
  EXPECT_GT(checked.cases, 0) << law.sentence;
}

/// Expects that a planted fault breaks the law. Returns the smallest counterexample. The seed is
/// always the same: with a few in a thousand, shrinking ends before the smallest case.
inline std::string expect_broken(Law law, const std::function<void()>& holds) {
  law.sentence += " [with a planted fault]";
  constexpr std::uint64_t kSeed = 1;
  const Checked checked = check(law, holds, kSeed);
  EXPECT_FALSE(checked.counterexample.empty()) << law.sentence << " was not noticed";
  return checked.counterexample;
}

}  // namespace reprise::laws
