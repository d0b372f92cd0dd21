#pragma once
// What a verdict rests on: the first thing that was found wrong, or nothing.

#include <cstdint>
#include <optional>
#include <string>

#include "scenarios/driver/record.hpp"

namespace reprise::driver {

struct Judgement {
  reports::Verdict verdict = reports::Verdict::kPass;
  std::optional<Code> code = {};  ///< of what is wrong
  std::string reason = {};
  std::optional<std::size_t> life = {};   ///< in which it was found; nothing: in all together
  std::optional<std::int32_t> rank = {};  ///< that it is about
};

Judgement fail(Code code, std::string reason);

/// Messages of errors and rulings begin with their code, which the finding already has.
std::string without_code(const std::string& text, Code code);

/// "rank 3"
std::string rank_text(const RankRecord& rank);

}  // namespace reprise::driver
