#include <bit>

#include "core/base/hash.hpp"
#include "reprise/value.hpp"

namespace reprise {
namespace {

template <class... Cases>
struct Overload : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overload(Cases...) -> Overload<Cases...>;

std::uint64_t hash_items(const List& items) {
  std::uint64_t hash = mix64(items.size());
  for (const auto& item : items) hash = mix64(hash, hash_of(item));
  return hash;
}

std::uint64_t hash_dict(const Dict& dict) {
  std::uint64_t sum = mix64(dict.size());
  for (const auto& [key, value] : dict) sum += mix64(hash_of(key), hash_of(value));
  return mix64(sum);
}

std::uint64_t hash_name(const Name& name) {
  return mix64(hash_of(std::string_view(name.module)), hash_of(std::string_view(name.name)));
}

std::uint64_t hash_object(const Object& object) {
  std::uint64_t hash = mix64(hash_name(object.type), static_cast<std::uint64_t>(object.how));
  hash = mix64(hash, hash_items(object.args));
  hash = mix64(hash, hash_items(object.state));
  hash = mix64(hash, hash_items(object.list_items));
  if (!object.keeps_order()) return mix64(hash, hash_dict(object.dict_items));
  for (const auto& [key, value] : object.dict_items) {
    hash = mix64(hash, mix64(hash_of(key), hash_of(value)));
  }
  return hash;
}

std::uint64_t hash_set(const Set& set) {
  std::uint64_t sum = mix64(set.frozen ? 1 : 0);
  for (const auto& item : set.items) sum += mix64(hash_of(item));
  return mix64(sum);
}

std::uint64_t hash_tensor(const TensorValue& tensor) {
  std::uint64_t hash = mix64(static_cast<std::uint64_t>(tensor.dtype), tensor.shape.size());
  for (const auto extent : tensor.shape) hash = mix64(hash, static_cast<std::uint64_t>(extent));
  if (tensor.requires_grad) hash = mix64(hash, 1);
  return mix64(hash, hash_of(ByteSpan(tensor.data)));
}

}  // namespace

std::uint64_t hash_of(const Value& value) {
  const std::uint64_t kind = mix64(value.variant().index());
  const auto content = std::visit(
      Overload{[](NoneType) { return std::uint64_t{0}; }, [](bool v) { return std::uint64_t{v}; },
               [](std::int64_t v) { return static_cast<std::uint64_t>(v); },
               [](const BigInt& v) { return hash_of(ByteSpan(v.digits)); },
               [](double v) { return std::bit_cast<std::uint64_t>(v); },
               [](const std::string& v) { return hash_of(std::string_view(v)); },
               [](const Bytes& v) { return hash_of(ByteSpan(v)); },
               [](const List& v) { return hash_items(v); },
               [](const Tuple& v) { return hash_items(v.items); },
               [](const Set& v) { return hash_set(v); }, [](const Dict& v) { return hash_dict(v); },
               [](const Name& v) { return hash_name(v); },
               [](const Object& v) { return hash_object(v); },
               [](const TensorValue& v) { return hash_tensor(v); }},
      value.variant());
  return mix64(kind, content);
}

}  // namespace reprise
