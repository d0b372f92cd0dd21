#include "tests/driver/value_entries.hpp"

#include <bit>
#include <sstream>

#include "core/base/check.hpp"

namespace reprise::driver::test {
namespace {

void add(const Value& value, const Entry& entry, std::vector<Entry>& out) {
  const auto inner = [&](const std::string& step, std::size_t i, const Value& next) {
    Entry deeper{entry.path + '[' + step + ']', entry.at};
    deeper.at.push_back(i);
    add(next, deeper, out);
  };
  const auto all = [&](const List& items) {
    for (std::size_t i = 0; i < items.size(); ++i) inner(std::to_string(i), i, items[i]);
    if (items.empty()) out.push_back(entry);
  };
  if (const auto* dict = value.as<Dict>()) {
    for (std::size_t i = 0; i < dict->size(); ++i) {
      inner(to_string((*dict)[i].first), i, (*dict)[i].second);
    }
    if (dict->empty()) out.push_back(entry);
  } else if (const auto* list = value.as<List>()) {
    all(*list);
  } else if (const auto* tuple = value.as<Tuple>()) {
    all(tuple->items);
  } else {
    out.push_back(entry);
  }
}

Value& at(Value& root, const Entry& entry) {
  Value* value = &root;
  for (const std::size_t i : entry.at) {
    if (auto* dict = value->as<Dict>()) {
      value = &(*dict)[i].second;
    } else if (auto* list = value->as<List>()) {
      value = &(*list)[i];
    } else {
      auto* tuple = value->as<Tuple>();
      CHECK(tuple != nullptr, entry.path);
      value = &tuple->items[i];
    }
  }
  return *value;
}

struct Change {
  Value operator()(NoneType /*none*/) const { return 1; }
  Value operator()(bool value) const { return !value; }
  Value operator()(std::int64_t value) const { return value + 1; }
  Value operator()(double value) const {
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) ^ 1U);
  }
  Value operator()(const std::string& value) const { return value + "x"; }
  Value operator()(const List& items) const {
    List more = items;
    more.emplace_back(1);
    return more;
  }
  Value operator()(const Dict& items) const {
    Dict more = items;
    more.emplace_back("added", 1);
    return more;
  }
  template <class Other>
  Value operator()(const Other& /*other*/) const {
    return "another type";
  }
};

}  // namespace

std::vector<Entry> entries_of(const Value& root) {
  std::vector<Entry> entries;
  add(root, {}, entries);
  return entries;
}

void corrupt(Value& root, const Entry& entry) {
  Value& value = at(root, entry);
  value = std::visit(Change{}, value.variant());
}

}  // namespace reprise::driver::test
