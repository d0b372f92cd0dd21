// Tests the words for the styles of a schedule. A checkpoint's common state contains these words.

#include "sim/job/model/schedule.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "reprise/error.hpp"
#include "reprise/value.hpp"
#include "sim/job/modules/megatron_common.hpp"
#include "tests/contracts/error_of.hpp"

namespace reprise::sim::schedule_test {
namespace {

using contracts::error_of;
using testing::HasSubstr;

Value common_of(const Schedule& schedule) {
  CommonState state;
  state.modules.push_back({.model = "gpt-tiny"});
  state.progress.schedule = schedule;
  return encode(state, stripped);
}

Value& style_in(Value& common, const std::string& name) {
  for (auto& [key, part] : *common.as<Dict>()) {
    if (key != Value(std::string("opt_param_scheduler"))) continue;
    for (auto& [field, value] : *part.as<Dict>()) {
      if (field == Value(name)) return value;
    }
  }
  throw std::out_of_range(name);
}

TEST(Schedule, its_styles_are_stored_by_name_and_read_again) {
  const std::vector<std::pair<RateDecay, std::string>> decays = {
      {RateDecay::kCosine, "cosine"},
      {RateDecay::kLinear, "linear"},
      {RateDecay::kConstant, "constant"}};
  const std::vector<std::pair<WeightDecayRise, std::string>> rises = {
      {WeightDecayRise::kLinear, "linear"}, {WeightDecayRise::kConstant, "constant"}};
  for (const auto& [decay, decay_name] : decays) {
    for (const auto& [rise, rise_name] : rises) {
      const Schedule schedule{.lr_decay_style = decay, .wd_incr_style = rise};
      Value common = common_of(schedule);
      EXPECT_EQ(style_in(common, "lr_decay_style"), Value(decay_name));
      EXPECT_EQ(style_in(common, "wd_incr_style"), Value(rise_name));
      EXPECT_EQ(decode_common(common).progress.schedule, schedule) << decay_name << rise_name;
    }
  }
}

TEST(Schedule, a_style_that_is_not_known_is_refused_with_those_that_are) {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"lr_decay_style", "learning rate decay 'WSD'; known: cosine, linear, constant"},
      {"wd_incr_style", "weight decay style 'WSD'; known: linear, constant"}};
  for (const auto& [style, words] : rows) {
    Value common = common_of({});
    style_in(common, style) = std::string("WSD");
    const auto error = error_of([&] { decode_common(common); });
    ASSERT_TRUE(error.has_value()) << style;
    EXPECT_EQ(error->code(), Code::kUnsupported) << style;
    EXPECT_THAT(error->message(), HasSubstr(words));
  }
}

}  // namespace
}  // namespace reprise::sim::schedule_test
