// Tests that a key that occurs twice in a pickled dict is read as Python would read it.

#include "core/format/pickle/python_dict.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "tests/core/format/pickles.hpp"

namespace reprise::test::python_dict_test {
namespace {

struct Row {
  const char* name;
  std::string pairs;  ///< opcodes for key, value, key, value
  Dict read;
};

std::string real(double value) {
  const std::string bytes = le(value);
  return "G" + std::string(bytes.rbegin(), bytes.rend());
}

TEST(PythonDict, a_key_set_again_keeps_its_place_and_gets_the_new_value) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Value tuple = Tuple{{1, "a"}};
  const std::vector<Row> rows = {
      {"text", text("a") + "K\1" + text("b") + "K\2" + text("a") + "K\3", {{"a", 3}, {"b", 2}}},
      {"a number in three forms",
       "K\1N\x88K\2" + real(1.0) + "K\3" + real(1.5) + "K\4",
       {{1, 3}, {1.5, 4}}},
      {"zeros", real(-0.0) + "K\1K\0K\2"s, {{-0.0, 2}}},
      {"NaN equals nothing", real(nan) + "K\1" + real(nan) + "K\2", {{nan, 1}, {nan, 2}}},
      {"None", "NK\1NK\2", {{NoneType{}, 2}}},
      {"large integers",
       "\x8a\x09\1\1\1\1\1\1\1\1\1K\1\x8a\x09\1\1\1\1\1\1\1\1\1K\2",
       {{BigInt{Bytes(9, std::byte{1})}, 2}}},
      {"text and bytes differ", text("a") + "K\1C\1aK\2C\1aK\3", {{"a", 1}, {to_bytes("a"), 3}}},
      {"frozensets",
       "(K\1" + text("a") + "\x91K\1(" + text("a") + "K\1\x91K\2",
       {{Set{{1, "a"}, true}, 2}}},
      {"tuples", "K\1" + text("a") + "\x86K\1K\1" + text("a") + "\x86K\2", {{tuple, 2}}},
      {"names",
       global("torch", "float32") + "K\1" + global("torch", "float32") + "K\2" +
           global("torch", "float16") + "K\3",
       {{Name{"torch", "float32"}, 2}, {Name{"torch", "float16"}, 3}}},
  };
  for (const Row& row : rows) {
    const Value expected(row.read);
    const PickledValue together = decode(pickle("}(" + row.pairs + "u", 4));
    EXPECT_FALSE(together.opaque) << row.name << ": " << together.reason;
    EXPECT_EQ(together.value, expected) << row.name;
    ASSERT_NE(together.value.as<Dict>(), nullptr) << row.name;
    // The order must be right, too. The comparison of dicts above ignores it.
    for (std::size_t i = 0; i < row.read.size(); ++i) {
      EXPECT_EQ(together.value.as<Dict>()->at(i).first, row.read[i].first) << row.name;
    }
  }
}

TEST(PythonDict, that_is_set_one_by_one_and_an_ordered_one_do_the_same) {
  const std::string twice = text("a") + "K\1s" + text("a") + "K\2s";
  EXPECT_EQ(decode("}" + twice).value, (Value(Dict{{"a", 2}})));
  const Value ordered = decode(global("collections", "OrderedDict") + ")R" + twice).value;
  ASSERT_NE(ordered.find("a"), nullptr);
  EXPECT_EQ(*ordered.find("a"), Value(2));
}

}  // namespace
}  // namespace reprise::test::python_dict_test
