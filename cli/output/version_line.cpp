#include "cli/output/version_line.hpp"

#include <fmt/format.h>

#include "driver/record/build_info.hpp"

namespace reprise::cli {

std::string version_line() {
  const BuildInfo info = build_info();
  return fmt::format("reprise {} ({}{}, {})", info.version, info.commit.substr(0, 12),
                     info.dirty ? "+" : "", info.build);
}

}  // namespace reprise::cli
