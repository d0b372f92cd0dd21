#pragma once
// Describes each document once. A function bind() lists the fields of a struct; the writer and the
// strict reader both follow it:
//
//   void bind(Slot& slot, Skipped& skipped) {
//     slot.field("scenario", skipped.scenario);
//     slot.field("reason", skipped.reason);
//   }
//
// Texts, flags, numbers, lists, sets, maps by text, enumerations with words, and what may be null
// (std::optional) are known here.

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "reports/document.hpp"
#include "reports/words.hpp"

namespace reprise::reports {

class Slot;

/// Binds a value as its type says.
struct ByType {
  template <class Value>
  void operator()(Slot& slot, Value& value) const;
};

/// A value of a document, to be written or read. What is read must have the right type, or a
/// ReadError says where it stands and what was expected.
class Slot {
 public:
  /// Writes there.
  explicit Slot(nlohmann::json& to) : to_(&to) {}
  /// Reads from there.
  explicit Slot(const JsonField& from) : from_(&from) {}

  bool reading() const { return from_ != nullptr; }
  /// Returns the value that is read. Call it only while reading.
  const JsonField& from() const { return *from_; }
  bool has(const std::string& key) const {
    return reading() ? from_->has(key) : to_->contains(key);
  }

  /// Binds a field, which must be there. If a function is given, it binds the value, or each value
  /// in the list, map or optional.
  template <class Value, class By = ByType>
  void field(const std::string& key, Value& value, By by = {}) {
    if (reading()) {
      bind_at(from_->at(key), value, by);
    } else {
      bind_at((*to_)[key], value, by);
    }
  }
  /// A field that documents of older programs lack. The value then stays as it is.
  template <class Value, class By = ByType>
  void newer_field(const std::string& key, Value& value, By by = {}) {
    if (!reading() || has(key)) field(key, value, by);
  }
  /// A field that is there only if it says something: if the value is not zero, empty or false.
  template <class Value, class By = ByType>
  void rare_field(const std::string& key, Value& value, By by = {}) {
    if (reading() ? has(key) : says_something(value)) field(key, value, by);
  }
  template <class Value, class By = ByType>
  void rare_field(const std::string& key, std::optional<Value>& value, By by = {}) {
    if (reading() && has(key)) value.emplace();
    if (value) field(key, *value, by);
  }
  /// A count that follows from other fields: what is read must be the same. `truth` says what they
  /// make, such as "the parts make {}".
  void derived_field(const std::string& key, std::uint64_t count, std::string truth);
  /// A text that is one of the words.
  void field_in(const std::string& key, std::string& text, const Words& words);

  void bind(std::string& text) { scalar(text, &JsonField::text); }
  void bind(bool& flag) { scalar(flag, &JsonField::flag); }
  void bind(std::int32_t& number) { scalar(number, &JsonField::small_integer); }
  void bind(std::int64_t& number) { scalar(number, &JsonField::integer); }
  void bind(std::uint64_t& count) { scalar(count, &JsonField::count); }
  void bind(double& number) {
    if (reading()) {
      number = from_->number();
    } else {
      *to_ = number_or_word(number);
    }
  }

  template <Worded Value>
  void bind(Value& value) {
    std::string word = reading() ? "" : name_of(value);
    bind(word);
    if (reading()) take(word, *from_, value);
  }
  template <class Value, class By = ByType>
  void bind(std::optional<Value>& value, By by = {}) {
    if (reading() && !from_->is_null()) value.emplace();
    if (value) by(*this, *value);
  }
  template <class Item, class By = ByType>
  void bind(std::vector<Item>& items, By by = {}) {
    if (reading()) {
      for (const auto& from : from_->items()) bind_at(from, items.emplace_back(), by);
    } else {
      *to_ = nlohmann::json::array();
      for (auto& item : items) bind_at(to_->emplace_back(), item, by);
    }
  }
  template <class Item>
  void bind(std::set<Item>& items) {
    std::vector<Item> list(items.begin(), items.end());
    bind(list);
    if (reading()) items.insert(list.begin(), list.end());
  }
  template <class Key, class Value, class By = ByType>
  void bind(std::map<Key, Value>& values, By by = {}) {
    if (reading()) {
      for (const auto& [word, from] : from_->entries()) {
        Key key;
        take(word, from, key);
        bind_at(from, values[key], by);
      }
    } else {
      *to_ = nlohmann::json::object();
      for (auto& [key, value] : values) bind_at((*to_)[word_of(key)], value, by);
    }
  }

 private:
  template <class Value>
  void scalar(Value& value, Value (JsonField::*read)() const) {
    if (reading()) {
      value = (from_->*read)();
    } else {
      *to_ = value;
    }
  }
  template <class Value>
  static bool says_something(const Value& value) {
    if constexpr (requires { value.empty(); }) {
      return !value.empty();
    } else {
      return value != Value{};
    }
  }
  template <class Place, class Value, class By>
  static void bind_at(Place&& place, Value& value, By by) {
    Slot slot(place);
    if constexpr (std::is_invocable_v<By, Slot&, Value&>) {
      by(slot, value);
    } else {
      slot.bind(value, by);
    }
  }
  static const std::string& word_of(const std::string& key) { return key; }
  static std::string word_of(Worded auto key) { return name_of(key); }
  static void take(const std::string& word, const JsonField&, std::string& key) { key = word; }
  static void take(const std::string& word, const JsonField& from, Worded auto& value) {
    const auto read = named<std::remove_reference_t<decltype(value)>>(word);
    if (!read) from.refuse(is_none_of(words_of(value), word));
    value = *read;
  }

  const JsonField* from_ = nullptr;
  nlohmann::json* to_ = nullptr;
};

template <class Value>
void ByType::operator()(Slot& slot, Value& value) const {
  if constexpr (requires { slot.bind(value); }) {
    slot.bind(value);
  } else {
    bind(slot, value);
  }
}

template <class Value>
nlohmann::json written(const Value& value) {
  nlohmann::json to;
  Slot slot(to);
  ByType{}(slot, const_cast<Value&>(value));  // a slot that is written to changes no value
  return to;
}

/// Throws ReadError.
template <class Value>
Value read(const JsonField& from) {
  Value value{};
  Slot slot(from);
  ByType{}(slot, value);
  return value;
}

}  // namespace reprise::reports
