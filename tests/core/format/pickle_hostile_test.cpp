#include <gtest/gtest.h>

#include "core/format/metadata.hpp"
#include "tests/core/format/items.hpp"
#include "tests/core/format/pickles.hpp"

namespace reprise::test {
namespace {

Code code_of(const std::string& body) {
  return error_of([&] { decode(body); }).code();
}

TEST(PickleHostile, unneeded_names_are_refused_in_every_kind_of_pickle) {
  for (const auto& [module, name] :
       std::vector<std::pair<std::string, std::string>>{{"os", "system"},
                                                        {"posix", "system"},
                                                        {"nt", "system"},
                                                        {"subprocess", "Popen"},
                                                        {"builtins", "eval"},
                                                        {"__builtin__", "eval"},
                                                        {"__builtin__", "execfile"},
                                                        {"builtins", "exec"},
                                                        {"builtins", "__import__"},
                                                        {"torch.storage", "_load_from_bytes"},
                                                        {"torch", "load"},
                                                        {"torch.hub", "load"},
                                                        {"numpy", "load"},
                                                        {"pickle", "loads"},
                                                        {"importlib.util", "find_spec"},
                                                        {"collections", "OrderedDict.__init__"},
                                                        {"types", "CodeType"}}) {
    SCOPED_TRACE(module + "." + name);
    const std::string call = global(module, name) + text("echo") + "\x85R";
    const Bytes whole = pickle(call);
    const PickleSource where{"bad.pkl"};
    const Error value = error_of([&] { decode_value(whole, where, nullptr); });
    EXPECT_EQ(value.code(), Code::kRefusedName);
    EXPECT_NE(value.message().find(name), std::string::npos) << value.what();
    EXPECT_EQ(value.place().offset, 2U);
    EXPECT_EQ(error_of([&] { decode_tensor(whole, where); }).code(), Code::kRefusedName);
    const std::vector<ByteSpan> files{whole};
    const std::vector<std::string> names{"bad.pkl"};
    EXPECT_EQ(error_of([&] { read_metadata(files, names); }).code(), Code::kRefusedName);
    const std::string stacked = text(module) + text(name) + "\x93";
    EXPECT_EQ(code_of(stacked), module.starts_with("__") ? Code::kRefusedName : value.code());
  }
}

TEST(PickleHostile, an_unlisted_name_makes_a_bytes_item_opaque_and_is_listed) {
  const std::string one = global("my.project", "Config") + ")\x81}" + text("a") + "K\1sb";
  const PickledValue read = decode("]" + one + "a" + global("my.project", "Mode") + "K\1\x85Ra");
  EXPECT_TRUE(read.opaque);
  EXPECT_TRUE(read.value.is_none());
  EXPECT_EQ(read.unlisted_names,
            (std::vector<std::string>{"my.project.Config", "my.project.Mode"}));
  EXPECT_EQ(error_of([&] { decode_tensor(pickle(one), {"t"}); }).code(), Code::kUnsupported);
}

TEST(PickleHostile, a_refused_name_behind_an_unlisted_one_is_still_refused) {
  EXPECT_EQ(code_of(global("my", "Thing") + global("os", "system") + "\x86"), Code::kRefusedName);
}

TEST(PickleHostile, getattr_may_neither_lead_to_code_nor_hide_the_attribute) {
  const std::string get = global("__builtin__", "getattr");
  const std::string mode = global("megatron.core.rerun_state_machine", "RerunMode");
  const PickledValue member = decode(get + mode + text("DISABLED") + "\x86R");
  EXPECT_EQ(member.value, (Object{{"megatron.core.rerun_state_machine", "RerunMode"},
                                  Object::How::kCall,
                                  {"disabled"}}));
  for (const std::string attribute : {"__class__", "__globals__", "os", "system"}) {
    for (const std::string& of : {global("torch", "Size"), global("my", "Enum"), mode, text("a")}) {
      EXPECT_EQ(code_of(get + of + text(attribute) + "\x86R"), Code::kRefusedName) << attribute;
    }
  }
  EXPECT_EQ(code_of(get + mode + "\x85R"), Code::kRefusedName);
  EXPECT_EQ(code_of(get + mode + "K\1\x86R"), Code::kRefusedName);
}

TEST(PickleHostile, a_listed_name_may_do_only_what_its_rule_says) {
  EXPECT_EQ(code_of(global("torch", "float32") + ")R"), Code::kTornFile);
  EXPECT_EQ(code_of(global("torch", "Size") + text("x") + "\x85R"), Code::kTornFile);
  EXPECT_TRUE(decode(global("torch", "Size") + "]K\1a\x85R").opaque);
  EXPECT_TRUE(decode(global("argparse", "Namespace") + ")\x81K\1b").opaque);
  EXPECT_TRUE(decode(global("torch", "Size") + ")\x85RK\1a").opaque);
  EXPECT_TRUE(decode(global("collections", "OrderedDict") + ")}K\1K\2s\x92").opaque);
  EXPECT_EQ(code_of(global("collections", "OrderedDict") + ")R)R"), Code::kRefusedName);
  EXPECT_EQ(code_of("N)R"), Code::kRefusedName);
  EXPECT_EQ(code_of("])R"), Code::kRefusedName);
}

TEST(PickleHostile, claimed_lengths_and_counts_allocate_nothing) {
  const std::string huge8(8, '\x7f');
  EXPECT_EQ(code_of("X\xff\xff\xff\xff"), Code::kTornFile);
  EXPECT_EQ(code_of("\x8d" + huge8), Code::kTornFile);
  EXPECT_EQ(code_of("\x8e" + huge8), Code::kTornFile);
  EXPECT_EQ(code_of("\x96" + huge8), Code::kTornFile);
  EXPECT_EQ(code_of("\x95" + huge8), Code::kTornFile);
  EXPECT_EQ(code_of("\x8b\xff\xff\xff\xff"), Code::kTornFile);
  EXPECT_EQ(code_of("Nr\xff\xff\xff\xff"), Code::kLimit);
  EXPECT_EQ(code_of("j\xff\xff\xff\x7f"), Code::kTornFile);
  EXPECT_EQ(code_of(global(std::string(300, 'm'), "x")), Code::kTornFile);
}

TEST(PickleHostile, opcodes_out_of_place_are_garbled) {
  for (const std::string& body :
       {""s,      "t"s,          "a"s,         "]a"s,     "](a"s,           "}(K\1u"s,
        "}]Ns"s,  "NNa"s,        "NK\1K\2s"s,  "]K\1b"s,  "h\0"s,           "Nq"s,
        "G\0\0"s, "K\1K\1\x93"s, "]\x8f\x90"s, "](\x90"s, text("\xff\xfe"), text("\xc0\x80"),
        "0"s,     "1"s,          "R"s,         "\x85"s}) {
    EXPECT_EQ(code_of(body), Code::kTornFile) << body;
  }
  EXPECT_EQ(error_of([] { decode(pickle("N", 6)); }).code(), Code::kUnsupported);
}

TEST(PickleHostile, what_contains_itself_is_opaque) {
  EXPECT_TRUE(decode("]q\0h\0a"s).opaque);
  EXPECT_TRUE(decode("}q\0K\1h\0s"s).opaque);
  EXPECT_TRUE(decode("]q\0(h\0h\0h\0e"s).opaque);
}

TEST(PickleHostile, deep_nesting_ends_in_words) {
  std::string lists(1000000, ']');
  lists.append(999999, 'a');
  EXPECT_TRUE(decode(lists).opaque);
  std::string tuples = "N" + std::string(1000000, '\x85');
  EXPECT_TRUE(decode(tuples).opaque);
  EXPECT_EQ(code_of(std::string(1000000, '(')), Code::kTornFile);
  std::string shallow = "N" + std::string(150, '\x85');
  EXPECT_FALSE(decode(shallow).opaque);
}

TEST(PickleHostile, a_bomb_of_shared_nodes_is_not_expanded) {
  std::string bomb = "Nq\0"s;
  for (int i = 0; i < 40; ++i) {
    bomb += "0h"s + static_cast<char>(i) + "h"s + static_cast<char>(i) + "\x86q"s +
            static_cast<char>(i + 1);
  }
  const PickledValue read = decode(bomb);
  EXPECT_TRUE(read.opaque);
  EXPECT_NE(read.reason.find("larger"), std::string::npos) << read.reason;
  std::string list = text(std::string(1U << 20U, 'x')) + "q\0"s + "0]("s;
  for (int i = 0; i < 1000; ++i) list += "h\0"s;
  EXPECT_TRUE(decode(list + "e").opaque);
}

TEST(PickleHostile, truncation_anywhere_is_refused) {
  const Bytes whole = pickle("}(" + text("a") + "](K\1G\0\0\0\0\0\0\0\0\x8a\1\5"s + "e" +
                             text("b") + global("torch", "Size") + "K\3\x85\x85Ru");
  ASSERT_FALSE(decode(whole).opaque);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_EQ(error_of([&] { decode(cut); }).code(), Code::kTornFile) << length;
  }
}

}  // namespace
}  // namespace reprise::test
