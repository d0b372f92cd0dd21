#include "driver/explore/recipe.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string_view>

#include "core/base/hash.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

std::string letter_of(sim::Choosing choosing) {
  return choosing == sim::Choosing::kPriority ? "p" : "";
}

[[noreturn]] void refuse_recipe(const std::string& text) {
  throw Error(
      Code::kUsage,
      "'" + text + "' is not a recipe of a timeline; a recipe looks like 17 or 17p/2:350:941");
}

/// Reads the text of a recipe from left to right.
class RecipeReader {
 public:
  explicit RecipeReader(const std::string& text) : text_(text), left_(text) {}

  std::uint64_t number() {
    std::uint64_t value = 0;
    const auto [end, failure] = std::from_chars(left_.data(), left_.data() + left_.size(), value);
    if (failure != std::errc{}) refuse_recipe(text_);
    left_.remove_prefix(static_cast<std::size_t>(end - left_.data()));
    return value;
  }
  bool take(char wanted) {
    if (left_.empty() || left_.front() != wanted) return false;
    left_.remove_prefix(1);
    return true;
  }
  void require(char wanted) {
    if (!take(wanted)) refuse_recipe(text_);
  }
  sim::Choosing choosing() {
    return take('p') ? sim::Choosing::kPriority : sim::Choosing::kUniform;
  }
  bool done() const { return left_.empty(); }

 private:
  const std::string& text_;
  std::string_view left_;
};

bool is_before(const Split& a, const Split& b) {
  return a.life < b.life || (a.life == b.life && a.decision < b.decision);
}

}  // namespace

Recipe Recipe::branch(const Split& split) const {
  Recipe branched = *this;
  std::erase_if(branched.splits, [&split](const Split& one) { return !is_before(one, split); });
  branched.splits.push_back(split);
  return branched;
}

Recipe Recipe::cross(std::size_t life, const Recipe& other) const {
  const Split start{.life = life,
                    .seed = other.seed_of_life(life),
                    .choosing = other.schedule_of(life).splits.front().choosing};
  Recipe crossed = branch(start);
  std::copy_if(other.splits.begin(), other.splits.end(), std::back_inserter(crossed.splits),
               [&start](const Split& one) { return is_before(start, one); });
  return crossed;
}

std::uint64_t Recipe::seed_of_life(std::size_t life) const {
  std::uint64_t found = seed;
  for (const auto& split : splits) {
    if (split.life < life || (split.life == life && split.decision == 0)) found = split.seed;
  }
  return found;
}

sim::SchedulePlan Recipe::schedule_of(std::size_t life) const {
  sim::SchedulePlan plan{.choosing = choosing};
  for (const auto& split : splits) {
    if (split.life < life) plan.choosing = split.choosing;
  }
  plan.splits.push_back({.at = 0, .seed = mix64(seed_of_life(life), life)});
  plan.splits.back().choosing = plan.choosing;
  for (const auto& split : splits) {
    if (split.life != life) continue;
    if (split.decision == 0) {
      plan.splits.front().choosing = split.choosing;
    } else {
      plan.splits.push_back(
          {.at = split.decision, .seed = mix64(split.seed, life), .choosing = split.choosing});
    }
  }
  return plan;
}

std::string to_string(const Recipe& recipe) {
  std::string text = std::to_string(recipe.seed) + letter_of(recipe.choosing);
  for (const auto& split : recipe.splits) {
    text += "/" + std::to_string(split.life) + ":" + std::to_string(split.decision) + ":" +
            std::to_string(split.seed) + letter_of(split.choosing);
  }
  return text;
}

Recipe parse_recipe(const std::string& text) {
  RecipeReader reader(text);
  Recipe recipe;
  recipe.seed = reader.number();
  recipe.choosing = reader.choosing();
  while (!reader.done()) {
    reader.require('/');
    Split split;
    split.life = static_cast<std::size_t>(reader.number());
    reader.require(':');
    split.decision = reader.number();
    reader.require(':');
    split.seed = reader.number();
    split.choosing = reader.choosing();
    if (!recipe.splits.empty() && !is_before(recipe.splits.back(), split)) refuse_recipe(text);
    recipe.splits.push_back(split);
  }
  return recipe;
}

}  // namespace reprise::driver
