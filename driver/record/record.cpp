#include "driver/record/record.hpp"

#include <array>

namespace reprise::driver {

reports::Words words_of(Ending) {
  static constexpr std::array<std::string_view, 5> kWords = {"returned", "failed", "defect", "hung",
                                                             "lost"};
  return {"an ending", "endings", kWords};
}

bool is_logged(const LifeRecord& life, std::string_view text) {
  for (const auto& rank : life.ranks) {
    for (const auto& line : rank.log) {
      if (line.find(text) != std::string::npos) return true;
    }
  }
  return false;
}

}  // namespace reprise::driver
