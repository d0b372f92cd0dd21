#include "core/state/garbled_text.hpp"

#include <optional>

#include "core/base/utf8.hpp"
#include "reprise/error.hpp"

namespace reprise {
namespace {

/// A text that is not UTF-8, and its path within a value, such as `['args'][0]`.
struct GarbledText {
  std::string path;
  const std::string& text;
};
using Garbled = std::optional<GarbledText>;

Garbled garbled_in(const Value& value);

Garbled garbled_itself(const std::string& text) {
  if (is_utf8(text)) return {};
  return GarbledText{"", text};
}

Garbled garbled_in(const Name& name) {
  const auto module = garbled_itself(name.module);
  return module ? module : garbled_itself(name.name);
}

/// Puts the step to a part of a value before the path within that part.
Garbled reached_by(const std::string& step, Garbled found) {
  found->path.insert(0, step);
  return found;
}

Garbled garbled_in(const List& items) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (const auto found = garbled_in(items[i])) {
      return reached_by("[" + std::to_string(i) + "]", found);
    }
  }
  return {};
}

Garbled garbled_in(const Dict& dict) {
  for (const auto& [key, value] : dict) {
    if (const auto found = garbled_in(key)) return reached_by(".keys()", found);
    if (const auto found = garbled_in(value)) return reached_by("[" + to_string(key) + "]", found);
  }
  return {};
}

Garbled garbled_in(const Object& object) {
  if (auto found = garbled_in(object.type)) return found;
  if (const auto found = garbled_in(object.args)) return reached_by(".args", found);
  if (auto found = garbled_in(object.list_items)) return found;
  if (!object.state.empty()) {
    if (auto found = garbled_in(object.state.front())) return found;
  }
  return garbled_in(object.dict_items);
}

Garbled garbled_in(const Value& value) {
  if (const auto* text = value.as<std::string>()) return garbled_itself(*text);
  if (const auto* list = value.as<List>()) return garbled_in(*list);
  if (const auto* tuple = value.as<Tuple>()) return garbled_in(tuple->items);
  if (const auto* set = value.as<Set>()) return garbled_in(set->items);
  if (const auto* dict = value.as<Dict>()) return garbled_in(*dict);
  if (const auto* name = value.as<Name>()) return garbled_in(*name);
  if (const auto* object = value.as<Object>()) return garbled_in(*object);
  return {};
}

void require_utf8(const Value& value, std::string_view what, const ErrorPlace& place) {
  const auto found = garbled_in(value);
  if (!found) return;
  throw Error(Code::kUnsupported,
              std::string(what) + " has a string that is not UTF-8, which no pickle can hold: " +
                  (found->path.empty() ? "" : found->path + " is ") + to_string(found->text),
              place);
}

void require_key(const std::string& key) {
  if (is_utf8(key)) return;
  throw Error(Code::kUnsupported, "the key is not UTF-8, so no pickle can hold it", {.key = key});
}

}  // namespace

void require_utf8(const Value& value, std::string_view what) { require_utf8(value, what, {}); }

void require_utf8(const StateDict& state) {
  for (const auto& leaf : state.tensors) require_key(leaf.key);
  for (const auto& leaf : state.objects) {
    require_key(leaf.key);
    require_utf8(leaf.value, "the object", {.key = leaf.key});
  }
  require_utf8(state.common, "the common state");
}

}  // namespace reprise
