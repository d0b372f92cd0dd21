// Tests that a word in which keys differ is found, and the rule for it.

#include "core/diff/word_hint.hpp"

#include <gtest/gtest.h>

namespace reprise::test::word_hint_test {
namespace {

using Keys = std::vector<std::string>;
using Place = KeyRule::Place;

DiffReport report_of(const Keys& left, const Keys& right, const Keys& both = {}) {
  DiffReport report;
  const auto add = [&report](const Keys& keys, DiffVerdict verdict) {
    for (const auto& key : keys) {
      TensorDiff tensor{.key = key, .verdict = verdict};
      report.tensors.push_back(tensor);
    }
  };
  add(left, DiffVerdict::kOnlyLeft);
  add(right, DiffVerdict::kOnlyRight);
  add(both, DiffVerdict::kSame);
  return report;
}

struct Row {
  const char* name;
  DiffReport report;
  bool of_left;
  std::vector<KeyRule> rules;
};

TEST(WordHint, a_word_is_removed_or_replaced) {
  const Row rows[] = {
      {"removed",
       report_of({"l.0._orig_mod.w", "l.1._orig_mod.w"}, {"l.0.w", "l.1.w"}),
       true,
       {{.find = "_orig_mod.", .replace = "", .place = Place::kAnywhere, .every = false}}},
      {"removed from the right",
       report_of({"l.0.w", "l.1.w"}, {"l.0._orig_mod.w", "l.1._orig_mod.w"}),
       false,
       {{.find = "_orig_mod.", .replace = ""}}},
      {"removed twice in a key",
       report_of({"module.l.0.module.w", "module.l.1.module.w"}, {"l.0.w", "l.1.w"}),
       true,
       {{.find = "module.", .replace = "", .every = true}}},
      {"two wrappers",
       report_of({"_orig_mod.l.0._checkpoint_wrapped_module.w",
                  "_orig_mod.l.1._checkpoint_wrapped_module.w"},
                 {"l.0.w", "l.1.w"}),
       true,
       {{.find = "_checkpoint_wrapped_module.", .replace = ""},
        {.find = "_orig_mod.", .replace = ""}}},
      {"replaced within",
       report_of({"l.0.attn.q", "l.1.attn.q"}, {"l.0.self_attn.q", "l.1.self_attn.q"}),
       true,
       {{.find = ".attn.", .replace = ".self_attn."}}},
      {"replaced at the start",
       report_of({"net.a", "net.b"}, {"model.a", "model.b"}, {"x.net.c"}),
       true,
       {{.find = "net.", .replace = "model.", .place = Place::kStart}}},
      {"replaced at the end",
       report_of({"a.gamma", "b.gamma"}, {"a.weight", "b.weight"}),
       true,
       {{.find = ".gamma", .replace = ".weight", .place = Place::kEnd}}},
  };
  for (const Row& row : rows) {
    const auto hint = word_hint(row.report);
    ASSERT_TRUE(hint) << row.name;
    EXPECT_EQ(hint->of_left, row.of_left) << row.name;
    EXPECT_EQ(hint->rules, row.rules) << row.name;
    EXPECT_EQ(hint->keys, 2U) << row.name;
  }
}

TEST(WordHint, a_rule_that_would_undo_a_match_or_join_keys_is_no_hint) {
  EXPECT_FALSE(word_hint(report_of({"l.0.a.w", "l.1.a.w"}, {"l.0.w", "l.1.w"}, {"l.2.a.w"})));
  EXPECT_FALSE(word_hint(report_of({"l.0.a.w", "l.1.a.w", "l.0.w"}, {"l.1.w", "l.3.w"})));
  EXPECT_FALSE(word_hint(report_of({"l.0.a.w"}, {"l.0.w"})));
  EXPECT_FALSE(word_hint(report_of({"l.0.w", "l.1.w"}, {"l.2.w", "l.3.w"})));
  EXPECT_FALSE(word_hint(report_of({}, {"a", "b"})));
}

/// If each name of one side were held against each of the other, this would be 400,000,000 rules.
TEST(WordHint, many_names_in_one_place_are_no_word) {
  constexpr int kKeys = 20'000;
  Keys left;
  Keys right;
  for (int k = 0; k < kKeys; ++k) {
    left.push_back("model.a" + std::to_string(k) + ".w");
    right.push_back("model.b" + std::to_string(k) + ".w");
  }
  EXPECT_FALSE(word_hint(report_of(left, right)));
  for (auto& key : left) key.replace(0, 5, "net");
  for (auto& key : right) key.replace(6, 1, "a");
  const auto hint = word_hint(report_of(left, right));
  ASSERT_TRUE(hint);
  EXPECT_EQ(hint->keys, kKeys);
}

}  // namespace
}  // namespace reprise::test::word_hint_test
