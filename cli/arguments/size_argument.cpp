#include "cli/arguments/size_argument.hpp"

#include <charconv>
#include <string_view>

#include "reprise/error.hpp"

namespace reprise::cli {

std::uint64_t size_argument(const std::string& option, const std::string& word) {
  std::uint64_t number = 0;
  const char* const end = word.data() + word.size();
  const auto [unit, error] = std::from_chars(word.data(), end, number);
  const std::string_view name(unit, static_cast<std::size_t>(end - unit));
  constexpr std::string_view kUnits[] = {"", "K", "M", "G", "T"};
  std::uint64_t decimal = 1;
  std::uint64_t binary = 1;
  for (const auto letter : kUnits) {
    const bool is_decimal = name == std::string(letter) + "B" || (letter.empty() && name.empty());
    const bool is_binary = !letter.empty() && name == std::string(letter) + "iB";
    const std::uint64_t factor = is_decimal ? decimal : binary;
    if ((is_decimal || is_binary) && error == std::errc{} && number > 0 &&
        number <= (std::uint64_t{1} << 62U) / factor) {
      return number * factor;
    }
    decimal *= 1000;
    binary *= 1024;
  }
  throw Error(Code::kUsage, option + " '" + word + "' is no size such as 5GB or 500MiB");
}

}  // namespace reprise::cli
