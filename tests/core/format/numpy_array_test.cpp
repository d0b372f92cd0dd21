// Tests that the ways to write one array of numpy give one value.
#include "core/format/pickle/numpy_array.hpp"

#include <gtest/gtest.h>

#include <string>

#include "core/base/bytes.hpp"

namespace reprise {
namespace {

const Value kType = Name{"numpy", "uint8"};
const Tuple kShape{{2, 3}};

/// Returns the array [[1, 2, 3], [4, 5, 6]] as protocol 5 writes it.
Object from_buffer(const Value& buffer, const std::string& order) {
  return {{"numpy._core.numeric", "_frombuffer"},
          Object::How::kCall,
          {buffer, kType, kShape, order},
          {},
          {},
          {}};
}

/// Returns the same array as protocols 2 to 4 write it.
Object reconstructed(const std::string& elements, bool fortran, const Tuple& shape = kShape) {
  return {{"numpy._core.multiarray", "_reconstruct"},
          Object::How::kCall,
          {Name{"numpy", "ndarray"}, Tuple{{0}}, to_bytes("b")},
          {Tuple{{1, shape, kType, fortran, to_bytes(elements)}}},
          {},
          {}};
}

TEST(NumpyArray, is_one_value_however_it_was_written) {
  const Bytes elements = to_bytes("\1\2\3\4\5\6");
  const Object array{{"builtins", "bytearray"}, Object::How::kCall, {elements}, {}, {}, {}};
  const Value expected = reconstructed("\1\2\3\4\5\6", false);
  for (Object written :
       {from_buffer(elements, "C"), from_buffer(array, "C"),
        from_buffer(to_bytes("\1\4\2\5\3\6"), "F"), reconstructed("\1\2\3\4\5\6", false),
        reconstructed("\1\4\2\5\3\6", true)}) {
    normalize_numpy_array(written);
    EXPECT_EQ(Value(written), expected) << to_string(Value(written));
  }
}

TEST(NumpyArray, of_8_dimensions_is_settled_and_of_9_left_alone) {
  Tuple shape{{1, 1, 1, 1, 1, 1, 2, 3}};
  Object eight = reconstructed("\1\4\2\5\3\6", true, shape);
  normalize_numpy_array(eight);
  EXPECT_EQ(Value(eight), Value(reconstructed("\1\2\3\4\5\6", false, shape)))
      << to_string(Value(eight));
  shape.items.insert(shape.items.begin(), Value(1));
  const Object nine = reconstructed("\1\4\2\5\3\6", true, shape);
  Object settled = nine;
  normalize_numpy_array(settled);
  EXPECT_EQ(Value(settled), Value(nine)) << to_string(Value(settled));
}

TEST(NumpyArray, that_numpy_would_not_have_written_stays_as_it_is) {
  const Bytes elements = to_bytes("\1\2\3\4\5\6");
  Object short_one = from_buffer(elements, "C");
  short_one.args.pop_back();
  Object state_of_two = reconstructed("\1\2\3\4\5\6", true);
  state_of_two.state[0] = Tuple{{1, 2}};
  Object other_name = from_buffer(elements, "C");
  other_name.type.name = "frombuffer";
  for (const Object& odd :
       {short_one, state_of_two, other_name, from_buffer("text", "C"),
        from_buffer(Object{{"builtins", "bytes"}, Object::How::kCall, {elements}, {}, {}, {}}, "C"),
        reconstructed("\1\2\3\4\5", true), reconstructed("", true)}) {
    Object settled = odd;
    normalize_numpy_array(settled);
    EXPECT_EQ(Value(settled), Value(odd)) << to_string(Value(odd));
  }
}

}  // namespace
}  // namespace reprise
