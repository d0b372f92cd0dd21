#include "core/base/check.hpp"

namespace reprise::detail {

void check_failed(std::string_view expression, std::string_view values, std::string_view file,
                  int line) {
  throw CheckFailure("CHECK failed: " + std::string(expression) +
                     (values.empty() ? "" : " with" + std::string(values)) + " at " +
                     std::string(file) + ":" + std::to_string(line));
}

}  // namespace reprise::detail
