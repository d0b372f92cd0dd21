#include "tests/driver/explore/campaign.hpp"

#include <algorithm>
#include <istream>
#include <ostream>
#include <set>
#include <sstream>

#include "driver/random/draw.hpp"

namespace reprise::driver {
namespace {

/// Writes timelines as lines: "name NAME" for each new behaviour, which gets the next number, and
/// "timeline RECIPE LIFE:NUMBER..." for each timeline.
class CampaignWriter {
 public:
  explicit CampaignWriter(std::ostream& out) : out_(out) {}

  void add(const Recipe& recipe, const TimelineResult& seen) {
    std::ostringstream line;
    line << "timeline " << to_string(recipe);
    for (const auto* sightings : {&seen.marks, &seen.tuples}) {
      for (const auto& one : *sightings) line << ' ' << one.life << ':' << number_of(one.name);
    }
    out_ << line.str() << '\n' << std::flush;
  }

 private:
  std::size_t number_of(const std::string& name) {
    const auto [found, added] = numbers_.emplace(name, numbers_.size());
    if (added) out_ << "name " << name << '\n';
    return found->second;
  }

  std::ostream& out_;
  std::map<std::string, std::size_t> numbers_;
};

CampaignTimeline timeline_in(std::istringstream& line) {
  CampaignTimeline timeline;
  timeline.lives.resize(kTimelineLives);
  line >> timeline.recipe;
  std::size_t life = 0;
  char colon = 0;
  std::uint32_t number = 0;
  while (line >> life >> colon >> number) timeline.lives.at(life).push_back(number);
  return timeline;
}

std::size_t in_both(const FirstTimelines& some, const FirstTimelines& others) {
  return static_cast<std::size_t>(std::count_if(
      some.begin(), some.end(), [&](const auto& one) { return others.count(one.first) > 0; }));
}

std::size_t within(const FirstTimelines& firsts, std::size_t timelines) {
  return static_cast<std::size_t>(std::count_if(
      firsts.begin(), firsts.end(), [&](const auto& one) { return one.second < timelines; }));
}

/// Returns the number and the recipe of the first timeline with the pair.
std::string first_text(const Campaign& campaign, const FirstTimelines& firsts, const Pair& pair) {
  const auto found = firsts.find(pair);
  if (found == firsts.end()) return "not reached";
  return std::to_string(found->second + 1) + " " + campaign.timelines[found->second].recipe;
}

}  // namespace

std::uint64_t write_campaign(ExploreRequest request, std::ostream& out) {
  CampaignWriter writer(out);
  std::uint64_t failed = 0;
  request.taken = [&](const Recipe& recipe, const TimelineResult& seen) {
    writer.add(recipe, seen);
    if (seen.verdict != reports::Verdict::kPass) ++failed;
  };
  explore(request);
  return failed;
}

Campaign read_campaign(std::istream& in) {
  Campaign campaign;
  for (std::string text; std::getline(in, text);) {
    std::istringstream line(text);
    std::string word;
    line >> word >> std::ws;
    if (word == "name") {
      std::getline(line, campaign.names.emplace_back());
    } else if (word == "timeline") {
      campaign.timelines.push_back(timeline_in(line));
    }
  }
  return campaign;
}

FirstTimelines first_timelines(const Campaign& campaign) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> firsts;
  for (std::size_t i = 0; i < campaign.timelines.size(); ++i) {
    std::set<std::uint32_t> earlier;
    for (const auto& life : campaign.timelines[i].lives) {
      for (const auto first : earlier) {
        for (const auto second : life) firsts.try_emplace({first, second}, i);
      }
      earlier.insert(life.begin(), life.end());
    }
  }
  FirstTimelines named;
  for (const auto& [pair, i] : firsts) {
    named[{campaign.names.at(pair.first), campaign.names.at(pair.second)}] = i;
  }
  return named;
}

void print_pairs(const Campaign& guided, const Campaign& alone, const PairDraw& draw,
                 std::ostream& out) {
  const auto by_guided = first_timelines(guided);
  const auto by_alone = first_timelines(alone);
  const std::size_t both = in_both(by_guided, by_alone);
  out << "guided: " << guided.timelines.size() << " timelines reach " << by_guided.size()
      << " pairs, " << by_guided.size() - both << " of them not reached by seeds alone\n"
      << "alone: " << alone.timelines.size() << " timelines reach " << by_alone.size() << " pairs, "
      << by_alone.size() - both << " of them not reached by the guided search; the first "
      << guided.timelines.size() << " timelines reach " << within(by_alone, guided.timelines.size())
      << " pairs\n";
  auto all = by_guided;
  all.insert(by_alone.begin(), by_alone.end());
  std::vector<Pair> hard;
  for (const auto& [pair, i] : all) {
    const auto found = by_alone.find(pair);
    if (found == by_alone.end() || found->second >= draw.easy) hard.push_back(pair);
  }
  Stream random = Stream(draw.seed).split("pairs");
  shuffle(random, hard);
  out << hard.size() << " pairs were not reached by the first " << draw.easy << " seeds alone\n";
  hard.resize(std::min(draw.count, hard.size()));
  for (const auto& pair : hard) {
    out << "\n"
        << pair.first << "\n  then " << pair.second
        << "\n  guided: " << first_text(guided, by_guided, pair)
        << "\n  alone: " << first_text(alone, by_alone, pair) << "\n";
  }
}

}  // namespace reprise::driver
