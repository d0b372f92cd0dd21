#include "cli/output/value_tree.hpp"

#include <string>

namespace reprise::cli {
namespace {

constexpr std::size_t kItemsMax = 64;
constexpr std::size_t kInlineMax = 72;

/// Returns the entries of a dict, of an object's state, or of a dict subclass; null for other
/// values.
const Dict* entries_of(const Value& value) {
  if (const auto* dict = value.as<Dict>()) return dict;
  const auto* object = value.as<Object>();
  if (object == nullptr) return nullptr;
  if (!object->state.empty()) return object->state[0].as<Dict>();
  return object->dict_items.empty() ? nullptr : &object->dict_items;
}

const List* items_of(const Value& value) {
  if (const auto* list = value.as<List>()) return list;
  const auto* tuple = value.as<Tuple>();
  return tuple != nullptr ? &tuple->items : nullptr;
}

void print_entry(std::ostream& out, const std::string& label, const Value& value, int indent,
                 int depth_max) {
  const Dict* entries = entries_of(value);
  const List* items = items_of(value);
  const std::string inline_text = to_string(value);
  const bool nested = (entries != nullptr && !entries->empty()) ||
                      (items != nullptr && inline_text.size() > kInlineMax);
  out << std::string(static_cast<std::size_t>(indent), ' ') << label << ':';
  if (!nested || depth_max == 0) {
    out << ' ' << inline_text << '\n';
    return;
  }
  const auto* object = value.as<Object>();
  out << (object != nullptr ? " " + object->type.name : "") << '\n';
  print_tree(out, value, indent + 2, depth_max - 1);
}

}  // namespace

void print_tree(std::ostream& out, const Value& value, int indent, int depth_max) {
  const std::string space(static_cast<std::size_t>(indent), ' ');
  std::size_t count = 0;
  if (const Dict* entries = entries_of(value)) {
    for (const auto& [key, entry] : *entries) {
      if (count++ == kItemsMax) break;
      const auto* text = key.as<std::string>();
      print_entry(out, text != nullptr ? *text : to_string(key), entry, indent, depth_max);
    }
    if (entries->size() > kItemsMax) out << space << "... " << entries->size() << " entries\n";
  } else if (const List* items = items_of(value)) {
    for (const auto& item : *items) {
      if (count == kItemsMax) break;
      print_entry(out, "[" + std::to_string(count++) + "]", item, indent, depth_max);
    }
    if (items->size() > kItemsMax) out << space << "... " << items->size() << " items\n";
  } else {
    out << space << value << '\n';
  }
}

}  // namespace reprise::cli
