#include <map>

#include "core/state/value_identity.hpp"
#include "reprise/value.hpp"

namespace reprise {
namespace {

class Differ {
 public:
  using Wanted = std::function<bool(const ValueDifference&)>;

  Differ(std::size_t most, const Wanted& wanted) : most_(most), wanted_(wanted) {}

  std::vector<ValueDifference> between(const Value& left, const Value& right) {
    identity_.of(left);
    identity_.of(right);
    compare("", left, right);
    return std::move(found_);
  }

 private:
  template <class T>
  static bool both(const Value& a, const Value& b) {
    return a.as<T>() != nullptr && b.as<T>() != nullptr;
  }

  bool full() const { return found_.size() >= most_; }

  void add(ValueDifference difference) {
    ++seen_;
    if (full() || (wanted_ && !wanted_(difference))) return;
    found_.push_back(std::move(difference));
  }

  void compare(const std::string& path, const Value& a, const Value& b) {
    if (full() || identity_.known(a) == identity_.known(b)) return;
    const std::uint64_t before = seen_;
    if (both<List>(a, b)) {
      items(path, *a.as<List>(), *b.as<List>());
    } else if (both<Tuple>(a, b)) {
      items(path, a.as<Tuple>()->items, b.as<Tuple>()->items);
    } else if (both<Dict>(a, b)) {
      entries(path, *a.as<Dict>(), *b.as<Dict>());
    } else if (both<Object>(a, b)) {
      object(path, *a.as<Object>(), *b.as<Object>());
    }
    // If the children do not differ, the values themselves do: they differ in kind or in length, or
    // one of the dicts repeats a key.
    if (seen_ == before) add({path, to_string(a), to_string(b)});
  }

  void items(const std::string& path, const List& a, const List& b) {
    if (a.size() != b.size()) return;
    for (std::size_t i = 0; i < a.size() && !full(); ++i) {
      // Equal items are skipped here, before a path is built.
      if (identity_.known(a[i]) == identity_.known(b[i])) continue;
      compare(path + "[" + std::to_string(i) + "]", a[i], b[i]);
    }
  }

  /// Maps the number of each key to the first entry with that key.
  std::map<ValueIdentity::Number, const Value*> by_key(const Dict& dict) const {
    std::map<ValueIdentity::Number, const Value*> index;
    for (const auto& [key, value] : dict) index.try_emplace(identity_.known(key), &value);
    return index;
  }

  void entries(const std::string& path, const Dict& a, const Dict& b) {
    const auto in_a = by_key(a);
    const auto in_b = by_key(b);
    const auto at = [&path](const Value& key) { return path + "[" + to_string(key) + "]"; };
    for (const auto& [key, value] : a) {
      if (full()) return;
      const auto other = in_b.find(identity_.known(key));
      if (other == in_b.end()) {
        add({at(key), to_string(value), "(absent)", true});
      } else if (identity_.known(value) != identity_.known(*other->second)) {
        compare(at(key), value, *other->second);
      }
    }
    for (const auto& [key, value] : b) {
      if (full()) return;
      if (!in_a.contains(identity_.known(key))) {
        add({at(key), "(absent)", to_string(value), true});
      }
    }
  }

  /// Returns the keys that both dicts have, in the order of `dict`.
  List shared_keys(const Dict& dict, const Dict& other) const {
    const auto in_other = by_key(other);
    List keys;
    for (const auto& [key, value] : dict) {
      if (in_other.contains(identity_.known(key))) keys.push_back(key);
    }
    return keys;
  }

  void order(const std::string& path, const Dict& a, const Dict& b) {
    const Value left = shared_keys(a, b);
    const Value right = shared_keys(b, a);
    if (left != right) add({path + ".keys()", to_string(left), to_string(right)});
  }

  void object(const std::string& path, const Object& a, const Object& b) {
    if (a.type != b.type || a.how != b.how || a.args.size() != b.args.size() ||
        a.state.size() != b.state.size() || a.list_items.size() != b.list_items.size()) {
      return;
    }
    items(path + ".args", a.args, b.args);
    items(path, a.list_items, b.list_items);
    entries(path, a.dict_items, b.dict_items);
    if (a.keeps_order()) order(path, a.dict_items, b.dict_items);
    if (!a.state.empty()) compare(path, a.state[0], b.state[0]);
  }

  std::size_t most_;
  const Wanted& wanted_;
  std::uint64_t seen_ = 0;  ///< number of differences found, including those not kept
  ValueIdentity identity_;
  std::vector<ValueDifference> found_;
};

}  // namespace

std::vector<ValueDifference> differences(
    const Value& left, const Value& right, std::size_t most,
    const std::function<bool(const ValueDifference&)>& wanted) {
  if (hash_of(left) == hash_of(right) && left == right) return {};
  return Differ(most, wanted).between(left, right);
}

}  // namespace reprise
