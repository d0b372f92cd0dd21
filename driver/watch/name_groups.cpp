#include "driver/watch/name_groups.hpp"

#include "core/base/print.hpp"

namespace reprise::driver {
namespace {

constexpr std::size_t kNamesShown = 3;

}  // namespace

std::string kind_of(std::string_view name) { return std::string(name.substr(0, name.find('.'))); }

std::string names_text(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t begin = 0; begin < names.size();) {
    std::size_t end = begin;
    std::vector<std::string> same;
    while (end < names.size() && kind_of(names[end]) == kind_of(names[begin])) {
      same.push_back(names[end++]);
    }
    text += (text.empty() ? "" : ", ") + join_first(same, kNamesShown);
    begin = end;
  }
  return text;
}

}  // namespace reprise::driver
