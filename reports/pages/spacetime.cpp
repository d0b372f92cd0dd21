#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "core/base/print.hpp"
#include "reports/pages/escape.hpp"
#include "reports/pages/facts.hpp"
#include "reports/pages/picture.hpp"
#include "reports/pages/pictures.hpp"

namespace reprise::reports {
namespace {

constexpr std::size_t kSaidMax = 12;

/// Returns virtual time for people: "250 us", "1.25 ms", "60.001 s".
std::string time_text(std::uint64_t ns) {
  const auto value = static_cast<double>(ns);
  if (ns < 1'000'000) return brief(std::round(value / 1e3)) + " us";
  if (ns < 1'000'000'000) return fixed(value / 1e6, 2) + " ms";
  return fixed(value / 1e9, 3) + " s";
}

std::string ranks_of(const TimelineEvent& event) {
  std::vector<std::int32_t> ranks;
  for (const auto& one : event.ranks) ranks.push_back(one.rank);
  std::ranges::sort(ranks);
  return ranks_text(ranks);
}

std::uint64_t begin_of(const TimelineEvent& event) {
  std::uint64_t begin = event.end_ns;
  for (const auto& one : event.ranks) begin = std::min(begin, one.begin_ns);
  return begin;
}

/// Returns an event as a sentence without a full stop.
std::string sentence_of(const TimelineEvent& event) {
  std::string text = "at " + time_text(event.end_ns) + " " + ranks_of(event) + ": " + event.name;
  if (!event.detail.empty()) text += " " + event.detail;
  if (event.kind == TimelineKind::kFault) text += " (fault)";
  if (event.kind == TimelineKind::kBroken) text += " (not allowed)";
  if (!event.missing.empty()) text += ", without " + ranks_text(event.missing);
  return text;
}

//            rank 0      rank 1      rank 2
//            tp0         tp1         tp2
//  12 us     |           |           |
//            # plan      # plan      |          # a phase
//            : *---------:-*---------o          a collective: who came, and who is missing
//  40 us     # commit    #           |
//            #. write    #           V crash    . calls to the store; V a fault, <> a broken
//            protocol
//  ========================================= commit of step 3
//            x hung      x hung                 x the end of a rank
class Spacetime {
 public:
  Spacetime(const std::string& name, const Timeline& timeline)
      : timeline_(timeline), picture_("Space-time diagram of " + name, description()) {
    const auto columns = static_cast<double>(std::max<std::size_t>(timeline.ranks.size(), 1));
    column_width_ = std::clamp(680 / columns, 92.0, 170.0);
    double x = kTimes;
    for (const auto& rank : timeline.ranks) {
      columns_[rank.rank] = x + 14;
      x += column_width_;
    }
    width_ = x + kMargin;
    place_rows();
  }

  std::string svg() {
    draw_head();
    draw_times();
    for (const auto kind : {TimelineKind::kCommit, TimelineKind::kPhase, TimelineKind::kStep,
                            TimelineKind::kStore, TimelineKind::kCollective, TimelineKind::kFault,
                            TimelineKind::kBroken, TimelineKind::kEnd}) {
      for (std::size_t i = 0; i < timeline_.events.size(); ++i) {
        if (timeline_.events[i].kind == kind) draw(timeline_.events[i], labels_[i]);
      }
    }
    return picture_.svg(width_, bottom_ + 16);
  }

 private:
  static constexpr double kTimes = 72;    ///< width of the column of times
  static constexpr double kMargin = 118;  ///< right of the columns, for commits
  static constexpr double kHead = 34;
  static constexpr double kLabel = 13;     ///< height of a label
  static constexpr double kAboveBar = 7;   ///< between a label and the bar below it
  static constexpr double kUnderBar = 1;   ///< so much lower a label must stand below a bar
  static constexpr double kBelowBar = 15;  ///< where the label of a missing rank stands

  std::string description() const {
    std::vector<std::string> said;
    for (const auto& event : timeline_.events) {
      const bool matters = event.kind == TimelineKind::kCommit ||
                           event.kind == TimelineKind::kFault ||
                           event.kind == TimelineKind::kBroken ||
                           event.kind == TimelineKind::kEnd || !event.missing.empty();
      if (matters) said.push_back(sentence_of(event));
    }
    const std::size_t cut = said.size() > kSaidMax ? said.size() - kSaidMax : 0;
    said.erase(said.begin(), said.begin() + static_cast<std::ptrdiff_t>(cut));
    return said.empty() ? counted(timeline_.events.size(), "event") : join(said, "; ");
  }

  /// Gives each time a height. Times that are far apart are drawn a little farther apart, and no
  /// two labels of a column lie on one another.
  void place_rows() {
    std::map<std::uint64_t, std::vector<std::size_t>> labelled;
    std::set<std::uint64_t> times;
    for (std::size_t i = 0; i < timeline_.events.size(); ++i) {
      const TimelineEvent& event = timeline_.events[i];
      for (const auto& one : event.ranks) times.insert(one.begin_ns);
      times.insert(event.end_ns);
      labelled[is_across(event) ? event.end_ns : begin_of(event)].push_back(i);
    }
    for (auto& [time, events] : labelled) {  // a phase before its first step
      std::ranges::stable_sort(events, {}, [this](auto i) { return timeline_.events[i].kind; });
    }
    labels_.resize(timeline_.events.size());
    std::map<double, double> used;  // by column: where its last label stands
    double y = kHead + 6;
    std::uint64_t before = times.empty() ? 0 : *times.begin();
    for (const auto time : times) {
      const double apart = static_cast<double>(time - before) / 1000;
      if (time > before) y += std::min(2.0 + std::log2(1 + apart), 26.0);
      before = time;
      // The first label of a column stands at the row of its time, further ones below it.
      std::set<double> first;
      for (const auto i : labelled[time]) {
        const TimelineEvent& event = timeline_.events[i];
        if (first.insert(label_column(event)).second) y = std::max(y, free_row(used, event));
      }
      for (const auto i : labelled[time]) {
        const TimelineEvent& event = timeline_.events[i];
        labels_[i] = std::max(y, free_row(used, event));
        take_room(event, labels_[i], used);
        bottom_ = std::max(bottom_, labels_[i] + 20);
      }
      rows_[time] = y;
    }
    bottom_ = std::max(bottom_, y + 20);
  }

  static bool is_across(const TimelineEvent& event) {
    return event.kind == TimelineKind::kCollective || event.kind == TimelineKind::kCommit;
  }
  /// Returns the row from which on there is room for the event: for its label, and for the bar of a
  /// collective in all columns that it crosses.
  double free_row(const std::map<double, double>& used, const TimelineEvent& event) const {
    double row = 0;
    if (const auto last = used.find(label_column(event)); last != used.end()) {
      row = last->second + kLabel - below_row(event);
    }
    if (event.kind != TimelineKind::kCollective) return row;
    const auto [from, to] = bar_of(event);
    for (auto at = used.lower_bound(from); at != used.end() && at->first <= to; ++at) {
      row = std::max(row, at->second + kAboveBar);
    }
    return row;
  }
  /// Returns where the bar of a collective begins and ends.
  std::pair<double, double> bar_of(const TimelineEvent& event) const {
    std::pair<double, double> bar = {first_x(event), first_x(event)};
    const auto include = [&bar](double x) {
      bar = {std::min(bar.first, x), std::max(bar.second, x)};
    };
    for (const auto& one : event.ranks) include(x_of(one.rank));
    for (const auto rank : event.missing) include(x_of(rank));
    return bar;
  }
  /// Marks the room that the event takes at its row.
  void take_room(const TimelineEvent& event, double label, std::map<double, double>& used) const {
    used[label_column(event)] = label + below_row(event);
    if (event.kind != TimelineKind::kCollective) return;
    const auto [from, to] = bar_of(event);
    for (const auto& [rank, x] : columns_) {
      if (x >= from && x <= to) used[x] = label + kUnderBar;
    }
    for (const auto rank : event.missing) used[x_of(rank)] = label + kBelowBar;
  }
  /// Returns how far below its row the label of an event stands; above the bar of a collective.
  static double below_row(const TimelineEvent& event) {
    return event.kind == TimelineKind::kCollective ? -5 : 4;
  }
  double label_column(const TimelineEvent& event) const {
    if (event.kind == TimelineKind::kCommit) return width_;
    return first_x(event);
  }
  double x_of(std::int32_t rank) const {
    const auto found = columns_.find(rank);  // a damaged report may name any rank
    return found == columns_.end() ? kTimes : found->second;
  }
  double first_x(const TimelineEvent& event) const {
    double x = width_;
    for (const auto& one : event.ranks) x = std::min(x, x_of(one.rank));
    return x;
  }
  double y_of(std::uint64_t time) const { return rows_.at(time); }

  void draw_head() {
    for (const auto& rank : timeline_.ranks) {
      const double x = x_of(rank.rank);
      picture_.text({x - 8, 12}, "rank " + std::to_string(rank.rank), "strong");
      picture_.text({x - 8, 26}, fitting(rank.place), "quiet");
      double end = bottom_;
      for (const auto& event : timeline_.events) {
        if (event.kind == TimelineKind::kEnd && event.ranks.front().rank == rank.rank) {
          end = y_of(event.end_ns);
        }
      }
      picture_.line({x, kHead}, {x, end}, "axis");
    }
  }

  void draw_times() {
    double last = -100;
    for (const auto& [time, y] : rows_) {
      if (y < last + 36) continue;
      last = y;
      picture_.text({kTimes - 14, y + 4}, time_text(time), "end quiet");
      picture_.line({kTimes - 10, y}, {width_ - kMargin, y}, "grid");
    }
  }

  void draw(const TimelineEvent& event, double label_y) {
    const double x = first_x(event);
    switch (event.kind) {
      case TimelineKind::kPhase:
        return segment(event, x - 7, 14, "st phase", label_y, "strong");
      case TimelineKind::kStep:
        return segment(event, x - 4, 8, "st step", label_y, "");
      case TimelineKind::kStore:
        return segment(event, x + 7, 5, "st store", label_y, "quiet");
      case TimelineKind::kCollective:
        return draw_collective(event, label_y);
      case TimelineKind::kCommit:
        return draw_commit(event, label_y);
      case TimelineKind::kFault:
        picture_.shape({{x - 8, label_y - 7}, {x + 8, label_y - 7}, {x, label_y + 7}}, "fault",
                       sentence_of(event));
        return picture_.text({x + 16, label_y + 4}, fitting(event.name), "fault strong");
      case TimelineKind::kBroken:
        picture_.shape({{x, label_y - 8}, {x + 8, label_y}, {x, label_y + 8}, {x - 8, label_y}},
                       "fault", sentence_of(event));
        return picture_.text({x + 16, label_y + 4}, fitting("not allowed"), "fault strong");
      case TimelineKind::kEnd:
        picture_.line({x - 6, label_y - 6}, {x + 6, label_y + 6}, "end-of-rank");
        picture_.line({x - 6, label_y + 6}, {x + 6, label_y - 6}, "end-of-rank");
        return picture_.text({x + 16, label_y + 4}, fitting(event.name), "fault");
    }
  }

  /// Draws what one rank did for a while.
  void segment(const TimelineEvent& event, double x, double width, const std::string& look,
               double label_y, const std::string& label_look) {
    const double begin = y_of(begin_of(event));
    const double height = std::max(y_of(event.end_ns) - begin, 3.0);
    picture_.box({{x, begin}, width, height}, look + (event.cut ? " cut" : ""), 1,
                 sentence_of(event));
    picture_.text({first_x(event) + 16, label_y + below_row(event)}, fitting(text_of(event)),
                  label_look);
  }

  static std::string text_of(const TimelineEvent& event) {
    if (event.kind != TimelineKind::kStore) return event.name;
    const auto slash = event.detail.rfind('/');
    return event.name + " " + event.detail.substr(slash == std::string::npos ? 0 : slash + 1);
  }

  void draw_collective(const TimelineEvent& event, double label_y) {
    const double y = label_y;
    for (const auto& one : event.ranks) {
      picture_.line({x_of(one.rank), y_of(one.begin_ns)}, {x_of(one.rank), y}, "waits");
    }
    const auto [first, last] = bar_of(event);
    const std::string look = event.cut ? "st across cut" : "st across";
    picture_.box({{first, y - 2}, std::max(last - first, 4.0), 4}, look, 1, sentence_of(event));
    for (const auto& one : event.ranks) picture_.dot({x_of(one.rank), y}, "came");
    for (const auto rank : event.missing) {
      picture_.dot({x_of(rank), y}, "missing", "rank " + std::to_string(rank) + " is missing");
      picture_.text({x_of(rank) + 16, y + kBelowBar}, "missing", "fault");
    }
    picture_.text({first_x(event) + 16, label_y + below_row(event)}, fitting(event.name),
                  event.cut ? "fault" : "a");
  }

  void draw_commit(const TimelineEvent& event, double label_y) {
    const double y = y_of(event.end_ns);
    for (const double shift : {-1.5, 1.5}) {
      picture_.line({kTimes - 10, y + shift}, {width_ - kMargin + 4, y + shift}, "commit");
    }
    picture_.text({width_ - kMargin + 8, label_y + 4}, event.name, "commit strong");
  }

  /// Returns as much of the text as fits between the lines of two ranks.
  std::string fitting(const std::string& text) const {
    return clipped(text, static_cast<std::size_t>((column_width_ - 22) / 6.4));
  }

  const Timeline& timeline_;
  Picture picture_;
  double column_width_ = 0;
  double width_ = 0;
  double bottom_ = 0;
  std::map<std::int32_t, double> columns_;  ///< the line of each rank
  std::map<std::uint64_t, double> rows_;    ///< the height of each time
  std::vector<double> labels_;              ///< the height of each event's label
};

}  // namespace

std::string spacetime_figure(const ScenarioResult& result) {
  if (!result.failure || !result.failure->timeline) return "";
  const Timeline& timeline = *result.failure->timeline;
  if (timeline.events.empty() || timeline.ranks.empty()) return "";
  std::string caption =
      "The end of life " + std::to_string(timeline.life) +
      " in virtual time, which runs downwards; long waits are drawn shorter. Boxes on the line of "
      "a "
      "rank are phases and their steps, narrow ones beside it calls to the store. A bar across is "
      "a "
      "collective, with a dot for each rank that came and a ring for each that is missing; a "
      "dotted "
      "line above it is the wait. A triangle is a fault, a diamond a step that the protocol does "
      "not allow, a cross the end of a "
      "rank, a double line a commit. What has a broken outline did not end by itself.";
  if (timeline.events_left_out > 0) {
    caption += " " + counted(timeline.events_left_out, "earlier event") + " left out.";
  }
  if (timeline.ranks_left_out > 0) {
    caption += " " + counted(timeline.ranks_left_out, "more rank") + " left out.";
  }
  return figure(Spacetime(result.name, timeline).svg(), caption);
}

}  // namespace reprise::reports
