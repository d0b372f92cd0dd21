#pragma once
// Our mistake: a broken invariant of this program. Kept in release builds.

#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace reprise {

/// Thrown by CHECK; reaching it is a defect of this program, never of its input (exit code 5).
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

/// CHECK(condition, values to print...)
#define CHECK(condition, ...)                                                                      \
  (static_cast<bool>(condition)                                                                    \
       ? static_cast<void>(0)                                                                      \
       : ::reprise::detail::check_failed(#condition, ::reprise::detail::print_values(__VA_ARGS__), \
                                         __FILE__, __LINE__))
