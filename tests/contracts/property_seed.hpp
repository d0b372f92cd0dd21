#pragma once
// Returns the seed for a test's random cases. The seed is derived from the commit, unless an
// environment variable sets it.

#include <cstdint>
#include <cstdlib>

#include "driver/record/build_info.hpp"
#include "driver/runs/property.hpp"

namespace reprise::contracts {

inline constexpr const char* kSeedVariable = "REPRISE_PROPERTY_SEED";
inline constexpr const char* kCasesVariable = "REPRISE_PROPERTY_CASES";

inline std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 10);
}

inline std::uint64_t seed_of_run() {
  return number_from_environment(kSeedVariable, driver::seed_of_commit(build_info().commit));
}

inline std::uint64_t cases_of_run(std::uint64_t otherwise) {
  return number_from_environment(kCasesVariable, otherwise);
}

}  // namespace reprise::contracts
