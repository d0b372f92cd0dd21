#include "cli/frame/options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <limits>
#include <string>
#include <string_view>
#include <thread>

namespace reprise::cli {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

/// Checks that a word is a decimal number from `least` to `most`, and writes it without leading
/// zeros. CLI11 itself takes a number that is too large for the largest one that fits, and "010"
/// for 8.
CLI::Validator decimal_from(std::int64_t least, std::int64_t most = kMost) {
  const auto check = [least, most](std::string& word) -> std::string {
    std::int64_t value = 0;
    const char* const end = word.data() + word.size();
    const auto read = std::from_chars(word.data(), end, value);
    const bool fits = read.ec == std::errc{} && read.ptr == end && value >= least && value <= most;
    if (!fits) {
      return "Value " + word + " is not a whole number from " + std::to_string(least) + " to " +
             std::to_string(most);
    }
    word = std::to_string(value);
    return {};
  };
  return {check, "INT"};
}

}  // namespace

Options& Options::positional(std::string& value, const std::string& name, const std::string& help) {
  app_.add_option(name, value, help)->required()->type_name("");
  return *this;
}

Options& Options::positional(std::vector<std::string>& values, const std::string& name,
                             const std::string& help) {
  app_.add_option(name, values, help)->required()->type_name("");
  return *this;
}

Options& Options::optional_positional(std::vector<std::string>& values, const std::string& name,
                                      const std::string& help) {
  app_.add_option(name, values, help)->type_name("");
  return *this;
}

Options& Options::choice(std::string& value, const std::string& name, const std::string& words,
                         const std::string& help) {
  app_.add_option(name, value, help)->required()->type_name(words);
  return *this;
}

Options& Options::flag(bool& value, const std::string& name, const std::string& help) {
  app_.add_flag(name, value, help);
  return *this;
}

Options& Options::text(std::string& value, const std::string& name, const std::string& what,
                       const std::string& help) {
  app_.add_option(name, value, help)->type_name(what);
  return *this;
}

Options& Options::texts(std::vector<std::string>& values, const std::string& name,
                        const std::string& what, const std::string& help) {
  app_.add_option(name, values, help)->type_name(what)->allow_extra_args(false);
  return *this;
}

Options& Options::number(std::int64_t& value, const std::string& name, std::int64_t least,
                         const std::string& help) {
  app_.add_option(name, value, help)->transform(decimal_from(least))->type_name("N");
  return *this;
}

Options& Options::jobs(int& threads) {
  constexpr std::int64_t kJobsMax = 1024;
  threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  app_.add_option("--jobs", threads,
                  "number of threads; it changes nothing that is printed or written (default: the "
                  "processors)")
      ->transform(decimal_from(1, kJobsMax))
      ->type_name("N");
  return *this;
}

}  // namespace reprise::cli
