#include "driver/trace/event_line.hpp"

#include <cstdint>

#include "core/base/print.hpp"

namespace reprise::driver {
namespace {

/// From here on a number is a hash, unless a file of 4 GiB is written.
constexpr std::uint64_t kHashesFrom = std::uint64_t{1} << 32U;

std::string text_of(std::uint64_t number) {
  return number < kHashesFrom ? std::to_string(number) : "0x" + hex(number);
}

}  // namespace

std::string event_line(const std::string& scenario, std::size_t life,
                       const sim::LoggedEvent& call) {
  std::string line =
      scenario + " life " + std::to_string(life) + " rank " + std::to_string(call.rank.value) + ' ';
  line += call.kind;
  line += " '";
  line += call.where;
  line += '\'';
  for (const std::uint64_t number : call.numbers) line += ' ' + text_of(number);
  return line + '\n';
}

}  // namespace reprise::driver
