// Changes each value and each line of what one rank of the last life reports, one at a time. None
// of these runs may pass, except where the change means nothing or another rank says the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "reports/read_error.hpp"
#include "tests/driver/witness/recorded_life.hpp"

namespace reprise::driver {
namespace {

using Json = nlohmann::json;

std::vector<Json> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<Json> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
  return lines;
}

std::string text_of_lines(const std::vector<Json>& lines) {
  std::string text;
  for (const auto& line : lines) text += line.dump() + "\n";
  return text;
}

std::vector<Json> others_of(const Json& value) {
  if (value.is_number_integer()) {
    return {value.get<std::int64_t>() + 1, value.get<std::int64_t>() - 1};
  }
  if (!value.is_string()) return {};
  std::string text = value.get<std::string>();
  Json more = text + "x";
  // A hexadecimal number stays one.
  for (auto& digit : text) {
    if (digit < '1' || digit > '8') continue;
    ++digit;
    return {more, text};
  }
  return {more};
}

/// Judges a run in which one rank of the last life reports these lines. A file that can't be read
/// is no pass.
bool passes(std::size_t rank, const std::vector<Json>& lines) try {
  RecordedRun run;
  run.files.second[rank] = text_of_lines(lines);
  return run.judged().empty();
} catch (const reports::ReadError&) {
  return false;
}

TEST(TamperedWitness, PassesOnlyIfNothingThatIsComparedWasChanged) {
  std::set<std::string> passed;
  int tried = 0;
  for (const std::size_t rank : {0, 1}) {
    const auto lines = lines_of(RecordedFiles().second[rank]);
    ASSERT_TRUE(passes(rank, lines));
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const std::string where = lines[i].value("what", "") + lines[i].value("when", "");
      const auto attempt = [&](const std::vector<Json>& changed, const std::string& what) {
        ++tried;
        if (passes(rank, changed)) passed.insert(where + " " + what);
      };
      const Json flat = lines[i].flatten();
      for (const auto& [pointer, value] : flat.items()) {
        for (const auto& other : others_of(value)) {
          auto changed = lines;
          changed[i][Json::json_pointer(pointer)] = other;
          attempt(changed, pointer);
        }
      }
      for (const auto& [key, value] : lines[i].items()) {
        auto changed = lines;
        changed[i].erase(key);
        attempt(changed, "without " + key);
        if (!value.is_array()) continue;
        changed = lines;
        changed[i][key].erase(value.size() - 1);
        attempt(changed, key + " without the last");
      }
      auto less = lines;
      less.erase(less.begin() + static_cast<std::ptrdiff_t>(i));
      attempt(less, "left out");
      auto twice = lines;
      twice.insert(twice.begin() + static_cast<std::ptrdiff_t>(i), lines[i]);
      attempt(twice, "twice");
      if (i + 1 == lines.size()) continue;
      auto swapped = lines;
      std::swap(swapped[i], swapped[i + 1]);
      attempt(swapped, "after the next");
    }
  }
  EXPECT_GT(tried, 150);
  EXPECT_THAT(passed,
              ::testing::ElementsAre("start /seed", "start without seed",  // listed, but not judged
                                     "stateloaded twice",                  // a job may load twice
                                     "step without loss", "step without lr"));  // of the whole job
}

}  // namespace
}  // namespace reprise::driver
