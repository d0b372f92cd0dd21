#include "cli/arguments/part_of_work.hpp"

#include <charconv>

#include "reprise/error.hpp"

namespace reprise::cli {
namespace {

/// Upper limit on the number of parts. A larger number is probably a typing error and is rejected.
constexpr std::size_t kPartsOfWorkMax = 100'000;

}  // namespace

PartOfWork part_of_work(const std::string& text) {
  if (text.empty()) return {};
  PartOfWork part;
  const char* const end = text.data() + text.size();
  const auto number = std::from_chars(text.data(), end, part.number);
  bool good = number.ec == std::errc() && number.ptr != end && *number.ptr == '/';
  if (good) {
    const auto of = std::from_chars(number.ptr + 1, end, part.of);
    good = of.ec == std::errc() && of.ptr == end;
  }
  if (good && part.number >= 1 && part.number <= part.of && part.of <= kPartsOfWorkMax) return part;
  throw Error(Code::kUsage, "--shard is '" + text +
                                "'; write it as I/N, such as 2/4 for the second of four parts");
}

}  // namespace reprise::cli
