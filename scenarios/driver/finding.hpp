#pragma once
// What a verdict rests on: the first thing that was found wrong, or nothing.

#include <string>

#include "scenarios/driver/record.hpp"

namespace reprise::driver {

struct Finding {
  reports::Verdict verdict = reports::Verdict::kPass;
  std::string code;
  std::string reason;
};

Finding fail(std::string code, std::string reason);

/// Messages of errors and rulings begin with their code, which the finding already has.
std::string without_code(const std::string& text, const std::string& code);

/// "rank 3"
std::string rank_text(const RankRecord& rank);

}  // namespace reprise::driver
