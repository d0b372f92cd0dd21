#pragma once
// Checks for bugs in this program, that is, for broken invariants. Release builds keep the checks.

#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace reprise {

/// Thrown by CHECK. It always means a bug in this program, never bad input (exit code 5).
class CheckFailure : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

namespace detail {

[[noreturn]] void check_failed(std::string_view expression, std::string_view values,
                               std::string_view file, int line);

template <class... Values>
std::string print_values(const Values&... values) {
  std::ostringstream out;
  ((out << ' ' << values), ...);
  return out.str();
}

}  // namespace detail
}  // namespace reprise

/// Throws unless the condition holds: CHECK(condition, values to print...)
#define CHECK(condition, ...)                                                                      \
  (static_cast<bool>(condition)                                                                    \
       ? static_cast<void>(0)                                                                      \
       : ::reprise::detail::check_failed(#condition, ::reprise::detail::print_values(__VA_ARGS__), \
                                         __FILE__, __LINE__))
