// Tests that a save refuses text that no checkpoint can hold, on all ranks and before it writes.
#include "core/state/garbled_text.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/fixtures/repeated_saves.hpp"

namespace reprise {
namespace {

using test::Edit;
using test::Kit;
using test::RepeatedSaves;

const std::string kGarbled = "a\xff.yaml";

struct GarbledRow {
  std::string says;
  Edit edit;
};

/// Returns edits of one rank's state. `text` stands in their place in each of them.
std::vector<GarbledRow> garbled_rows(const std::string& text) {
  const auto in_object = [text](const Value& value) -> Edit {
    return [value](Kit& kit) {
      if (kit.rank() == 1) kit.object(kit.note()).value = value;
    };
  };
  return {
      {"the object has a string that is not UTF-8", in_object(text)},
      {"['a'][1] is 'a\\xff.yaml'", in_object(Dict{{"a", List{1, text}}})},
      {"['a'].keys() is ", in_object(Dict{{"a", Dict{{text, 1}}}})},
      {"[0] is ", in_object(Tuple{{Set{{text}}}})},
      {"hold: 'a\\xff.yaml'", in_object(Name{"torch", text})},
      {"['x'][0] is ", in_object(Object{.type = {"m", "n"}, .dict_items = {{"x", List{text}}}})},
      {"['s'] is ", in_object(Object{.type = {"m", "n"}, .state = {Dict{{"s", text}}}})},
      {": .args[0] is ", in_object(Object{.type = {"m", "n"}, .args = {text}})},
      {"the key is not UTF-8",
       [text](Kit& kit) {
         if (kit.rank() == 1) kit.tensor(kit.own()).key = text;
       }},
      {"the key is not UTF-8",
       [text](Kit& kit) {
         if (kit.rank() == 1) kit.object(kit.note()).key = text;
       }},
      {"the common state has a string that is not UTF-8, which no pickle can hold: ['run']['name']",
       [text](Kit& kit) {
         kit.state.common = Dict{{"iteration", 2}, {"run", Dict{{"name", text}}}};
       }},
  };
}

TEST(GarbledText, is_refused_on_all_ranks_and_the_store_is_as_before) {
  for (const bool keeps_plan : {false, true}) {
    for (const auto& row : garbled_rows(kGarbled)) {
      const contracts::TemporaryDirectory directory;
      const contracts::TemporaryDirectory without;
      RepeatedSaves world(2);
      world.keeps_plan = keeps_plan;
      const auto saved = world.run(directory.path(), {{}, {row.edit, {}, {}}});
      ASSERT_TRUE(saved[1].error) << row.says;
      EXPECT_EQ(saved[1].error->code(), Code::kUnsupported) << saved[1].error->what();
      EXPECT_NE(std::string(saved[1].error->what()).find(row.says), std::string::npos)
          << saved[1].error->what();
      world.run(without.path(), {{}});
      EXPECT_EQ(test::files_of(directory.path()), test::files_of(without.path())) << row.says;
    }
  }
}

TEST(GarbledText, is_none_if_it_is_utf8_or_has_surrogates) {
  for (const std::string text : {"\xc3\xa9", "\xed\xa0\x80"}) {
    for (const auto& row : garbled_rows(text)) {
      Kit kit({1}, 2);
      row.edit(kit);
      EXPECT_NO_THROW(require_utf8(kit.state)) << row.says;
    }
  }
}

TEST(GarbledText, is_refused_in_the_name_of_a_checkpoint) {
  const contracts::TemporaryDirectory directory;
  PosixStore store(directory.path());
  CommitTarget target = CommitTarget::iteration(kGarbled, Step{1});
  const auto error = contracts::error_of([&] { prepare(store, target); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), Code::kUnsupported);
  EXPECT_TRUE(store.list("").empty());
}

}  // namespace
}  // namespace reprise
