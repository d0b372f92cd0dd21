#include "reprise/value.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sstream>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>

#include "core/base/random.hpp"
#include "reprise/error.hpp"

namespace reprise {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Set set_of(List items, bool frozen = false) { return {std::move(items), frozen}; }

Object ordered(Dict entries) {
  return {{"collections", "OrderedDict"}, Object::How::kCall, {}, {}, {}, std::move(entries)};
}

/// Returns one value of each kind, and values that are easily confused with one of these.
std::vector<Value> different_values() {
  Object call{{"builtins", "list"}, Object::How::kCall, {}, {}, {}, {}};
  Object made = call;
  made.how = Object::How::kNew;
  Object of_type = call;
  of_type.type.name = "set";
  Object with_state = made;
  with_state.state = {Dict{{"x", 1}}};
  Object with_items = made;
  with_items.list_items = {1};
  Object with_entries = made;
  with_entries.dict_items = {{"x", 1}};
  return {NoneType{},
          false,
          true,
          0,
          1,
          -1,
          0.0,
          -0.0,
          1.0,
          kNan,
          -kNan,
          BigInt{to_bytes("\x01")},
          "",
          "1",
          "None",
          Bytes{},
          to_bytes("1"),
          List{},
          List{1},
          List{1, 2},
          List{2, 1},
          List(1, Value(List{})),
          Tuple{},
          Tuple{{1}},
          Set{},
          set_of({1}),
          set_of({1}, true),
          set_of({1, 2}),
          Dict{},
          Dict{{"a", 1}},
          Dict{{"a", 2}},
          Dict{{"b", 1}},
          Dict{{1, "a"}},
          Dict{{1.0, "a"}},
          Dict{{true, "a"}},
          Dict{{"a", 1}, {"b", 2}},
          Dict{{"a", 2}, {"b", 1}},
          Dict{{"a", 1}, {"a", 1}},
          Name{"torch", "float32"},
          Name{"numpy", "float32"},
          Name{"torch", "float16"},
          Name{"torch.float32", ""},
          Name{"", "torch.float32"},
          call,
          made,
          of_type,
          with_state,
          with_items,
          with_entries,
          TensorValue{DType::kUInt8, {2}, to_bytes("ab")},
          TensorValue{DType::kInt8, {2}, to_bytes("ab")},
          TensorValue{DType::kUInt8, {2, 1}, to_bytes("ab")},
          TensorValue{DType::kUInt8, {2}, to_bytes("ac")},
          TensorValue{DType::kUInt8, {2}, to_bytes("ac"), true},
          ordered({{"a", 1}, {"b", 2}}),
          ordered({{"b", 2}, {"a", 1}}),
          ordered({{"a", 2}, {"b", 1}})};
}

TEST(Value, equals_itself_and_nothing_that_looks_like_it) {
  const auto values = different_values();
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t j = 0; j < values.size(); ++j) {
      SCOPED_TRACE(to_string(values[i]) + " and " + to_string(values[j]));
      EXPECT_EQ(values[i] == values[j], i == j);
      EXPECT_EQ(hash_of(values[i]) == hash_of(values[j]), i == j);
      EXPECT_EQ(differences(values[i], values[j], 5).empty(), i == j);
    }
  }
}

TEST(Value, within_a_container_stays_as_different_as_alone) {
  const auto values = different_values();
  for (const Value& a : values) {
    for (const Value& b : values) {
      EXPECT_EQ((Value(List{a, 1}) == Value(List{b, 1})), a == b);
      EXPECT_EQ((Value(Dict{{"k", a}, {"l", 1}}) == Value(Dict{{"l", 1}, {"k", b}})), a == b);
      EXPECT_EQ((Value(set_of({a, "x"})) == Value(set_of({"x", b}))), a == b);
    }
  }
}

TEST(Value, takes_every_integer_and_no_pointer_but_to_characters) {
  EXPECT_EQ(Value(std::size_t{7}), Value(7));
  EXPECT_EQ(Value(7LL), Value(std::int64_t{7}));
  EXPECT_EQ(Value(std::uint8_t{255}), Value(255));
  EXPECT_EQ(Value(std::uint64_t{INT64_MAX}), Value(INT64_MAX));
  const Value large(std::uint64_t{1} << 63U);
  ASSERT_NE(large.as<BigInt>(), nullptr);
  EXPECT_EQ(large.as<BigInt>()->digits.size(), 9U);
  EXPECT_EQ(large.as<BigInt>()->digits[7], std::byte{0x80});
  EXPECT_NE(Value(true), Value(1));
  static_assert(!std::is_constructible_v<Value, const int*>);
  static_assert(!std::is_constructible_v<Value, Value*>);
  static_assert(std::is_constructible_v<Value, const char*>);
}

TEST(Value, takes_nothing_that_merely_converts_to_a_number) {
  enum Unscoped { kOne };
  static_assert(std::is_convertible_v<Unscoped, double> &&
                !std::is_constructible_v<Value, Unscoped>);
  static_assert(!std::is_constructible_v<Value, std::vector<bool>::reference>);
  static_assert(!std::is_constructible_v<Value, std::true_type>);
  // A Value can't hold numbers of these types, and converting them to a narrower type would lose
  // digits.
  static_assert(!std::is_constructible_v<Value, long double>);
  __extension__ using Wide = __int128;
  static_assert(std::is_convertible_v<Wide, double> && !std::is_constructible_v<Value, Wide>);
  EXPECT_EQ(Value(0.5F), Value(0.5));
}

TEST(Value, entries_of_a_dict_are_made_where_they_are_named) {
  Value common = Dict{};
  common["iteration"] = 10;
  common["iteration"] = 20;
  common["lr"] = 0.5;
  EXPECT_EQ(common, Value(Dict{{"iteration", 20}, {"lr", 0.5}}));
  EXPECT_EQ(common["absent"], Value(NoneType{}));
  Value list = List{};
  EXPECT_THROW(list["iteration"] = 1, Error);
}

TEST(Value, order_matters_in_lists_and_not_in_dicts_and_sets) {
  EXPECT_EQ(Value(Dict({{"a", 1}, {"b", 2}})), Value(Dict({{"b", 2}, {"a", 1}})));
  EXPECT_EQ(Value(set_of({1, 2})), Value(set_of({2, 1})));
  EXPECT_NE(Value(List{1, 2}), Value(List{2, 1}));
  EXPECT_NE(Value(set_of({1, 1, 2})), Value(set_of({1, 2, 2})));
  const Value nested(Dict{{"x", List{Dict{{"a", 1}, {"b", set_of({1, 2})}}}}});
  const Value turned(Dict{{"x", List{Dict{{"b", set_of({2, 1})}, {"a", 1}}}}});
  EXPECT_EQ(nested, turned);
  EXPECT_EQ(hash_of(nested), hash_of(turned));
  EXPECT_TRUE(differences(nested, turned, 10).empty());
}

/// Returns a random tree of ints, texts, bools, lists, sets, tuples, and dicts with and without
/// order.
Value random_value(Stream& random, int depth) {
  const std::uint64_t kind = random.below(depth == 0 ? 3 : 8);
  List items;
  Dict entries;
  if (kind >= 3) {
    for (std::uint64_t n = random.below(4); n > 0; --n) {
      items.push_back(random_value(random, depth - 1));
      entries.emplace_back(random_value(random, depth - 1), random_value(random, depth - 1));
    }
  }
  switch (kind) {
    case 0:
      return static_cast<std::int64_t>(random.below(3));
    case 1:
      return std::string(random.below(3), 'x');
    case 2:
      return random.below(2) == 0;
    case 3:
      return items;
    case 4:
      return Set{items, false};
    case 5:
      return Tuple{items};
    case 6:
      return ordered(entries);
    default:
      return entries;
  }
}

/// Returns an equal value with its sets and unordered dicts in another order.
Value shuffled(const Value& value, Stream& random) {
  const auto shuffle = [&random](auto& items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random.below(i)]);
  };
  if (const auto* list = value.as<List>()) {
    List items;
    for (const Value& item : *list) items.push_back(shuffled(item, random));
    return items;
  }
  if (const auto* tuple = value.as<Tuple>()) {
    Tuple other;
    for (const Value& item : tuple->items) other.items.push_back(shuffled(item, random));
    return other;
  }
  if (const auto* set = value.as<Set>()) {
    Set other{{}, set->frozen};
    for (const Value& item : set->items) other.items.push_back(shuffled(item, random));
    shuffle(other.items);
    return other;
  }
  if (const auto* dict = value.as<Dict>()) {
    Dict other;
    for (const auto& [k, v] : *dict) {
      other.emplace_back(shuffled(k, random), shuffled(v, random));
    }
    shuffle(other);
    return other;
  }
  if (const auto* object = value.as<Object>()) {
    Object other = *object;
    for (auto& [k, v] : other.dict_items) v = shuffled(v, random);
    return other;
  }
  return value;
}

/// Compares two values by the definition of equality. It is slow, since it tries every pairing of
/// items; use it only for small values.
bool equal_by_definition(const Value& a, const Value& b);

bool equal_items(const List& a, const List& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), equal_by_definition);
}

template <class Items, class Equal>
bool equal_as_bags(const Items& a, const Items& b, Equal equal) {
  return std::is_permutation(a.begin(), a.end(), b.begin(), b.end(), equal);
}

bool equal_by_definition(const Value& a, const Value& b) {
  if (a.variant().index() != b.variant().index()) return false;
  if (a.as<List>()) return equal_items(*a.as<List>(), *b.as<List>());
  if (a.as<Tuple>()) return equal_items(a.as<Tuple>()->items, b.as<Tuple>()->items);
  if (a.as<Set>()) {
    return equal_as_bags(a.as<Set>()->items, b.as<Set>()->items, equal_by_definition);
  }
  if (a.as<Dict>()) {
    return equal_as_bags(*a.as<Dict>(), *b.as<Dict>(), [](const auto& x, const auto& y) {
      return equal_by_definition(x.first, y.first) && equal_by_definition(x.second, y.second);
    });
  }
  if (a.as<Object>()) {
    const Dict& left = a.as<Object>()->dict_items;
    const Dict& right = b.as<Object>()->dict_items;
    return std::equal(
        left.begin(), left.end(), right.begin(), right.end(), [](const auto& x, const auto& y) {
          return equal_by_definition(x.first, y.first) && equal_by_definition(x.second, y.second);
        });
  }
  return to_string(a) == to_string(b);
}

RC_GTEST_PROP(Value, equality_is_that_of_the_definition, (std::uint64_t seed)) {
  Stream random(seed);
  const Value a = random_value(random, 3);
  const Value b = random_value(random, 3);
  const Value c = shuffled(a, random);
  RC_ASSERT(a == c);
  RC_ASSERT(c == a);
  RC_ASSERT(hash_of(a) == hash_of(c));
  RC_ASSERT(differences(a, c, 3).empty());
  const bool equal = equal_by_definition(a, b);
  RC_ASSERT((a == b) == equal);
  RC_ASSERT(differences(a, b, 3).empty() == equal);
}

/// Returns the processor time that `work` takes; other load on the machine does not affect it.
template <class Work>
double seconds_of(Work work) {
  const std::clock_t start = std::clock();
  work();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

TEST(Value, a_large_dict_in_another_order_is_compared_at_once) {
  constexpr int kEntries = 100'000;
  Dict forward;
  for (int i = 0; i < kEntries; ++i) {
    forward.emplace_back("layers." + std::to_string(i) + ".weight", List{i, i + 1});
  }
  Dict backward(forward.rbegin(), forward.rend());
  const Value a(forward);
  const Value b(backward);
  backward[7].second = "other";
  const Value c(backward);
  const double seconds = seconds_of([&] {
    EXPECT_EQ(a, b);
    const auto found = differences(a, c, 5);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].path, "['layers.99992.weight']");
  });
  EXPECT_LT(seconds, 20.0);  // quadratic work takes minutes; the limit is generous for sanitizers
}

TEST(Value, entries_made_to_collide_cost_no_more) {
  // The hash of a list ends in mix64(state, hash of last item), so it is easy to make keys that
  // differ in early items but have equal hashes. Such keys would slow a hash table down, but
  // equality uses no hashes. So it is enough to show that many nearly equal entries are compared
  // quickly.
  constexpr int kEntries = 50'000;
  Dict forward;
  for (int i = 0; i < kEntries; ++i) {
    forward.emplace_back(Tuple{{List(20, 0), i}}, set_of({1, 2, 3}));
  }
  Dict backward(forward.rbegin(), forward.rend());
  for (auto& [key, value] : backward) value = set_of({3, 2, 1});
  EXPECT_LT(seconds_of([&] { EXPECT_EQ(Value(forward), Value(backward)); }), 20.0);
}

TEST(Value, dicts_nested_200_deep_in_another_order_compare_at_once) {
  Value a = 1;
  Value b = 1;
  for (int level = 0; level < 200; ++level) {
    a = Dict{{"deep", a}, {"flat", level}};
    b = Dict{{"flat", level}, {"deep", b}};
  }
  EXPECT_LT(seconds_of([&] {
              EXPECT_EQ(a, b);
              EXPECT_EQ(hash_of(a), hash_of(b));
              EXPECT_TRUE(differences(a, b, 1).empty());
              EXPECT_FALSE(to_string(a).empty());
            }),
            5.0);
}

TEST(Value, a_wide_tree_is_printed_at_once) {
  Value tree = 1;
  for (int level = 0; level < 5; ++level) tree = List(16, tree);  // a tree with 16^5 leaves
  EXPECT_LT(to_string(tree, 100).size(), 200U);
  std::ostringstream out;
  out << tree;
  EXPECT_LT(out.str().size(), 20'000U);
}

TEST(Value, differences_name_the_path_and_both_sides) {
  const Value left(Dict{{"optimizer", List{Dict{{"lr", 0.5}, {"wd", 0}}}}, {"gone", 1}});
  const Value right(Dict{{"new", 2}, {"optimizer", List{Dict{{"wd", 0}, {"lr", 0.25}}}}});
  const auto found = differences(left, right, 10);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].path, "['optimizer'][0]['lr']");
  EXPECT_EQ(found[0].left, "0.5");
  EXPECT_EQ(found[0].right, "0.25");
  EXPECT_EQ(found[1].path, "['gone']");
  EXPECT_EQ(found[1].right, "(absent)");
  EXPECT_EQ(found[2].path, "['new']");
  EXPECT_EQ(found[2].left, "(absent)");
  EXPECT_EQ(differences(left, right, 2).size(), 2U);
}

TEST(Value, differences_of_objects_are_named_where_they_are) {
  Object left{{"m", "C"}, Object::How::kCall, {1, 2}, {}, {3, 4}, {{"k", 5}}};
  Object right = left;
  right.args[1] = 0;
  right.list_items[0] = 0;
  right.dict_items[0].second = 0;
  std::vector<std::string> paths;
  for (const auto& found : differences(left, right, 9)) paths.push_back(found.path);
  EXPECT_EQ(paths, (std::vector<std::string>{".args[1]", "[0]", "['k']"}));
}

TEST(Value, order_of_an_ordered_dict_differs_apart_from_its_entries) {
  const auto found =
      differences(ordered({{"a", 1}, {"b", 2}, {"c", 3}}), ordered({{"b", 2}, {"a", 0}}), 9);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].path, "['a']");
  EXPECT_FALSE(found[0].one_sided);
  EXPECT_EQ(found[1].path, "['c']");
  EXPECT_TRUE(found[1].one_sided);
  EXPECT_EQ(found[2].path, ".keys()");
  EXPECT_EQ(found[2].left, "['a', 'b']");
  EXPECT_EQ(found[2].right, "['b', 'a']");
}

TEST(Value, differences_that_are_not_wanted_take_no_place_and_hide_none) {
  Dict left;
  Dict right;
  for (int i = 0; i < 5000; ++i) {
    left.push_back({"noise" + std::to_string(i), 0});
    right.push_back({"noise" + std::to_string(i), 1});
  }
  left.push_back({"inner", Dict{{"lr", 1}, {"noise", 1}}});
  right.push_back({"inner", Dict{{"lr", 2}, {"noise", 2}}});
  const auto wanted = [](const ValueDifference& d) { return d.path.find("noise") == d.path.npos; };
  const auto found = differences(left, right, 4, wanted);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].path, "['inner']['lr']");
  EXPECT_TRUE(differences(Dict{{"inner", Dict{{"noise", 1}}}}, Dict{{"inner", Dict{{"noise", 2}}}},
                          4, wanted)
                  .empty());
}

TEST(Value, dicts_that_differ_only_in_how_often_a_key_occurs_differ) {
  EXPECT_FALSE(differences(Dict{{"k", 1}, {"k", 1}}, Dict{{"k", 1}, {"k", 2}}, 5).empty());
}

TEST(Value, is_found_by_key_in_dicts_and_in_objects) {
  Object args{{"argparse", "Namespace"}, Object::How::kNew, {}, {Dict{{"lr", 0.5}}}, {}, {}};
  Object ordered{{"collections", "OrderedDict"}, Object::How::kCall, {}, {}, {}, {{"a", 1}}};
  EXPECT_EQ(*Value(args).find("lr"), Value(0.5));
  EXPECT_EQ(*Value(ordered).find("a"), Value(1));
  EXPECT_EQ(Value(args).find("wd"), nullptr);
  EXPECT_EQ(Value(3).find("lr"), nullptr);
}

struct Printed {
  Value value;
  const char* text;
};

TEST(Value, prints_much_as_python_does) {
  const std::vector<Printed> rows = {
      {NoneType{}, "None"},
      {true, "True"},
      {-3, "-3"},
      {1.0, "1.0"},
      {0.5, "0.5"},
      {-0.0, "-0.0"},
      {kNan, "nan"},
      {1e300, "1e+300"},
      {3e-4, "0.0003"},
      {1e-4, "0.0001"},
      {1e-8, "1e-08"},
      {1e16, "1e+16"},
      {9007199254740993.0, "9007199254740992.0"},
      {0.1 + 0.2, "0.30000000000000004"},
      {5e-324, "5e-324"},
      {-std::numeric_limits<double>::infinity(), "-inf"},
      {"it's\n", "'it\\'s\\x0a'"},
      {to_bytes("a"), "b'a'"},
      {List{1, "x"}, "[1, 'x']"},
      {Tuple{{1}}, "(1,)"},
      {Tuple{}, "()"},
      {set_of({1}, true), "frozenset{1}"},
      {Dict{{"a", 1}}, "{'a': 1}"},
      {Dict{{"a", 1}, {"b", NoneType{}}}, "{'a': 1, 'b': None}"},
      {BigInt{to_bytes("\x01\x02")}, "int of 2 bytes"},
      {"\\ \x1f\x20\x7e\x7f", "'\\\\ \\x1f ~\\x7f'"},
      {Name{"torch", "float32"}, "torch.float32"},
      {Object{{"m", "C"}, Object::How::kNew, {1, 2}, {}, {}, {}}, "C(1, 2)"},
      {Object{{"m", "C"}, Object::How::kNew, {}, {Dict{{"x", 3}}}, {4}, {{"k", 5}}},
       "C()[4]{'k': 5}{'x': 3}"},
      {TensorValue{DType::kBFloat16, {2, 3}, {}}, "tensor(bfloat16, [2, 3])"},
  };
  for (const auto& row : rows) EXPECT_EQ(to_string(row.value), row.text);
  EXPECT_EQ(to_string(List(100, 7), 1000).substr(43), "7, 7, ... 100 items]");
  EXPECT_EQ(to_string(List(16, 7), 1000).substr(43), "7, 7]");
  EXPECT_EQ(to_string(Value(std::string(120, 'x')), 1000), "'" + std::string(120, 'x') + "'");
  EXPECT_EQ(to_string(Value(std::string(121, 'x')), 1000), "'" + std::string(120, 'x') + "'...");
  EXPECT_EQ(to_string(Value("abc"), 5), "'abc'");
  EXPECT_EQ(to_string(Value("abc"), 4), "'abc...");
}

}  // namespace
}  // namespace reprise
