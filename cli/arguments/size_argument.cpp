#include "cli/arguments/size_argument.hpp"

#include <charconv>
#include <string_view>

#include "reprise/error.hpp"

namespace reprise::cli {

std::uint64_t size_argument(const std::string& option, const std::string& word) {
  double number = 0;
  const char* const end = word.data() + word.size();
  const auto [unit, error] = std::from_chars(word.data(), end, number, std::chars_format::fixed);
  const std::string_view name(unit, static_cast<std::size_t>(end - unit));
  constexpr std::string_view kUnits[] = {"", "K", "M", "G", "T"};
  constexpr double kMost = 0x1p62;
  double decimal = 1;
  double binary = 1;
  for (const auto letter : kUnits) {
    const bool is_decimal = name == letter || name == std::string(letter) + "B";
    const bool is_binary = !letter.empty() && name == std::string(letter) + "iB";
    const double bytes = number * (is_decimal ? decimal : binary);
    if ((is_decimal || is_binary) && error == std::errc{} && bytes >= 1 && bytes <= kMost) {
      return static_cast<std::uint64_t>(bytes);
    }
    decimal *= 1000;
    binary *= 1024;
  }
  throw Error(Code::kUsage, option + " '" + word + "' is not a size, such as 5GB or 500MiB");
}

}  // namespace reprise::cli
