#include "reports/binder.hpp"

#include "core/base/print.hpp"

namespace reprise::reports {

std::string is_none_of(const Words& words, std::string_view word) {
  const std::vector<std::string> all(words.words.begin(), words.words.end());
  return "'" + std::string(word) + "' is not " + std::string(words.one) + "; the " +
         std::string(words.all) + " are: " + join(all, ", ");
}

void Slot::derived_field(const std::string& key, std::uint64_t count, std::string truth) {
  std::uint64_t stated = count;
  field(key, stated);
  if (stated == count) return;
  truth.replace(truth.find("{}"), 2, std::to_string(count));
  from_->at(key).refuse("says " + std::to_string(stated) + ", but " + truth);
}

void Slot::field_in(const std::string& key, std::string& text, const Words& words) {
  field(key, text);
  if (!reading() || std::ranges::find(words.words, text) != words.words.end()) return;
  from_->at(key).refuse(is_none_of(words, text));
}

}  // namespace reprise::reports
