#include "core/format/pickle/python_dict.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/bytes.hpp"

namespace reprise {
namespace {

template <class T>
requires std::is_arithmetic_v<T>
void add(std::string& form, char kind, T number) {
  form += kind;
  form.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void add(std::string& form, char kind, std::string_view text) {
  add(form, kind, text.size());
  form += text;
}

bool add_float(std::string& form, double number) {
  constexpr double kBound = 9223372036854775808.0;  // 2^63
  if (std::isnan(number)) return false;             // NaN is not equal to anything
  const bool whole = number == std::trunc(number) && number >= -kBound && number < kBound;
  if (whole) {
    add(form, 'i', static_cast<std::int64_t>(number));
  } else {
    add(form, 'f', number);
  }
  return true;
}

bool add_set(std::string& form, const Set& set);

/// Appends to `form` a text that identifies the key; equal keys have the same text. Returns false
/// if the key is distinct from every other key.
bool add_form(std::string& form, const Value& key) {
  if (key.is_none()) {
    form += 'n';
  } else if (const auto* truth = key.as<bool>()) {
    add(form, 'i', std::int64_t{*truth});
  } else if (const auto* integer = key.as<std::int64_t>()) {
    add(form, 'i', *integer);
  } else if (const auto* number = key.as<double>()) {
    return add_float(form, *number);
  } else if (const auto* large = key.as<BigInt>()) {
    add(form, 'l', as_text(large->digits));
  } else if (const auto* text = key.as<std::string>()) {
    add(form, 's', *text);
  } else if (const auto* bytes = key.as<Bytes>()) {
    add(form, 'b', as_text(*bytes));
  } else if (const auto* name = key.as<Name>()) {
    add(form, 'm', name->module);
    add(form, 'c', name->name);
  } else if (const auto* tuple = key.as<Tuple>()) {
    add(form, 't', tuple->items.size());
    for (const Value& item : tuple->items) {
      if (!add_form(form, item)) return false;
    }
  } else if (const auto* set = key.as<Set>(); set != nullptr && set->frozen) {
    return add_set(form, *set);
  } else {
    return false;
  }
  return true;
}

/// Appends to `form` a text that identifies the set; it does not depend on the order of the items.
/// Returns false if add_form() returns false for an item.
bool add_set(std::string& form, const Set& set) {
  std::vector<std::string> items(set.items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!add_form(items[i], set.items[i])) return false;
  }
  std::sort(items.begin(), items.end());
  add(form, 'z', items.size());
  for (const std::string& item : items) form += item;
  return true;
}

}  // namespace

void PythonDict::set(Value key, Value value) {
  std::string form;
  if (add_form(form, key)) {
    const auto [place, fresh] = places_.try_emplace(std::move(form), entries_.size());
    if (!fresh) {
      entries_[place->second].second = std::move(value);
      return;
    }
  }
  entries_.emplace_back(std::move(key), std::move(value));
}

}  // namespace reprise
