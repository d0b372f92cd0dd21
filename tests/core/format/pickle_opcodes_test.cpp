#include "core/format/pickle/pickle_opcodes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "core/format/metadata.hpp"
#include "tests/core/format/items.hpp"
#include "tests/core/format/pickles.hpp"

namespace reprise::test::pickle_opcodes_test {
namespace {

struct Row {
  std::string name;
  std::string body;            ///< opcodes between PROTO and STOP, including the tested opcode
  std::optional<Value> value;  ///< value that the reader returns; nothing if it refuses
  Code refused = Code::kUsage;
};

Object size_object() { return {{"torch", "Size"}, Object::How::kCall, {Tuple{{Value(3)}}}}; }
Object bytearray_object() {
  return {{"builtins", "bytearray"}, Object::How::kCall, {to_bytes("ab")}};
}
Object ordered(Object::How how) { return {{"collections", "OrderedDict"}, how}; }
Object attributes() {
  Object object{{"argparse", "Namespace"}, Object::How::kNew};
  object.state = {Dict{{"a", 1}}};
  return object;
}

std::vector<Row> rows() {
  const std::string eight = le(std::uint64_t{2});
  return {
      {"MARK", "(t", Tuple{}},
      {"EMPTY_TUPLE", ")", Tuple{}},
      {"STOP", "N", NoneType{}},
      {"POP",
       "NK\1"
       "0",
       NoneType{}},
      {"POP_MARK",
       "N(K\1K\2"
       "1",
       NoneType{}},
      {"DUP", "N2\x86", {}, Code::kUnsupported},
      {"BINBYTES", "B" + le(std::uint32_t{2}) + "ab", to_bytes("ab")},
      {"SHORT_BINBYTES", "C\2ab", to_bytes("ab")},
      {"FLOAT", "F1.5\n", {}, Code::kUnsupported},
      {"BINFLOAT", "G\x3f\xf8\0\0\0\0\0\0"s, 1.5},
      {"INT", "I1\n", {}, Code::kUnsupported},
      {"BININT", "J\xfe\xff\xff\xff", -2},
      {"BININT1", "K\xff", 255},
      {"LONG", "L1L\n", {}, Code::kUnsupported},
      {"BININT2", "M\1\2", 513},
      {"NONE", "N", NoneType{}},
      {"PERSID", "P1\n", {}, Code::kRefusedName},
      {"BINPERSID", "K\1Q", {}, Code::kRefusedName},
      {"REDUCE", global("torch", "Size") + "K\3\x85\x85R", size_object()},
      {"STRING", "S'a'\n", {}, Code::kUnsupported},
      {"BINSTRING", "T" + le(std::uint32_t{2}) + "ab", "ab"},
      {"SHORT_BINSTRING", "U\2ab", "ab"},
      {"UNICODE", "Va\n", {}, Code::kUnsupported},
      {"BINUNICODE", text("ab"), "ab"},
      {"EMPTY_LIST", "]", List{}},
      {"APPEND", "]K\1a", List{1}},
      {"BUILD", global("argparse", "Namespace") + ")\x81}" + text("a") + "K\1sb", attributes()},
      {"GLOBAL", global("torch", "float32"), Name{"torch", "float32"}},
      {"DICT", "(K\1K\2d", {}, Code::kUnsupported},
      {"APPENDS", "](K\1K\2e", List{1, 2}},
      {"GET", "g0\n", {}, Code::kUnsupported},
      {"BINGET",
       "Nq\0"
       "0h\0"s,
       NoneType{}},
      {"INST", "(icollections\nOrderedDict\n", ordered(Object::How::kCall)},
      {"LONG_BINGET",
       "Nq\0"
       "0j\0\0\0\0"s,
       NoneType{}},
      {"LIST", "(K\1l", {}, Code::kUnsupported},
      {"OBJ", "(" + global("collections", "OrderedDict") + "o", ordered(Object::How::kCall)},
      {"PUT", "Np0\n", {}, Code::kUnsupported},
      {"BINPUT", "Nq\0"s, NoneType{}},
      {"LONG_BINPUT", "Nr\0\0\0\0"s, NoneType{}},
      {"SETITEM", "}K\1K\2s", Dict{{1, 2}}},
      {"TUPLE", "(K\1K\2K\3K\4t", Tuple{{1, 2, 3, 4}}},
      {"SETITEMS", "}(K\1K\2K\3K\4u", Dict{{1, 2}, {3, 4}}},
      {"EMPTY_DICT", "}", Dict{}},
      {"PROTO", "N", NoneType{}},
      {"NEWOBJ", global("collections", "OrderedDict") + ")\x81", ordered(Object::How::kCall)},
      {"EXT1", "\x82\1", {}, Code::kRefusedName},
      {"EXT2", "\x83\1\1", {}, Code::kRefusedName},
      {"EXT4", "\x84\1\1\1\1", {}, Code::kRefusedName},
      {"TUPLE1", "K\1\x85", Tuple{{1}}},
      {"TUPLE2", "K\1K\2\x86", Tuple{{1, 2}}},
      {"TUPLE3", "K\1K\2K\3\x87", Tuple{{1, 2, 3}}},
      {"NEWTRUE", "\x88", true},
      {"NEWFALSE", "\x89", false},
      {"LONG1", "\x8a\5\0\0\0\x80\0"s, std::int64_t{1} << 31},
      {"LONG4", "\x8b\1\0\0\0\xff"s, -1},
      {"SHORT_BINUNICODE", "\x8c\2ab", "ab"},
      {"BINUNICODE8", "\x8d" + eight + "ab", "ab"},
      {"BINBYTES8", "\x8e" + eight + "ab", to_bytes("ab")},
      {"EMPTY_SET", "\x8f", Set{}},
      {"ADDITEMS", "\x8f(K\1K\2\x90", Set{{1, 2}}},
      {"FROZENSET", "(K\1\x91", Set{{1}, true}},
      {"NEWOBJ_EX", global("collections", "OrderedDict") + ")}\x92", ordered(Object::How::kCall)},
      {"STACK_GLOBAL", text("torch") + text("float32") + "\x93", Name{"torch", "float32"}},
      {"MEMOIZE",
       "N\x94"
       "0h\0"s,
       NoneType{}},
      {"FRAME", "\x95" + le(std::uint64_t{2}) + "N", NoneType{}},
      {"BYTEARRAY8", "\x96" + eight + "ab", bytearray_object()},
      {"NEXT_BUFFER", "\x97", {}, Code::kRefusedName},
      {"READONLY_BUFFER", "\x98", {}, Code::kRefusedName},
  };
}

/// Returns all opcodes that have a rule, in ascending order of their codes.
std::vector<pickle::Opcode> all_opcodes() {
  std::vector<pickle::Opcode> all;
  for (unsigned code = 0; code < 256; ++code) {
    const pickle::Opcode* opcode = pickle::opcode_of(static_cast<std::byte>(code));
    if (opcode == nullptr) continue;
    EXPECT_EQ(opcode->code, code);
    all.push_back(*opcode);
  }
  return all;
}

TEST(PickleOpcodes, each_of_the_68_has_a_rule_and_an_example) {
  std::map<std::string, int> examples;
  for (const Row& row : rows()) ++examples[row.name];
  const auto all = all_opcodes();
  ASSERT_EQ(all.size(), 68U);
  for (const pickle::Opcode& opcode : all) {
    EXPECT_EQ(examples[std::string(opcode.name)], 1) << opcode.name;
  }
}

TEST(PickleOpcodes, accepted_ones_give_a_value_and_others_are_refused_by_place) {
  for (const Row& row : rows()) {
    SCOPED_TRACE(row.name);
    if (row.value) {
      const PickledValue read = decode(row.body);
      EXPECT_FALSE(read.opaque) << read.reason;
      EXPECT_EQ(read.value, *row.value) << read.value;
    } else {
      const Error error = error_of([&] { decode(row.body); });
      EXPECT_EQ(error.code(), row.refused) << error.what();
      EXPECT_NE(error.message().find("opcode " + row.name), std::string::npos) << error.what();
      EXPECT_EQ(error.place().file, "hand.pkl");
      EXPECT_GE(error.place().offset.value_or(0), 102U);
    }
  }
}

/// The opcodes of protocols 0 to 5 in CPython, in the order of pickletools.opcodes.
const std::string kCodesOfPython =
    "IJKML\x8a\x8b"
    "STUBC\x8e\x96\x97\x98N\x88\x89V\x8cX\x8d"
    "FG]ael)t\x85\x86\x87}dsu\x8f\x90\x91"
    "02(1ghjpqr\x94\x82\x83\x84"
    "c\x93Rbio\x81\x92\x80.\x95PQ";

TEST(PickleOpcodes, the_rules_are_for_the_68_codes_that_python_has) {
  const std::set<char> python(kCodesOfPython.begin(), kCodesOfPython.end());
  ASSERT_EQ(kCodesOfPython.size(), 68U);
  ASSERT_EQ(python.size(), 68U);
  std::set<char> ruled;
  for (const pickle::Opcode& opcode : all_opcodes()) {
    ruled.insert(static_cast<char>(opcode.code));
  }
  EXPECT_EQ(ruled, python);
}

TEST(PickleOpcodes, each_example_contains_its_opcode) {
  const auto all = all_opcodes();
  for (const Row& row : rows()) {
    const auto opcode = std::ranges::find(all, row.name, &pickle::Opcode::name);
    ASSERT_NE(opcode, all.end()) << row.name;
    const Bytes bytes = pickle(row.body);
    EXPECT_NE(as_text(bytes).find(static_cast<char>(opcode->code)), std::string_view::npos)
        << row.name;
  }
}

TEST(PickleOpcodes, what_a_bytes_item_refuses_tensors_and_metadata_refuse_too) {
  std::size_t refused = 0;
  for (const Row& row : rows()) {
    if (row.value) continue;
    SCOPED_TRACE(row.name);
    const Bytes bytes = pickle(row.body);
    const PickleSource where{"hand.pkl"};
    EXPECT_EQ(error_of([&] { decode_tensor(bytes, where); }).code(), row.refused);
    const std::vector<ByteSpan> files{bytes};
    const std::vector<std::string> names{"hand.pkl"};
    const Error error = error_of([&] { read_metadata(files, names); });
    // The class may be refused before the reader reaches the opcode that makes an instance of it.
    EXPECT_TRUE(error.code() == row.refused || error.code() == Code::kRefusedName) << error.what();
    ++refused;
  }
  EXPECT_EQ(refused, 17U);
}

TEST(PickleOpcodes, a_persistent_id_is_a_storage_and_refused_in_metadata) {
  const std::string storage =
      "(" + text("storage") + global("torch", "FloatStorage") + text("0") + text("cpu") + "K\1tQ";
  EXPECT_TRUE(decode(storage).opaque);  // valid pickle, but not a plain value
  EXPECT_EQ(error_of([] { decode("K\1Q"); }).code(), Code::kRefusedName);
  const Bytes bytes = pickle("(" + text("storage") + text("x") + text("0") + text("cpu") + "K\1tQ");
  const std::vector<ByteSpan> files{bytes};
  const std::vector<std::string> names{"hand.pkl"};
  const Error error = error_of([&] { read_metadata(files, names); });
  EXPECT_EQ(error.code(), Code::kRefusedName);
  EXPECT_NE(error.message().find("opcode BINPERSID"), std::string::npos) << error.what();
}

TEST(PickleOpcodes, python_2_strings_are_utf8_in_items_and_ascii_in_metadata) {
  const std::string accented = "U\2\xc3\xa9";
  EXPECT_EQ(decode(accented).value, Value("\xc3\xa9"));
  const auto message_of = [](const std::string& body) {
    const Bytes bytes = pickle(body);
    const std::vector<ByteSpan> files{bytes};
    const std::vector<std::string> names{"hand.pkl"};
    return error_of([&] { read_metadata(files, names); }).message();
  };
  EXPECT_NE(message_of(accented).find("not ASCII"), std::string::npos) << message_of(accented);
  EXPECT_EQ(message_of("U\2ab").find("not ASCII"), std::string::npos) << "no Metadata, but ASCII";
}

TEST(PickleOpcodes, every_other_byte_is_garbled) {
  for (int code = 0; code < 256; ++code) {
    if (pickle::opcode_of(static_cast<std::byte>(code)) != nullptr) continue;
    const Error error = error_of([&] { decode(std::string(1, static_cast<char>(code))); });
    EXPECT_EQ(error.code(), Code::kTornFile) << code;
    EXPECT_EQ(error.place().offset, 102U) << code;
  }
}

}  // namespace
}  // namespace reprise::test::pickle_opcodes_test
