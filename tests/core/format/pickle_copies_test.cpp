// Some opcodes make Python copy a state or an argument, or compute a value from it. After such an
// opcode the reader's decoded graph still only refers to the state or argument. Tests that the
// reader therefore refuses a pickle that changes the state or argument later.

#include <gtest/gtest.h>

#include "core/format/metadata.hpp"
#include "tests/core/format/items.hpp"
#include "tests/core/format/pickles.hpp"

namespace reprise::test {
namespace {

/// Emits the opcode that gets a value from the memo.
std::string from(char where) { return "h"s + where; }

struct Row {
  std::string name;
  std::string body;
};

TEST(PickleCopies, what_was_used_may_not_change_any_more) {
  const std::string space = global("argparse", "Namespace");
  const std::string number = global("uuid", "UUID");
  const std::string dict = "}" + text("int") + "K\1sq\1";  // stays on the stack
  const std::string change = from('\1') + text("int") + "K\2s";
  const std::vector<Row> rows = {
      {"a state", "(" + space + ")\x81" + dict + "b" + change + "t"},
      {"a state in a state, by its list",
       "(" + space + ")\x81}" + text("a") + "]q\1sb" + from('\1') + "K\1at"},
      {"a set's list", "(" + global("builtins", "set") + "]K\1aq\1\x85R" + from('\1') + "K\2at"},
      {"a frozenset's list",
       "(" + global("builtins", "frozenset") + "]K\1aq\1\x85R" + from('\1') + "K\2at"},
      {"a list's list", "(" + global("builtins", "list") + "]K\1aq\1\x85R" + from('\1') + "K\2at"},
      {"a dict's pairs",
       "(" + global("builtins", "dict") + "]]K\1aK\2aq\1a\x85R" + from('\1') + "K\3at"},
      {"bytes of a list",
       "(" + global("builtins", "bytes") + "]K\1aq\1\x85R" + from('\1') + "K\2at"},
      {"a deque's list",
       "(" + global("collections", "deque") + "]K\1aq\1\x85R" + from('\1') + "K\2at"},
      {"a default dict's dict",
       "(" + global("collections", "defaultdict") + "N" + dict + "\x86R" + change + "t"},
      {"a counter's dict", "(" + global("collections", "Counter") + dict + "\x85R" + change + "t"},
      {"arguments of NEWOBJ",
       "(" + global("collections", "deque") + "]K\1aq\1\x85\x81" + from('\1') + "K\2at"},
      {"a set within arguments",
       "(" + global("builtins", "list") + "\x8fq\1\x85R" + from('\1') + "(K\1\x90t"},
      {"an object within arguments, built later", "(" + global("builtins", "list") + "]" + space +
                                                      ")\x81q\1a\x85R" + from('\1') + dict + "bt"},
      {"an object within arguments, given items later",
       "(" + global("builtins", "list") + "]" + global("collections", "OrderedDict") +
           ")Rq\1a\x85R" + from('\1') + "K\1K\2st"},
      {"a key that is built later", "}" + number + ")\x81q\1K\1s0" + from('\1') + dict + "b"},
      {"an item of a set that is built later",
       "\x8f(" + number + ")\x81q\1\x90" + "0" + from('\1') + dict + "b"},
      {"an item of a frozenset that is built later",
       "((" + number + ")\x81q\1\x91" + from('\1') + dict + "bt"},
      {"an object built twice", space + ")\x81" + dict + "b}b"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const PickledValue read = decode(row.body);
    EXPECT_TRUE(read.opaque) << read.value;
  }
}

TEST(PickleCopies, what_is_shared_and_not_copied_may_change) {
  const PickledValue list = decode("(]q\1" + from('\1') + "K\1a" + "t");
  ASSERT_FALSE(list.opaque) << list.reason;
  EXPECT_EQ(list.value, (Value(Tuple{{List{1}, List{1}}})));
  // Two objects already refer to the list before BUILD uses the state.
  const PickledValue state = decode("(]q\1K\1a" + global("argparse", "Namespace") + ")\x81}" +
                                    text("a") + from('\1') + "sbt");
  EXPECT_FALSE(state.opaque) << state.reason;
}

TEST(PickleCopies, flags_of_a_tensor_may_not_change_once_it_is_made) {
  const std::string storage = "(" + text("storage") + global("torch", "ComplexFloatStorage") +
                              text("0") + text("cpu") + "K\1tQ";
  const std::string call = global("torch._utils", "_rebuild_tensor_v2") + "(" + storage +
                           "K\0K\1\x85K\1\x85\x89"s + global("collections", "OrderedDict") +
                           ")R}q\1tR";
  EXPECT_NO_THROW(decode_tensor(pickle(call), {"t"}));
  const std::string changed =
      call + "q\2" + "0" + from('\1') + text("conj") + "\x88s0" + from('\2');
  EXPECT_EQ(error_of([&] { decode_tensor(pickle(changed), {"t"}); }).code(), Code::kTornFile);
}

const std::string kDcp = "torch.distributed.checkpoint.metadata";

std::string made(const std::string& module, const std::string& name, const std::string& state) {
  return global(module, name) + ")\x81" + state + "b";
}

/// Makes the metadata of one object with the key "k". If `late`, the pickle changes the state dict
/// of the storage info after the BUILD opcode has used the dict.
Bytes metadata_of_one_object(bool late) {
  const std::string info = "}(" + text("relative_path") + text("a") + text("offset") + "K\1" +
                           text("length") + "K\2uq\1";
  const std::string change = late ? from('\1') + text("offset") + "K\7s0" : "";
  const std::string index = made(kDcp, "MetadataIndex", "}" + text("fqn") + text("k") + "s");
  return pickle(made(kDcp, "Metadata",
                     "}(" + text("state_dict_metadata") + "}" + text("k") +
                         made(kDcp, "BytesStorageMetadata", "}") + "s" + text("storage_data") +
                         "}" + index +
                         made("torch.distributed.checkpoint.filesystem", "_StorageInfo", info) +
                         "s" + change + "u"));
}

TEST(PickleCopies, a_storage_whose_state_changes_after_it_was_built_is_refused) {
  const auto read = [](const Bytes& bytes) {
    const std::vector<ByteSpan> files{bytes};
    const std::vector<std::string> names{".metadata"};
    return read_metadata(files, names);
  };
  EXPECT_EQ(read(metadata_of_one_object(false)).catalog.objects.at(0).range.offset, 1U);
  const Error error = error_of([&] { read(metadata_of_one_object(true)); });
  EXPECT_EQ(error.code(), Code::kTornFile) << error.what();
}

TEST(PickleCopies, of_equal_items_a_set_keeps_the_first) {
  const Value one = Set{{1, "a"}};
  for (const std::string& items :
       {"K\1\x88K\1" + text("a") + text("a"), "K\1" + text("a") + "K\1"}) {
    EXPECT_EQ(decode("\x8f(" + items + "\x90").value, one);
    EXPECT_EQ(decode(global("builtins", "set") + "](" + items + "e\x85R").value, one);
    EXPECT_EQ(decode("(" + items + "\x91").value, (Set{{1, "a"}, true}));
  }
}

TEST(PickleCopies, what_python_cannot_hash_is_no_key) {
  const std::string ordered = global("collections", "OrderedDict") + ")R";
  const std::string space = global("argparse", "Namespace") + ")\x81";
  for (const std::string& key : {ordered, space, ordered + "\x85", "]"s, "}"s, "\x8f"s,
                                 "\x96\0\0\0\0\0\0\0\0"s, "]\x85"s, "N]\x86\x85"s, "(NN}t"s}) {
    EXPECT_EQ(error_of([&] { decode("}" + key + "Ns"); }).code(), Code::kTornFile) << key;
    EXPECT_EQ(error_of([&] { decode("\x8f(" + key + "\x90"); }).code(), Code::kTornFile) << key;
    EXPECT_EQ(error_of([&] { decode("(" + key + "\x91"); }).code(), Code::kTornFile) << key;
    const std::string set = global("builtins", "set") + "]" + key + "a\x85R";
    EXPECT_EQ(error_of([&] { decode(set); }).code(), Code::kTornFile) << key;
  }
  EXPECT_FALSE(decode("}(K\1\x91Ns").opaque);
  EXPECT_FALSE(decode("}K\1K\2\x86Ns").opaque);
}

}  // namespace
}  // namespace reprise::test
