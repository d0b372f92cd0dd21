#include "driver/lanes/rank_arguments.hpp"

namespace reprise::driver {

std::string record_file(const std::string& records, std::int32_t rank) {
  return records + "/rank" + std::to_string(rank) + ".json";
}

}  // namespace reprise::driver
