#include "core/state/value_identity.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/hash.hpp"

namespace reprise {
namespace {

template <class T>
void add(std::string& head, T value) {
  head.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void add_text(std::string& head, std::string_view text) {
  add(head, text.size());
  head += text;
}

void add_name(std::string& head, const Name& name) {
  add_text(head, name.module);
  add_text(head, name.name);
}

}  // namespace

bool ValueIdentity::Node::operator<(const Node& other) const {
  if (hash != other.hash) return hash < other.hash;
  if (head != other.head) return head < other.head;
  if (body.size() != other.body.size()) return body.size() < other.body.size();
  return !body.empty() && std::memcmp(body.data(), other.body.data(), body.size()) < 0;
}

ValueIdentity::Number ValueIdentity::of(const Value& value) {
  Node node = node_of(value);  // node_of() also numbers the children
  node.hash = mix64(hash_of(std::string_view(node.head)), hash_of(node.body));
  const auto next = static_cast<Number>(nodes_.size());
  const Number number = nodes_.try_emplace(std::move(node), next).first->second;
  numbers_[&value] = number;
  return number;
}

void ValueIdentity::add_list(std::string& head, const List& items) {
  add(head, items.size());
  for (const Value& item : items) add(head, of(item));
}

void ValueIdentity::add_set(std::string& head, const Set& set) {
  std::vector<Number> numbers;
  for (const Value& item : set.items) numbers.push_back(of(item));
  std::sort(numbers.begin(), numbers.end());
  add(head, set.frozen);
  for (const Number number : numbers) add(head, number);
}

void ValueIdentity::add_dict(std::string& head, const Dict& dict, Order order) {
  std::vector<std::pair<Number, Number>> entries;
  for (const auto& [key, value] : dict) entries.emplace_back(of(key), of(value));
  if (order == Order::kDoesNot) std::sort(entries.begin(), entries.end());
  add(head, entries.size());
  for (const auto& [key, value] : entries) {
    add(head, key);
    add(head, value);
  }
}

void ValueIdentity::add_object(std::string& head, const Object& object) {
  add_name(head, object.type);
  add(head, object.how);
  add_list(head, object.args);
  add_list(head, object.state);
  add_list(head, object.list_items);
  add_dict(head, object.dict_items, object.keeps_order() ? Order::kCounts : Order::kDoesNot);
}

ValueIdentity::Node ValueIdentity::node_of(const Value& value) {
  Node node;
  std::string& head = node.head;
  add(head, static_cast<std::uint8_t>(value.variant().index()));
  std::visit(
      [&](const auto& content) {
        using T = std::decay_t<decltype(content)>;
        if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, std::int64_t>) {
          add(head, content);
        } else if constexpr (std::is_same_v<T, double>) {
          add(head, std::bit_cast<std::uint64_t>(content));
        } else if constexpr (std::is_same_v<T, BigInt>) {
          node.body = content.digits;
        } else if constexpr (std::is_same_v<T, std::string>) {
          node.body = as_bytes(content);
        } else if constexpr (std::is_same_v<T, Bytes>) {
          node.body = content;
        } else if constexpr (std::is_same_v<T, List>) {
          add_list(head, content);
        } else if constexpr (std::is_same_v<T, Tuple>) {
          add_list(head, content.items);
        } else if constexpr (std::is_same_v<T, Set>) {
          add_set(head, content);
        } else if constexpr (std::is_same_v<T, Dict>) {
          add_dict(head, content, Order::kDoesNot);
        } else if constexpr (std::is_same_v<T, Name>) {
          add_name(head, content);
        } else if constexpr (std::is_same_v<T, Object>) {
          add_object(head, content);
        } else if constexpr (std::is_same_v<T, TensorValue>) {
          add(head, content.dtype);
          add(head, content.requires_grad);
          for (const std::int64_t extent : content.shape) add(head, extent);
          node.body = content.data;
        }
      },
      value.variant());
  return node;
}

}  // namespace reprise
