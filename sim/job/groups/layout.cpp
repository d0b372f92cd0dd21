#include "sim/job/groups/layout.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>
#include <vector>

#include "core/base/print.hpp"
#include "reprise/error.hpp"

namespace reprise::sim {
namespace {

LayoutMember member_named(std::string_view axis) {
  for (const auto& field : kLayoutFields) {
    if (field.name == axis) return field.size;
  }
  const std::string near = closest(axis, kAxisNames);
  throw Error(Code::kUsage, "a layout has no axis '" + std::string(axis) + "'" +
                                (near.empty() ? "." : "; did you mean '" + near + "'?") +
                                " The axes are " + join(kAxisNames, " ") + ", and " +
                                join(kFurtherSizes, ", ") + "; as in 'tp2 dp2'.");
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
    if (std::find(kAxisNames.begin(), kAxisNames.end(), name) == kAxisNames.end()) {
      const std::string near = closest(name, kAxisNames);
      throw Error(Code::kUsage, "the order " + layout.order + " names '" + name +
                                    "', which is not one of its axes" +
                                    (near.empty() ? "" : "; did you mean '" + near + "'?") +
                                    " Its axes are " + join(kAxisNames, " ") + ".");
    }
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

bool is_shared_by_experts(const LayoutField& field) {
  return field.takes_ranks() && field.cuts != Cuts::kAll;
}

std::vector<std::string_view> shared_by_experts() {
  std::vector<std::string_view> axes;
  for (const auto& field : kLayoutFields) {
    if (is_shared_by_experts(field)) axes.push_back(field.name);
  }
  return axes;
}

void check_experts(const Layout& layout) {
  if (layout.etp < 0) mismatch("etp is " + std::to_string(layout.etp) + "; the least is 1");
  const std::int64_t ranks = layout.expert_ranks();
  const std::int64_t parts = std::int64_t{layout.expert_tp()} * layout.ep;
  if (ranks % parts != 0) {
    mismatch("experts share the ranks of " + join(shared_by_experts(), " x ") + " = " +
             std::to_string(ranks) + ", and etp x ep = " + std::to_string(parts) +
             " does not divide it");
  }
  const std::int32_t copies = layout.dp_replicate;
  if (copies < 1 || layout.dp % copies != 0) {
    mismatch("dp_replicate " + std::to_string(copies) + " does not divide dp " +
             std::to_string(layout.dp));
  }
}

void check_stages(const Layout& layout) {
  if (layout.vpp < 1 || layout.vpp > kRanksMax || (layout.vpp > 1 && layout.pp == 1)) {
    mismatch("vpp is " + std::to_string(layout.vpp) + ", and virtual stages need pp above 1");
  }
  const auto chunks = static_cast<std::size_t>(layout.pp) * static_cast<std::size_t>(layout.vpp);
  if (!layout.stage_layers.empty() && layout.stage_layers.size() != chunks) {
    mismatch("layers are given for " + std::to_string(layout.stage_layers.size()) +
             " stages and pp x vpp is " + std::to_string(chunks));
  }
  for (const auto layers : layout.stage_layers) {
    if (layers < 0) mismatch("a stage of " + std::to_string(layers) + " layers");
  }
}

/// Lists, for each name in a layout's order, the mesh axes that replace this name, fastest first.
using Places = std::vector<std::pair<std::string_view, std::vector<Axis>>>;

Mesh in_order(const Layout& layout, const std::vector<GlobalRank>& ranks, const Places& places) {
  auto names = names_of(layout.order);
  names.insert(names.end(), kAxisNames.begin(), kAxisNames.end());
  std::vector<std::string> seen;
  std::vector<Axis> axes;
  for (const auto& name : names) {
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) continue;
    seen.push_back(name);
    for (const auto& [place, there] : places) {
      if (place == name) axes.insert(axes.end(), there.begin(), there.end());
    }
  }
  return {axes, members_of(layout, ranks)};
}

/// If `copies` is true, returns the axes along which ranks hold copies, otherwise the axes along
/// which ranks hold different parts. Includes only axes with ranks of their own (kOwnRanks).
std::vector<std::string_view> axes_of_ranks(bool copies) {
  std::vector<std::string_view> axes;
  for (const auto& field : kLayoutFields) {
    if (!field.takes_ranks() || field.copies() != copies) continue;
    if (field.name == "dp") {
      axes.insert(axes.end(), {"dp_shard", "dp_replicate"});
    } else {
      axes.push_back(field.name);
    }
  }
  return axes;
}

/// True for an axis that has its own ranks and splits both dense tensors and experts.
bool cuts_all_on_ranks(const LayoutField& field) {
  return field.takes_ranks() && field.cuts == Cuts::kAll;
}

bool spans_ranks(const LayoutField& field) { return field.spread != Spread::kWithinRank; }

/// True if `a` and `b` agree in all sizes that `meant` selects.
template <class Meant>
bool same_sizes(const Layout& a, const Layout& b, Meant meant) {
  return std::all_of(kLayoutFields.begin(), kLayoutFields.end(), [&](const LayoutField& field) {
    return !meant(field) || size_in_effect(a, field) == size_in_effect(b, field);
  });
}

/// Reads the words of a layout, such as "tp2", "tp=2" or "order dp-tp". Spaces and commas separate
/// words.
class Words {
 public:
  explicit Words(std::string_view text) : text_(text), rest_(text) {}

  bool more() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" ,"), rest_.size()));
    return !rest_.empty();
  }
  std::string_view name() {
    return take([](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
  }
  std::int32_t size(std::string_view axis) {
    skip_equals();
    if (rest_.starts_with('-')) refuse("'" + std::string(axis) + "' can't be negative");
    const auto digits = take([](char c) { return c >= '0' && c <= '9'; });
    std::int32_t size = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
    if (error == std::errc::result_out_of_range) {
      refuse("'" + std::string(axis) + "' is too large, " + std::string(digits.substr(0, 40)));
    }
    if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size()) {
      refuse("a number is missing after '" + std::string(axis) + "'");
    }
    return size;
  }
  std::string_view order() {
    skip_equals();
    return take([](char c) { return (c >= 'a' && c <= 'z') || c == '-'; });
  }
  /// Reads "1-3-2".
  std::vector<std::int64_t> numbers() {
    std::vector<std::int64_t> all{size("layers")};
    while (rest_.starts_with('-')) {
      rest_.remove_prefix(1);
      all.push_back(size("layers"));
    }
    return all;
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

std::string Layout::default_order() { return join(kAxisNames, "-"); }

std::int32_t Layout::world_size() const {
  std::int32_t ranks = 1;
  for (const auto& field : kLayoutFields) {
    if (field.takes_ranks()) ranks *= this->*field.size;
  }
  return ranks;
}

std::int32_t Layout::expert_ranks() const {
  std::int32_t ranks = 1;
  for (const auto& field : kLayoutFields) {
    if (is_shared_by_experts(field)) ranks *= this->*field.size;
  }
  return ranks;
}

std::int32_t Layout::size_of(std::string_view axis) const { return this->*member_named(axis); }
void Layout::set_size(std::string_view axis, std::int32_t size) {
  this->*member_named(axis) = size;
}

std::int32_t size_in_effect(const Layout& layout, const LayoutField& field) {
  return field.size == &Layout::etp ? layout.expert_tp() : layout.*field.size;
}

bool same_parts(const Layout& a, const Layout& b) {
  return a.stage_layers == b.stage_layers &&
         same_sizes(a, b, [](const LayoutField& field) { return field.cuts != Cuts::kNothing; });
}

bool same_dense_streams(const Layout& a, const Layout& b, bool by_copy) {
  const auto cuts = [](const LayoutField& field) {
    return spans_ranks(field) && field.cuts_dense();
  };
  return same_sizes(a, b, cuts) && (!by_copy || copies_of_parts(a) == copies_of_parts(b));
}

bool same_expert_streams(const Layout& a, const Layout& b) {
  return same_sizes(
      a, b, [](const LayoutField& field) { return spans_ranks(field) && field.cuts_experts(); });
}

std::int32_t copies_of_parts(const Layout& layout) {
  std::int32_t copies = 1;
  for (const auto& field : kLayoutFields) {
    if (field.copies()) copies *= layout.*field.size;
  }
  return copies;
}

void check(const Layout& layout) {
  std::int64_t ranks = 1;
  for (const auto& field : kLayoutFields) {
    const auto axis = field.name;
    if (std::find(kAxisNames.begin(), kAxisNames.end(), axis) == kAxisNames.end()) continue;
    const std::int32_t size = layout.*field.size;
    if (size < 1) mismatch(std::string(axis) + " is " + std::to_string(size) + "; the least is 1");
    if (size > kRanksMax) mismatch(std::string(axis) + " is " + std::to_string(size));
    if (field.takes_ranks()) ranks *= size;
    if (ranks > kRanksMax)
      mismatch("a layout of more than " + std::to_string(kRanksMax) + " ranks");
  }
  check_order(layout);
  check_experts(layout);
  check_stages(layout);
}

Layout parse_layout(std::string_view text) {
  Layout layout;
  std::vector<std::string_view> seen;
  Words words(text);
  while (words.more()) {
    const auto name = words.name();
    if (name.empty()) words.refuse("an axis name was expected");
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) {
      words.refuse("'" + std::string(name) + "' occurs twice");
    }
    seen.push_back(name);
    if (name == "order") {
      layout.order = words.order();
    } else if (name == "layers") {
      layout.stage_layers = words.numbers();
    } else {
      layout.*member_named(name) = words.size(name);
    }
  }
  if (seen.empty()) words.refuse("it is empty");
  check(layout);
  return layout;
}

Group members_of(const Layout& layout, const std::vector<GlobalRank>& ranks) {
  if (ranks.empty()) return Group::world(layout.world_size());
  if (static_cast<std::int64_t>(ranks.size()) != layout.world_size()) {
    mismatch("layout " + to_string(layout) + " has places for " +
             std::to_string(layout.world_size()) + " ranks and the job has " +
             std::to_string(ranks.size()));
  }
  return Group(ranks);
}

Mesh dense_mesh(const Layout& layout, const std::vector<GlobalRank>& ranks) {
  check(layout);
  const std::int32_t copies = layout.dp_replicate;
  Places places;
  for (const auto& field : kLayoutFields) {
    if (!field.takes_ranks()) continue;
    places.push_back({field.name, {{std::string(field.name), layout.*field.size}}});
    if (field.name != "dp") continue;
    places.back().second = {{"dp_shard", layout.dp / copies}, {"dp_replicate", copies}};
  }
  return in_order(layout, ranks, places);
}

const std::vector<std::string_view>& part_axes() {
  static const auto axes = axes_of_ranks(false);
  return axes;
}
const std::vector<std::string_view>& copy_axes() {
  static const auto axes = axes_of_ranks(true);
  return axes;
}

const std::vector<std::string_view>& expert_part_axes() {
  static const auto axes = [] {
    std::vector<std::string_view> found = {"etp", "ep"};
    for (const auto& field : kLayoutFields) {
      if (cuts_all_on_ranks(field)) found.push_back(field.name);
    }
    return found;
  }();
  return axes;
}

Mesh expert_mesh(const Layout& layout, const std::vector<GlobalRank>& ranks) {
  check(layout);
  const std::int32_t copies = layout.expert_copies();
  Places places = {{"tp", {{"etp", layout.expert_tp()}}},
                   {"ep", {{"ep", layout.ep}}},
                   {"dp", {{"edp_shard", layout.expert_dp() / copies}, {"edp_replicate", copies}}}};
  for (const auto& field : kLayoutFields) {
    if (!cuts_all_on_ranks(field)) continue;
    places.push_back({field.name, {{std::string(field.name), layout.*field.size}}});
  }
  return in_order(layout, ranks, places);
}

std::int32_t stage_of(std::int64_t layer, std::int64_t layers, const Layout& layout) {
  const std::int64_t chunks = std::int64_t{layout.pp} * layout.vpp;
  if (layout.stage_layers.empty() && layer < layers) {
    // Distributes layers evenly: if there is a remainder, each of the first chunks gets one more
    // layer.
    const std::int64_t each = layers / chunks;
    const std::int64_t larger = layers % chunks;
    const std::int64_t in_larger = larger * (each + 1);
    const std::int64_t chunk =
        layer < in_larger ? layer / (each + 1) : larger + (layer - in_larger) / each;
    return static_cast<std::int32_t>(chunk % layout.pp);
  }
  std::int64_t end = layout.stage_layers.empty() ? layers : 0;
  for (std::size_t chunk = 0; chunk < layout.stage_layers.size(); ++chunk) {
    end += layout.stage_layers[chunk];
    if (layer < end) return static_cast<std::int32_t>(chunk) % layout.pp;
  }
  mismatch("the stages of " + to_string(layout) + " take " + std::to_string(end) +
           " layers and the model has " + std::to_string(layers));
}

std::ostream& operator<<(std::ostream& out, const Layout& layout) {
  const char* gap = "";
  const auto size = [&](std::string_view name, std::int32_t usual) {
    if (layout.size_of(name) == usual) return;
    out << gap << name << layout.size_of(name);
    gap = " ";
  };
  const Layout usual;
  for (const auto& field : kLayoutFields) size(field.name, usual.*field.size);
  if (*gap == '\0') out << "tp1";
  if (!layout.stage_layers.empty()) out << " layers " << join(layout.stage_layers, "-");
  if (layout.order != usual.order) out << " order " << layout.order;
  return out;
}

std::string to_string(const Layout& layout) {
  std::ostringstream text;
  text << layout;
  return text.str();
}

}  // namespace reprise::sim
