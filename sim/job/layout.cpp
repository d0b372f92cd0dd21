#include "sim/job/layout.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/print.hpp"

namespace reprise::sim {
namespace {

constexpr std::string_view kDefaultOrder = "tp-cp-ep-dp-pp";

std::int32_t Layout::*member_named(std::string_view axis) {
  if (axis == "tp") return &Layout::tp;
  if (axis == "cp") return &Layout::cp;
  if (axis == "ep") return &Layout::ep;
  if (axis == "dp") return &Layout::dp;
  if (axis == "pp") return &Layout::pp;
  const std::string near = closest(axis, kAxisNames);
  throw Error(Code::kUsage, "a layout has no axis '" + std::string(axis) + "'" +
                                (near.empty() ? "." : "; did you mean '" + near + "'?") +
                                " The axes are tp cp ep dp pp, as in 'tp2 dp2'.");
}

std::vector<std::string> names_of(std::string_view order) {
  std::vector<std::string> names;
  while (true) {
    const auto dash = order.find('-');
    names.emplace_back(order.substr(0, dash));
    if (dash == std::string_view::npos) return names;
    order.remove_prefix(dash + 1);
  }
}

[[noreturn]] void mismatch(const std::string& what) { throw Error(Code::kLayoutMismatch, what); }

void check_order(const Layout& layout) {
  const auto names = names_of(layout.order);
  for (const auto& name : names) {
    member_named(name);
    if (std::count(names.begin(), names.end(), name) > 1) {
      mismatch("the order " + layout.order + " names " + name + " twice");
    }
  }
  for (const auto axis : kAxisNames) {
    const bool named = std::find(names.begin(), names.end(), axis) != names.end();
    if (!named && layout.size_of(axis) > 1) {
      mismatch("the order " + layout.order + " leaves out " + std::string(axis) + ", which is " +
               std::to_string(layout.size_of(axis)) + "; put it where it belongs");
    }
  }
}

/// A reader of "tp2", "tp=2", "order dp-tp"; separators are spaces and commas.
class Words {
 public:
  explicit Words(std::string_view text) : text_(text), rest_(text) {}

  bool more() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" ,"), rest_.size()));
    return !rest_.empty();
  }
  std::string_view name() {
    return take([](char c) { return c >= 'a' && c <= 'z'; });
  }
  std::int32_t size(std::string_view axis) {
    skip_equals();
    const auto digits = take([](char c) { return c >= '0' && c <= '9'; });
    std::int32_t size = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
    if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size()) {
      refuse("a number is missing after '" + std::string(axis) + "'");
    }
    return size;
  }
  std::string_view order() {
    skip_equals();
    return take([](char c) { return (c >= 'a' && c <= 'z') || c == '-'; });
  }
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(Code::kUsage, "layout '" + std::string(text_) + "': " + why +
                                  "; write it as 'tp2 dp2' or 'tp2 dp2 order dp-tp'");
  }

 private:
  template <class Accepts>
  std::string_view take(Accepts accepts) {
    const auto end = std::find_if_not(rest_.begin(), rest_.end(), accepts);
    const auto word = rest_.substr(0, static_cast<std::size_t>(end - rest_.begin()));
    rest_.remove_prefix(word.size());
    return word;
  }
  void skip_equals() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" =:"), rest_.size()));
  }

  std::string_view text_;
  std::string_view rest_;
};

}  // namespace

std::int32_t Layout::size_of(std::string_view axis) const { return this->*member_named(axis); }
void Layout::set_size(std::string_view axis, std::int32_t size) {
  this->*member_named(axis) = size;
}

void check(const Layout& layout) {
  std::int64_t ranks = 1;
  for (const auto axis : kAxisNames) {
    const std::int32_t size = layout.size_of(axis);
    if (size < 1) mismatch(std::string(axis) + " is " + std::to_string(size) + "; the least is 1");
    if (axis != "ep") ranks *= size;
    if (ranks > kRanksMax)
      mismatch("a layout of more than " + std::to_string(kRanksMax) + " ranks");
  }
  check_order(layout);
  if (layout.cp * layout.dp % layout.ep != 0) {
    mismatch("ep " + std::to_string(layout.ep) + " does not divide cp x dp = " +
             std::to_string(layout.cp * layout.dp) + "; experts share those ranks");
  }
}

Layout parse_layout(std::string_view text) {
  Layout layout;
  std::vector<std::string_view> seen;
  Words words(text);
  while (words.more()) {
    const auto name = words.name();
    if (name.empty()) words.refuse("an axis name was expected");
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) {
      words.refuse("'" + std::string(name) + "' stands twice");
    }
    seen.push_back(name);
    if (name == "order") {
      layout.order = words.order();
    } else {
      layout.*member_named(name) = words.size(name);
    }
  }
  if (seen.empty()) words.refuse("it is empty");
  check(layout);
  return layout;
}

Mesh dense_mesh(const Layout& layout) {
  check(layout);
  std::vector<Axis> axes;
  auto names = names_of(layout.order);
  names.insert(names.end(), kAxisNames.begin(), kAxisNames.end());
  for (const auto& name : names) {
    const auto known = [&name](const Axis& axis) { return axis.name == name; };
    if (name == "ep" || std::any_of(axes.begin(), axes.end(), known)) continue;
    axes.push_back({name, layout.size_of(name)});
  }
  return Mesh(axes);
}

std::ostream& operator<<(std::ostream& out, const Layout& layout) {
  bool first = true;
  for (const auto axis : kAxisNames) {
    if (layout.size_of(axis) == 1) continue;
    out << (first ? "" : " ") << axis << layout.size_of(axis);
    first = false;
  }
  if (first) out << "tp1";
  if (layout.order != kDefaultOrder) out << " order " << layout.order;
  return out;
}

std::string to_string(const Layout& layout) {
  std::ostringstream out;
  out << layout;
  return out.str();
}

}  // namespace reprise::sim
